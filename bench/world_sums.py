#!/usr/bin/env python3
"""How many sums a model of the world gets right, at once and by steps, by the number of digits.

  python3 bench/world_sums.py build/release/bin/qkv world [--each 50]

Asks a server of its own on this machine, greedily. Numbers are drawn with a fixed seed; both numbers of + and - have as many digits
as the column says, the second number of × and ÷ has one.
"""
import argparse, concurrent.futures, json, random, re, subprocess, threading, time, urllib.error, urllib.request

arguments = argparse.ArgumentParser()
arguments.add_argument("qkv")
arguments.add_argument("model")
arguments.add_argument("--each", type=int, default=50)
options = arguments.parse_args()
urllib.request.install_opener(urllib.request.build_opener(urllib.request.ProxyHandler({})))  # this machine only


def sums(sign, digits, count):
    draw = random.Random(f"{sign}{digits}")
    number = lambda d: draw.randint(10 ** (d - 1) if d > 1 else 2, 10**d - 1)
    for _ in range(count):
        if sign == "+":
            a, b = number(digits), number(digits)
            yield a, b, a + b
        elif sign == "-":
            a, b = sorted((number(digits), number(digits)), reverse=True)
            yield a, b, a - b
        elif sign == "×":
            a, b = number(digits), draw.randint(2, 9)
            yield a, b, a * b
        else:
            b = draw.randint(2, 9)
            c = max(1, number(digits) // b)
            yield c * b, b, c


def ask(base, prompt, tokens):
    body = json.dumps({"model": options.model, "prompt": prompt, "temperature": 0, "max_tokens": tokens}).encode()
    request = urllib.request.Request(base + "/v1/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)["choices"][0]["text"]


def at_once(base, a, sign, b):
    found = re.match(r" ?(\d+)", ask(base, f"{a} {sign} {b} =", 8))
    return int(found[1]) if found else None


def by_steps(base, a, sign, b):
    text = ask(base, f"Compute {a} {sign} {b} by steps.", 160)
    found = re.search(rf"So {a} {re.escape(sign)} {b} = (\d+)", text)
    return int(found[1]) if found else None


server = subprocess.Popen([options.qkv, "serve", options.model, "--port", "0", "--device", "cpu"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
try:
    base = None
    for line in server.stdout:
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        if found:
            base = found[0]
            break
    assert base, "the server said no address"
    threading.Thread(target=server.stdout.read, daemon=True).start()  # a full pipe would stop it
    for _ in range(100):  # until the model is open
        try:
            options.model = json.load(urllib.request.urlopen(base + "/v1/models"))["data"][0]["id"]
            break
        except urllib.error.HTTPError:
            time.sleep(0.2)
    print("| | | 1 digit | 2 digits | 3 digits | 4 digits |\n|---|---|---|---|---|---|")
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for sign in "+-×÷":
            for name, way in (("at once", at_once), ("by steps", by_steps)):
                row = []
                for digits in (1, 2, 3, 4):
                    given = list(sums(sign, digits, options.each))
                    answers = pool.map(lambda s: way(base, s[0], sign, s[1]), given)
                    row.append(sum(said == s[2] for said, s in zip(answers, given)) / len(given))
                print(f"| {sign} | {name} | " + " | ".join(f"{100 * share:.0f} %" for share in row) + " |", flush=True)
finally:
    server.terminate()
    server.wait()

#!/usr/bin/env python3
"""What many clients do to qkv serve:  python3 bench/serve_load.py QKV same|leave|flood|slow|attack [options]

  same   clients that ask two models at once, in streams or not, some with a look inside, get what one client alone gets
  leave  clients that leave at any moment cost no slots, cache pages, open files or memory
  flood  connections beyond the queue are refused quickly, and /health answers meanwhile
  slow   clients that send slowly are closed in time, and others do not wait for them
  attack the same with slowhttptest: slow headers, slow bodies, slow reading

Starts the server itself, with tiny models of random weights. Exit code 1: the answer is no. docs/reliability.md has results."""
import argparse, contextlib, http.client, json, os, random, resource, shutil, socket, struct, subprocess, sys, threading, time

sys.dont_write_bytecode = True
from served import CONTEXT, NO_END, Server, check, failures, in_threads, milliseconds, mixed_request, quantile, request_bytes


# --- same -------------------------------------------------------------------------------------------------------------

def add_logprobs(choice, more):
    for name, values in (more or {}).items():
        if values:  # a stream of no tokens has none
            choice["logprobs"].setdefault(name, []).extend(values)


def essence(answer):
    """Text, finish reason, log-probabilities and look of each choice; of a whole answer, or of the events of a stream."""
    choices = {}

    def of(index):
        return choices.setdefault(index, {"text": "", "reason": None, "logprobs": {}, "look": {}})

    def add_look(part):
        look = of(part["index"])["look"]
        if "position" in part:
            look.setdefault("tokens", []).append({name: value for name, value in part.items() if name != "index"})
        else:
            look.update({name: value for name, value in part.items() if name not in ("index", "tokens")})

    for event in answer:
        check("error" not in event, "an error in a stream: %s" % event)
        if "choices" not in event and "index" in event:
            add_look(event)
        for part in event.get("look", {}).get("choices", []):
            for token in part.get("tokens", []):
                add_look(dict(token, index=part["index"]))
            add_look(part)
        for part in event.get("choices", []):
            choice = of(part["index"])
            choice["text"] += part["text"] if "text" in part else (part.get("message") or part.get("delta")).get("content") or ""
            choice["reason"] = part["finish_reason"] or choice["reason"]
            add_logprobs(choice, part.get("logprobs"))
    return choices


def ask(connection, n, stream):
    path, body = mixed_request(n)
    connection.request("POST", path, json.dumps(dict(body, stream=stream)))
    answer = connection.getresponse()
    text = answer.read().decode()
    if answer.status != 200:
        raise RuntimeError("request %d: %d %s" % (n, answer.status, text))
    if not stream:
        return essence([json.loads(text)])
    if not text.endswith("data: [DONE]\n\n"):
        raise RuntimeError("request %d: its stream has no end: %s" % (n, text[-200:]))
    return essence([json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: {")])


def same(server, options):
    kinds = min(500, options.clients * options.requests)
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)) as alone:
        right = [ask(alone, n, False) for n in range(kinds)]
    start = time.monotonic()

    def client(number):
        draw = random.Random(number)
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)) as connection:
            for _ in range(options.requests):
                n, stream = draw.randrange(kinds), draw.random() < 0.5
                got = ask(connection, n, stream)
                check(got == right[n], "request %d%s: %s, alone %s" % (n, " in a stream" if stream else "", got, right[n]))

    in_threads(options.clients, client)
    seconds = time.monotonic() - start
    looks = sum(1 for answer in right if any(choice["look"] for choice in answer.values()))
    check(looks > kinds / 8, "only %d of %d looked inside" % (looks, kinds))
    print("same: %d clients x %d requests in %.1f s, %d of them different, %d of those with a look inside; %d are not as alone"
          % (options.clients, options.requests, seconds, kinds, looks, len(failures)))
    check(server.metric("qkv_rejections_total") == 0, "some were refused: the queue is too short for this test")


# --- leave ------------------------------------------------------------------------------------------------------------

def leave_once(server, draw):
    """One client that leaves: before, in or after its request, or in its answer; politely or with a reset."""
    path, body = mixed_request(draw.randrange(1 << 30))
    body.update(max_tokens=CONTEXT, logit_bias=NO_END, stream=draw.random() < 0.7)
    data = request_bytes(path, body)
    with server.connect() as client:
        if draw.random() < 0.5:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        moment = draw.random()
        if moment < 0.15:
            client.sendall(data[:draw.randrange(len(data))])
            return
        client.sendall(data)
        if moment < 0.4:
            return
        client.settimeout(draw.random() * 0.05)
        with contextlib.suppress(socket.timeout):
            for _ in range(draw.randint(1, 5)):
                if not client.recv(draw.randint(1, 2000)):
                    return


def full_texts(server):
    """As many texts of a whole context at once as there are slots, of each model: they need every page of the caches."""
    long = {"prompt": [7] * 8, "max_tokens": CONTEXT, "logit_bias": NO_END}

    def client(number):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        prompt = [7 + number] * 8
        connection.request("POST", "/v1/completions", json.dumps(dict(long, prompt=prompt, model=["chatty", "plain"][number % 2])))
        answer = connection.getresponse()
        usage = json.loads(answer.read())["usage"]
        check(usage["completion_tokens"] == CONTEXT - 8, "a text of the whole context has %s" % usage)

    in_threads(2 * server.slots, client)


def leave(server, options):
    total = 2 * options.clients * round(options.requests * 0.8)

    def everyone(share):
        def client(number):
            draw = random.Random((number + 1) * 1000003 + int(share * 1000))
            for _ in range(round(options.requests * share)):
                with contextlib.suppress(ConnectionError):
                    leave_once(server, draw)
        in_threads(options.clients, client)

    def settle():
        for name, rest in ("qkv_slots_active", 0), ("qkv_queue_waiting", 0), ("qkv_requests_in_progress", 1):
            server.wait_for("%s is not %d after all clients left" % (name, rest), lambda: server.metric(name) == rest)
        server.wait_for("%d files are open, %d before" % (server.files(), files), lambda: server.files() <= files, 5)

    def page():
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("GET", "/")
        text = connection.getresponse().read()
        connection.close()
        return text

    # What the page prepares in the background takes memory once.
    server.wait_for("the page has no first look", lambda: b'"ladder"' in page(), 60)
    time.sleep(0.2)  # these connections are being closed
    files = server.files()
    full_texts(server)
    start = time.monotonic()
    everyone(0.8)  # until memory has what it keeps
    settle()
    full_texts(server)
    before = server.memory()
    everyone(0.8)  # and the same once more
    settle()
    full_texts(server)
    after, seconds = server.memory(), time.monotonic() - start
    check(after <= before * 1.05 + 4, "memory grew from %.1f to %.1f MiB" % (before, after))
    gone = server.metric("qkv_cancellations_total")
    check(gone >= total * 0.1, "only %d of %d left in the middle of a text" % (gone, total))
    print("leave: %d clients left in %.1f s, %d of them in the middle of a text; memory %.1f MiB, then %.1f; open files %d, then %d; slots and pages all free"
          % (total, seconds, gone, before, after, files, server.files()))


# --- flood ------------------------------------------------------------------------------------------------------------

def flood(server, options):
    """The clients are a C++ program, so that what is measured is the server."""
    program = os.path.join(os.path.dirname(os.path.abspath(options.qkv)), "flood_clients")
    if not os.path.exists(program):
        raise SystemExit("there is no %s; ./qkv test builds it, or ninja -C build/release flood_clients" % program)
    data = request_bytes("/v1/completions", {"model": "plain", "prompt": "one", "max_tokens": CONTEXT, "logit_bias": NO_END})
    said = subprocess.run([program, str(server.port), str(options.clients)], input=data, stdout=subprocess.PIPE, check=True, timeout=300)
    times = {}
    for line in said.stdout.decode().splitlines():
        status, seconds, *more = line.split()
        times.setdefault(status, []).append(float(seconds))
        check(status != "429" or more[0].isdigit(), "429 without Retry-After: " + line)
    refused, finished, health = (times.pop(status, []) for status in ("429", "200", "health"))
    room = server.slots + options.queue
    print("flood: %d connections, room for %d, %d finished, %d refused: %s; /health: %s"
          % (options.clients, room, len(finished), len(refused), milliseconds(refused), milliseconds(health)))
    check(not times, "other answers: %s" % {status: len(all) for status, all in times.items()})
    check(len(finished) >= room, "%d finished, but %d have room" % (len(finished), room))
    check(len(refused) > 0 and len(finished) + len(refused) == options.clients, "each is answered, some are refused")
    check(not options.times or quantile(refused, 0.99) < 0.05, "refusals take 50 ms or more")
    check(not options.times or quantile(health, 0.99) < 0.1, "/health takes 0.1 s or more")


# --- slow -------------------------------------------------------------------------------------------------------------

def first_token_times(server, requests):
    """Of prompts that are long enough to be a pass of some milliseconds, and new each time."""
    times = []
    with server.connect() as client:
        for _ in range(requests):
            data = request_bytes("/v1/completions", {"model": "plain", "prompt": random.choices(range(600), k=CONTEXT - 20), "max_tokens": 4,
                                                     "logit_bias": NO_END, "stream": True})
            start, seen = time.monotonic(), b""
            client.sendall(data)
            while b"data: {" not in seen:
                seen += client.recv(65536)
            times.append(time.monotonic() - start)
            while not seen.endswith(b"\r\n0\r\n\r\n"):
                seen += client.recv(65536)
    return times


def slow(server, options):
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
    begun = {"header": head + b"X-Slow: ", "body": head + b"Content-Length: 100000\r\n\r\n"}
    limits = {"header": 10, "body": 30}
    alone = first_token_times(server, options.requests)
    clients, closed, stop = [], {"header": [], "body": []}, threading.Event()
    for number in range(options.clients):
        kind = ["header", "body"][number % 2]
        client = server.connect()
        client.sendall(begun[kind])
        client.setblocking(False)
        clients.append((client, kind, time.monotonic()))

    def drip():
        while clients and not stop.is_set():
            for entry in list(clients):
                client, kind, since = entry
                try:
                    ended = client.recv(65536) == b""
                except BlockingIOError:
                    ended = False
                except ConnectionError:
                    ended = True
                if not ended:
                    with contextlib.suppress(OSError):
                        client.send(b"x")
                    continue
                closed[kind].append(time.monotonic() - since)
                clients.remove(entry)
                client.close()
            time.sleep(0.2)

    dripping = threading.Thread(target=drip)
    dripping.start()
    beside = first_token_times(server, options.requests)
    if options.wait:
        dripping.join(60)
        for kind, limit in limits.items():
            times = closed[kind]
            check(len(times) == options.clients // 2 and all(0.9 * limit <= x <= limit + 2 for x in times),
                  "slow %s: %d of %d closed, after %s s" % (kind, len(times), options.clients // 2, [round(x, 1) for x in times[:20]]))
    stop.set()
    dripping.join()
    shown = "; ".join("%d slow in the %s closed after at most %.1f s" % (len(x), kind, max(x)) for kind, x in closed.items() if x)
    ratio = quantile(beside, 0.5) / quantile(alone, 0.5)
    print("slow: first token alone %s; beside %d slow clients %s: %.2f times; %s"
          % (milliseconds(alone), options.clients, milliseconds(beside), ratio, shown or "not waited for their end"))
    check(not options.times or ratio < 2, "the first token takes %.2f times as long beside slow clients" % ratio)


# --- attack -----------------------------------------------------------------------------------------------------------

def attack(server, options):
    """slowhttptest ends by itself when no connection is left; one that reads slowly has its whole answer in the kernel's buffers."""
    if not shutil.which("slowhttptest"):
        print("attack: left out without slowhttptest")
        return
    kinds = {"header": (["-H", "-u", server.url("/")], 10), "body": (["-B", "-s", "100000", "-t", "POST", "-u", server.url("/v1/completions")], 30),
             "read": (["-X", "-w", "10", "-y", "20", "-n", "2", "-z", "8", "-k", "2", "-u", server.url("/")], None)}
    for kind, (arguments, limit) in kinds.items():
        alone = first_token_times(server, options.requests)
        start = time.monotonic()
        attacker = subprocess.Popen(["slowhttptest", "-c", str(options.clients), "-r", str(options.clients), "-i", "1", "-x", "10", "-l", "40", "-p", "3", *arguments],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        time.sleep(2)  # all have connected
        held, beside = server.files(), first_token_times(server, options.requests)
        said = attacker.communicate(timeout=120)[0]
        seconds = time.monotonic() - start
        server.wait_for("files of an attack stay open", lambda: server.files() < 30, 90)
        alone += first_token_times(server, options.requests)
        ratio = quantile(beside, 0.5) / quantile(alone, 0.5)
        print("attack on %s: %d connections, %d files open in the server, over after %.1f s; first token alone %s; beside %s: %.2f times"
              % (kind, options.clients, held, seconds, milliseconds(alone), milliseconds(beside), ratio))
        check(held > options.clients, "%d files are open: slowhttptest did not connect: %s" % (held, said[-600:]))
        check(ratio < 2, "the first token takes %.2f times as long" % ratio)
        check(limit is None or seconds < limit + 5, "slow %s: not closed within %s s" % (kind, limit))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qkv", help="the program")
    parser.add_argument("what", choices=["same", "leave", "flood", "slow", "attack"])
    parser.add_argument("--clients", type=int, help="at once; 64, 50, 1000, 200 or 200")
    parser.add_argument("--requests", type=int, help="of each client; 200, 200, -, 200 or 200")
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--queue", type=int, help="64; of same and leave 1024, so that nobody is refused")
    parser.add_argument("--threads", type=int, default=1, help="of the server")
    parser.add_argument("--no-times", dest="times", action="store_false", help="flood, slow: show times without judging them")
    parser.add_argument("--no-wait", dest="wait", action="store_false", help="slow: do not wait until the slow clients are closed")
    options = parser.parse_args()
    usual = {"same": (64, 200, 1024), "leave": (50, 200, 1024), "flood": (1000, 1, 64), "slow": (200, 200, 64), "attack": (200, 200, 64)}[options.what]
    for name, value in zip(["clients", "requests", "queue"], usual):
        if getattr(options, name) is None:
            setattr(options, name, value)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # of the server too
    server = Server(options.qkv, options.slots, options.queue, options.threads)
    try:
        globals()[options.what](server, options)
        check(server.process.poll() is None, "the server has ended: " + server.log_text())
        server.stop()
    finally:
        server.process.kill()
    sys.exit(1 if failures else 0)


main()

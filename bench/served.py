"""qkv serve with two tiny models, and what its clients in serve_load.py share."""
import http.client, json, os, random, re, signal, socket, subprocess, tempfile, threading, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
CONTEXT = 512
NO_END = {"470": -100}
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        if len(failures) <= 20:
            print("not so:", what)


def quantile(values, share):
    values = sorted(values)
    return values[round(share * (len(values) - 1))] if values else float("nan")


def milliseconds(values):
    return "p50 %.1f ms, p99 %.1f ms, longest %.1f ms" % tuple(1e3 * quantile(values, share) for share in (0.5, 0.99, 1))


class Server:
    """qkv serve with the models chatty (which has a chat template) and plain."""

    def __init__(self, qkv, slots, queue, threads):
        self.slots, self.folder = slots, tempfile.TemporaryDirectory()
        config = {"model_type": "llama", "vocab_size": 608, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
                  "num_attention_heads": 4, "max_position_embeddings": CONTEXT, "bos_token_id": 0, "eos_token_id": 470}
        models = []
        with open(self.path("config.json"), "w") as file:
            json.dump(config, file)
        with open(os.path.join(ROOT, "tests/golden/tokenizers/qwen2/tokenizer.json")) as file:
            tokenizer = file.read()
        for seed, name in enumerate(["chatty", "plain"]):
            models.append(self.path(name))
            subprocess.run([qkv, "new", "--spec", self.path("config.json"), "--seed", str(seed), "--out", models[-1]], check=True,
                           stdout=subprocess.DEVNULL)
            with open(os.path.join(models[-1], "tokenizer.json"), "w") as file:
                file.write(tokenizer)
        with open(os.path.join(models[0], "chat_template.jinja"), "w") as file:
            file.write(TEMPLATE)
        self.log = open(self.path("log"), "w+")
        self.process = subprocess.Popen([qkv, "serve", *models, "--port", "0", "--slots", str(slots), "--queue", str(queue),
                                         "--threads", str(threads), "--device", "cpu", "--look"], stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening"):
            raise SystemExit("the server did not start: " + self.log_text())
        self.port = int(line.rsplit(":", 1)[1])
        while self.get("/health")[0] != 200:
            time.sleep(0.02)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def log_text(self):
        self.log.seek(0)
        return self.log.read()[-2000:]

    def connect(self):
        made = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def url(self, path):
        return "http://127.0.0.1:%d%s" % (self.port, path)

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def metric(self, name):
        """Of all models together."""
        return sum(float(value) for value in re.findall(r"^%s(?:\{[^}]*\})? (\S+)$" % name, self.get("/metrics")[1], re.M))

    def wait_for(self, what, holds, seconds=20):
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                return check(False, what)
            time.sleep(0.02)

    def files(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def memory(self):
        """MiB in memory."""
        with open("/proc/%d/status" % self.process.pid) as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        check(self.process.wait(30) == 0, "the server ended with %s: %s" % (self.process.returncode, self.log_text()))


def request_bytes(path, body):
    data = json.dumps(body).encode()
    return b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(data)) + data


def in_threads(count, work):
    def guarded(number):
        try:
            work(number)
        except Exception as error:
            check(False, "client %d: %r" % (number, error))
    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def mixed_look(draw):
    look = {"maps": draw.choice(["none", "none", "none", "top8", "thumbnails", "full"]), "ladder": draw.random() < 0.3,
            "frames": draw.random() < 0.3}
    if draw.random() < 0.7:
        look["statistics"] = draw.sample(["entropy", "distance", "first", "highest", "argmax", "previous"], draw.randint(1, 6))
    if draw.random() < 0.5:
        look["heads"] = draw.sample(["L0", "L1H0", "L1H3", "L0H2"], draw.randint(1, 3))
    if draw.random() < 0.2:
        look["cut"] = draw.sample(["L0H0", "L0H3", "L1H1"], draw.randint(1, 2))
    if draw.random() < 0.2:
        look["attribute"] = {"position": draw.randint(0, 9)}
    return look


def mixed_request(n):
    draw = random.Random(n)
    body = {"seed": n, "max_tokens": draw.randint(1, 40), "temperature": draw.choice([0, 0.7, 1.3]), "n": draw.choice([1, 1, 1, 2])}
    if draw.random() < 0.2:
        body["stop"] = ["e", "th"]
    if n % 4 < 2:  # both models
        body["look"] = mixed_look(draw)
    words = " ".join(draw.choice(["one", "two", "你好", "the cat", "x"]) for _ in range(draw.randint(1, 30)))
    if n % 2:
        body.update(model="plain", prompt=words, logprobs=draw.randint(0, 3))
        return "/v1/completions", body
    body.update(model="chatty", messages=[{"role": "user", "content": words}], logprobs=True, top_logprobs=draw.randint(0, 3))
    return "/v1/chat/completions", body

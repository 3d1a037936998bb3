#!/bin/sh
# The server as a process: its port, signals, wrong options, and clients that come and go.  sh serve.sh QKV short|long
# shellcheck source=tests/faults/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=tests/server/serve_common.sh
. "$(dirname "$0")/../server/serve_common.sh"

printf '{"model_type": "llama", "vocab_size": 608, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
  "num_attention_heads": 4, "max_position_embeddings": 4096, "bos_token_id": 0, "eos_token_id": 470}' >"$folder/config.json"
expect 0 '' new --spec "$folder/config.json" --seed 1 --out "$folder/model"
expect 2 'tokenizer' serve "$folder/model" --port 0
cp "$golden/tokenizers/qwen2/tokenizer.json" "$folder/model"

start() { serve_start "$folder/model" "$@"; }

expect 2 'no such file' serve "$folder/nowhere"
expect 2 'belong together' serve "$folder/model" --tls-cert "$folder/config.json"
expect 2 'cannot be used' serve "$folder/model" --tls-cert "$folder/config.json" --tls-key "$folder/config.json"
expect 2 'is not one of this machine' serve "$folder/model" --host 192.0.2.1.nowhere
printf '# none\n' >"$folder/keys"
expect 2 'has no API key' serve "$folder/model" --keys "$folder/keys"
out=$(QKV_API_KEYS=short "$qkv" serve "$folder/model" --port 0 2>&1) && bad 'a short key was taken'
case $out in *'API key 1 has 5 characters'*) ;; *) bad "a short key: $out" ;; esac

start
expect 2 'cannot listen' serve "$folder/model" --port "$port"
serve_stop TERM
start
serve_stop INT

if command -v python3 >/dev/null; then
  start --slots 2 --queue 4
  clients=12
  [ "$form" = short ] || clients=200
  # Clients of all kinds at once; those that stay get whole answers or 429, and the server ends well in the middle of it.
  python3 - "$port" "$clients" <<'END' || bad 'clients were not served'
import http.client, json, sys, threading, time
port, count = int(sys.argv[1]), int(sys.argv[2])
wrong = []
def client(n):
    try:
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        body = {"prompt": "one %d" % n, "max_tokens": 40, "seed": n, "stream": n % 2 == 0}
        c.request("POST", "/v1/completions", json.dumps(body))
        if n % 5 == 0:
            c.close()
            return
        answer = c.getresponse()
        text = answer.read().decode()
        if answer.status == 429:
            if not answer.getheader("Retry-After"): wrong.append("429 without Retry-After")
        elif answer.status != 200 or (n % 2 == 0 and not text.endswith("data: [DONE]\n\n")):
            wrong.append("%d: %d %s" % (n, answer.status, text[-200:]))
    except Exception as error:
        wrong.append("%d: %r" % (n, error))
threads = [threading.Thread(target=client, args=(n,)) for n in range(count)]
for t in threads: t.start()
for t in threads: t.join()
# Those of clients that left are free within 250 ms, on a machine that is not busy.
for _ in range(200):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    c.request("GET", "/metrics")
    metrics = c.getresponse().read().decode()
    if 'qkv_slots_active{model="model"} 0' in metrics: break
    time.sleep(0.05)
else: wrong.append(metrics)
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
END
  for _ in $(seq 100); do
    lines=$(grep -c '/v1/completions' "$folder/err")
    [ "$lines" -lt "$clients" ] || break
    sleep 0.05
  done
  [ "$lines" = "$clients" ] || bad "$clients requests made $lines lines of the log"
  grep -q 'one [0-9]' "$folder/err" && bad 'the log has the text of a request'
  # A stream in progress ends whole.
  python3 - "$port" "$pid" <<'END' || bad 'a stream did not end well'
import http.client, json, os, signal, sys
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=30)
c.request("POST", "/v1/completions", json.dumps({"prompt": "x", "max_tokens": 2000, "logit_bias": {"470": -100}, "stream": True}))
answer = c.getresponse()
answer.read(100)
os.kill(int(sys.argv[2]), signal.SIGTERM)
sys.exit(0 if answer.read().endswith(b"data: [DONE]\n\n") else 1)
END
  wait "$pid" || bad "SIGTERM under a stream ended the server with exit $?"
  # Schemas of 12 KB that are hard to compile: nobody waits for them, and neither does the end of the server.
  start
  python3 - "$port" "$pid" <<'END' || bad 'hard schemas held up others'
import http.client, json, os, signal, sys, threading, time
port, pid = int(sys.argv[1]), int(sys.argv[2])
def choices(one): return {"allOf": [{"anyOf": [one(i) for i in range(60)]} for _ in range(3)]}
empty = {"type": "string", "pattern": "(?:(?:" + "(?:)" * 900 + "){1000}){1000}"}
common = {"$defs": {"a": {"enum": list(range(1000))}, "b": {"enum": list(range(500, 1500))}},
          "type": "object", "properties": {"p%d" % i: {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]} for i in range(500)}}
typed = {"oneOf": [{"type": "string", **choices(lambda i: {"maxLength": i})}, {"type": "integer", **choices(lambda i: {"maximum": i})}]}
untyped = {"oneOf": [choices(lambda i: {"type": "string", "maxLength": i}), choices(lambda i: {"type": "integer", "maximum": i})]}
wrong, waits, slow, lock = [], [], [], threading.Lock()
def ask(schema=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    body = {"prompt": "one", "max_tokens": 4, "seed": 1}
    if schema: body["response_format"] = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    start = time.monotonic()
    c.request("POST", "/v1/completions", json.dumps(body))
    answer = c.getresponse()
    return answer.status, answer.read().decode(), time.monotonic() - start
def hard(schema):
    try: answer = ask(schema)
    except OSError as error: answer = (0, repr(error), 0)
    with lock: slow.append(answer)
def client():
    for _ in range(5):
        status, text, seconds = ask()
        with lock:
            waits.append(seconds)
            if status != 200: wrong.append("%d %s" % (status, text))
def run(clients):
    threads = [threading.Thread(target=one, args=args) for one, *args in clients]
    for t in threads: t.start()
    return threads
for t in run([(client,)] * 20): t.join()
alone = sorted(waits)
waits.clear()
schemas = [untyped, untyped, typed, common, empty]
compiling = run([(hard, schema) for schema in schemas])
time.sleep(0.1)
for t in run([(client,)] * 20): t.join()
unfinished = len(schemas) - len(slow)
for t in compiling: t.join()
for status, text, _ in slow:
    if status not in (200, 400): wrong.append("%d %s" % (status, text))
if unfinished == 0: wrong.append("all schemas were compiled before the 20 clients had their answers")
both = sorted(waits)
print("100 answers to 20 clients: median %.3f s, longest %.3f s; beside hard schemas %.3f s, %.3f s; those took %s s"
      % (alone[50], alone[-1], both[50], both[-1], " ".join("%d: %.2f" % (s, t) for s, _, t in sorted(slow, key=lambda a: a[2]))))
slow.clear()
compiling = run([(hard, untyped)] * 8)
time.sleep(0.3)
start = time.monotonic()
os.kill(pid, signal.SIGTERM)
for t in compiling: t.join()
print("SIGTERM during 8 compilations: answers %s after %.2f s" % (sorted(s for s, _, _ in slow), time.monotonic() - start))
if [s for s, _, _ in slow].count(503) < 7: wrong.append("they were not told that the server stops")
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
END
  wait "$pid" || bad "SIGTERM under compilations ended the server with exit $?"
else
  echo 'left out without python3: clients'
fi

exit "$failed"

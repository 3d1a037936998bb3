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
else
  echo 'left out without python3: clients'
fi

exit "$failed"

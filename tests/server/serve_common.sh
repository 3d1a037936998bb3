# Models and a server for shell tests; read by those that need one.  serve_models FOLDER; serve_start MODEL... OPTIONS...; serve_stop
# shellcheck shell=sh disable=SC2034,SC2154
# $qkv is the program, $folder a temporary folder, $golden tests/golden.

serve_models() {  # random weights: chatty and caller have templates whose tool calls are Hermes' and Llama 3's, plain has none
  printf '{"model_type": "llama", "vocab_size": 608, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "max_position_embeddings": 4096, "bos_token_id": 0, "eos_token_id": 470}' >"$folder/config.json"
  for name in chatty caller plain; do
    "$qkv" new --spec "$folder/config.json" --seed "${#name}" --out "$folder/$name" >/dev/null
    cp "$golden/tokenizers/qwen2/tokenizer.json" "$folder/$name"
  done
  messages='{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}'
  printf '%s' "{% if tools %}<tool_call>{{ tools | tojson }}{% endif %}$messages" >"$folder/chatty/chat_template.jinja"
  printf '%s' "{% if tools %}<|python_tag|>{{ tools | tojson }}{% endif %}$messages" >"$folder/caller/chat_template.jinja"
}

serve_start() {  # serve_start ARGUMENTS...: $pid and $port of a server that is ready; its log is $folder/err
  : >"$folder/out"
  "$qkv" serve "$@" --port 0 --threads 1 >"$folder/out" 2>"$folder/err" &
  pid=$!
  for _ in $(seq 400); do
    if grep -q 'ready:' "$folder/err" || ! kill -0 "$pid" 2>/dev/null; then break; fi
    sleep 0.05
  done
  port=$(sed -n 's/^listening on .*:\([0-9]*\)$/\1/p' "$folder/out")
  [ -n "$port" ] || bad "the server printed no port: $(cat "$folder/out" "$folder/err")"
}

serve_stop() {  # serve_stop SIGNAL: it ends well
  kill "-$1" "$pid"
  wait "$pid" || bad "SIG$1 ended the server with exit $?: $(cat "$folder/err")"
}

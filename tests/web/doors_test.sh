#!/bin/sh
# doors_test.sh QKV [FOLDER]: the doors of the page in a real browser; screenshots stay in FOLDER if one is given.
# ./qkv test --web installs what it needs. Without that it fails: a test that was asked for must run.
set -eu
qkv=$1
here=$(dirname -- "$(readlink -f -- "$0")")
golden=$here/../golden

need() {
  echo "the browser test needs $1; ./qkv test --web installs it"
  exit 1
}
command -v node >/dev/null || need node
CHROMIUM=$(command -v chromium) || need chromium
export CHROMIUM
[ -d "$here/node_modules/playwright-core" ] || need playwright-core

folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$folder"' EXIT
decoder='"vocab_size":484,"hidden_size":64,"intermediate_size":96,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,
  "rms_norm_eps":1e-5,"max_position_embeddings":512,"bos_token_id":0,"eos_token_id":483,"rope_theta":10000.0,"tie_word_embeddings":false,"initializer_range":0.2'
echo "{\"model_type\":\"llama\",$decoder}" >"$folder/plain.json"
echo "{\"model_type\":\"mixtral\",\"num_local_experts\":8,\"num_experts_per_tok\":2,\"sliding_window\":null,$decoder}" >"$folder/experts.json"
cat >"$folder/translator.json" <<'JSON'
{"model_type":"marian","vocab_size":124,"d_model":32,"encoder_layers":2,"decoder_layers":2,"encoder_attention_heads":4,"decoder_attention_heads":4,
 "encoder_ffn_dim":48,"decoder_ffn_dim":48,"activation_function":"relu","scale_embedding":true,"share_encoder_decoder_embeddings":true,
 "tie_word_embeddings":true,"max_position_embeddings":128,"init_std":0.3,"pad_token_id":0,"decoder_start_token_id":0,"eos_token_id":1,"forced_eos_token_id":1}
JSON
for model in plain experts translator; do
  "$qkv" new --spec "$folder/$model.json" --seed 5 --out "$folder/$model" >/dev/null 2>&1
  tokenizer=qwen2
  [ "$model" = translator ] && tokenizer=unigram
  cp "$golden/tokenizers/$tokenizer/tokenizer.json" "$folder/$model/"
done
"$qkv" serve "$folder/plain" "$folder/translator" "$folder/experts" --port 0 >"$folder/log" 2>&1 &
server=$!
base=
for _ in $(seq 600); do
  base=$(sed -n 's/.*\(http:\/\/127\.0\.0\.1:[0-9]*\).*/\1/p' "$folder/log" | head -1)
  [ -n "$base" ] && node -e "fetch('$base/page/models').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))" && break
  sleep 0.2
done
node "$here/doors_test.mjs" "$base" "${2:-}"

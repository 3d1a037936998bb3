#!/bin/sh
# page_test.sh QKV [FOLDER]: the live page in a real browser; screenshots stay in FOLDER if one is given.
# ./qkv test --web installs what it needs. Without that it fails: a test that was asked for must run.
set -eu
qkv=$1
here=$(dirname -- "$(readlink -f -- "$0")")

need() {
  echo "the browser test needs $1; ./qkv test --web installs it"
  exit 1
}
command -v node >/dev/null || need node
CHROMIUM=$(command -v chromium) || need chromium
export CHROMIUM
for module in playwright-core axe-core; do
  [ -d "$here/node_modules/$module" ] || need "$module"
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Weights large enough that every head matters.
printf '{"model_type": "llama", "vocab_size": 484, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "initializer_range": 0.25,
  "num_attention_heads": 4, "max_position_embeddings": 512, "bos_token_id": 0, "eos_token_id": 470}' >"$folder/config.json"
for name in plain '<img src=x onerror=window.boom=1>'; do
  "$qkv" new --spec "$folder/config.json" --seed "${#name}" --out "$folder/$name" >/dev/null
  cp "$here/../golden/tokenizers/qwen2/tokenizer.json" "$folder/$name"
done
node "$here/page_test.mjs" "$qkv" "$folder" "${2:-}"

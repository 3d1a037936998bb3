# What the tests of the library share: a prefix with an installed copy, and small models of any weights.
# Sets: qkv build source made model translator prefix
set -eu
qkv=$1 build=$2 source=$3
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
prefix=$made/prefix
export LC_ALL=C.UTF-8

cmake --install "$build" --prefix "$prefix" --component library >"$made/install.log"
lib=$(dirname "$(find "$prefix" -name libqkv.so)")
mkdir -p "$prefix/bin" && ln -s "$qkv" "$prefix/bin/qkv"
PATH=$prefix/bin:$PATH
LD_LIBRARY_PATH=$lib
PKG_CONFIG_PATH=$lib/pkgconfig
export PATH LD_LIBRARY_PATH PKG_CONFIG_PATH

small_models() {
  printf '%s' '{"model_type": "llama", "vocab_size": 484, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "max_position_embeddings": 256, "bos_token_id": 0, "eos_token_id": 1}' >"$made/config.json"
  model=$made/model translator=$made/translator
  qkv new --spec "$made/config.json" --seed 1 --out "$model" >"$made/new.log"
  cp "$source/tests/golden/tokenizers/qwen2/tokenizer.json" "$model"
  printf '{"model_type": "t5", "vocab_size": 124, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2,
    "feed_forward_proj": "relu", "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0,
    "tie_word_embeddings": true, "is_encoder_decoder": true}' >"$made/t5.json"
  qkv new --spec "$made/t5.json" --seed 1 --out "$translator" >"$made/new.log"
  cp "$source/tests/golden/tokenizers/unigram/tokenizer.json" "$translator"
}

failed=0
fail() {
  echo "$*"
  failed=1
}

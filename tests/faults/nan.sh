#!/bin/sh
# A model with one number that is not finite: every command that reports refuses, and prints no finding.
# shellcheck source=tests/faults/common.sh
. "$(dirname "$0")/common.sh"
made=$folder
printf '{"model_type": "mixtral", "vocab_size": 600, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
  "num_attention_heads": 2, "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
  "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2}' >"$made/decoder.json"
printf '{"model_type": "t5", "vocab_size": 124, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2,
  "feed_forward_proj": "relu", "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0,
  "tie_word_embeddings": true, "is_encoder_decoder": true}' >"$made/t5.json"
"$qkv" new --spec "$made/decoder.json" --seed 3 --out "$made/decoder" >/dev/null || bad 'no decoder was made'
"$qkv" new --spec "$made/t5.json" --seed 3 --out "$made/t5" >/dev/null || bad 'no T5 was made'
cp "$golden/tokenizers/llama2/tokenizer.json" "$made/decoder"
cp "$golden/tokenizers/unigram/tokenizer.json" "$made/t5"
printf 'the cat\tthe dog\n' >"$made/pairs"
few='--data world --tokens 800 --window 32'

plant() {  # plant FOLDER TENSOR BYTES: the first number of a tensor becomes these bytes
  file=$1/model.safetensors
  length=$(od -An -tu8 -N8 "$file" | tr -d ' ')
  at=$(head -c $((8 + length)) "$file" | tail -c "$length" | sed -n "s/.*\"$2\":{[^}]*\"data_offsets\":\[\([0-9]*\),.*/\1/p")
  [ -n "$at" ] || bad "no tensor $2 in $file"
  # shellcheck disable=SC2059
  printf "$3" | dd of="$file" bs=1 seek=$((8 + length + at)) conv=notrunc 2>/dev/null
}

refused() {  # refused TEXT ARGUMENTS...: exit 2, TEXT on stderr, nothing on stdout
  text=$1
  shift
  "$qkv" "$@" --threads 1 >"$made/out" 2>"$made/err" </dev/null
  got=$?
  [ "$got" = 2 ] || bad "qkv $*: exit $got, not 2: $(head -c 300 "$made/out") $(cat "$made/err")"
  [ ! -s "$made/out" ] || bad "qkv $*: printed $(head -c 300 "$made/out")"
  grep -q -- "$text" "$made/err" || bad "qkv $*: '$text' is not in: $(cat "$made/err")"
}

all_refuse() {  # all_refuse DECODER T5 WEIGHT_OF_DECODER WEIGHT_OF_T5
  # shellcheck disable=SC2086
  for report in '' --json; do
    refused "$3" look "$1" 'the cat sat' $report
    refused "$3" heads "$1" $few $report
    refused "$3" lens "$1" $few $report
    refused "$3" twins "$1" $few $report
    refused "$3" cut "$1" --heads L0H0 $few $report
    refused "$3" route "$1" $few $report
    refused "$3" taps "$1" 'the cat' $report
    refused "$3" attribute "$1" 'the cat sat' $report
    refused "$4" align "$2" 'the cat' 'the cat' $report
    refused "$4" look "$2" 'the cat' --target 'the cat' $report
  done
  # shellcheck disable=SC2086
  {
    refused "$3" heads "$1" --data world --tokens 8000 --window 32 --labels world
    refused "$3" lens "$1" $few --train
    refused "$3" cut "$1" --by gradient --keep 60% $few
    refused "$3" taps "$1" --cost
    refused "$3" taps "$1" 'the cat' --sites 0.attn.z --npz "$made/none.npz"
    refused "$3" look "$1" 'the cat' --html "$made/none.html" --npz "$made/none.npz" --out "$made/none.json"
    refused "$4" align "$2" --data "$made/pairs"
  }
  expect 2 nan eval "$1" --data "$golden/tokenizers/training_text.txt" --window 32 --threads 1
  expect 2 nan run "$1" 'the cat' --max-new 3 --threads 1
  case $out in *\\u000a* | *hint:*hint:*) bad "a message holds the hint of another: $out" ;; esac
  for left in "$made"/none.*; do [ ! -e "$left" ] || bad "$left was written"; done
}

cp -r "$made/decoder" "$made/whole"
plant "$made/decoder" model.layers.1.self_attn.q_proj.weight '\000\000\300\177'                # NaN
plant "$made/t5" decoder.block.1.layer.1.EncDecAttention.k.weight '\000\000\300\177'
all_refuse "$made/decoder" "$made/t5" "weight 'layers.1.attn.q'" "weight 'dec.layers.1.cross.k'"
refused 'decoder: its weight' look "$made/decoder" 'the cat'

# The other kinds, with one command: infinity, a number bf16 rounds to infinity, the head alone.
for kind in 'model.layers.0.self_attn.k_proj.weight \000\000\200\177 layers.0.attn.k' \
  'lm_head.weight \000\000\300\377 head' \
  'model.layers.0.block_sparse_moe.gate.weight \000\000\300\177 layers.0.mlp.router'; do
  # shellcheck disable=SC2086
  set -- $kind
  rm -rf "$made/other"
  cp -r "$made/whole" "$made/other"
  plant "$made/other" "$1" "$2"
  refused "weight '$3'" look "$made/other" 'the cat sat'
done
rm -rf "$made/other"
cp -r "$made/whole" "$made/other"
plant "$made/other" model.layers.0.self_attn.v_proj.weight '\377\377\177\177'  # the largest float
refused 'all weights are finite' lens "$made/other" --data world --tokens 400 --window 32 --dtype bf16

# One that cannot be quantised is named, and not what the op calls its input.
rm -rf "$made/other"
cp -r "$made/whole" "$made/other"
plant "$made/other" model.layers.0.block_sparse_moe.experts.0.w2.weight '\000\000\300\177'
expect 2 "the weight 'layers.0.mlp.experts.down'" quantize "$made/other" --to q8 --out "$made/none.q8" --threads 1

# So is one that stays as it is.
rm -rf "$made/other"
cp -r "$made/whole" "$made/other"
plant "$made/other" model.norm.weight '\000\000\300\177'
expect 2 "the weight 'norm" quantize "$made/other" --to q8 --out "$made/none.q8" --threads 1
[ ! -e "$made/none.q8" ] || bad 'a refused quantization left a folder'

# A row of the embedding that the text does not use is nobody's business where the head is another matrix.
rm -rf "$made/other"
cp -r "$made/whole" "$made/other"
plant "$made/other" model.embed_tokens.weight '\000\000\300\177'
expect 0 'tokens' look "$made/other" 'the cat sat' --threads 1 --json
exit "$failed"

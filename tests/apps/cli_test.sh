#!/bin/sh
# cli_test.sh QKV: what the program prints and exits with, as a person or a script sees it.
qkv=$1
failed=0

expect() {  # expect EXIT_CODE TEXT ARGUMENTS...: the code, and the text somewhere in stdout or stderr
  code=$1 text=$2
  shift 2
  out=$("$qkv" "$@" 2>&1 </dev/null)
  got=$?
  if [ "$got" != "$code" ]; then
    echo "qkv $*: exit $got, not $code: $out"
    failed=1
  fi
  case $out in
    *"$text"*) ;;
    *)
      echo "qkv $*: '$text' is not in: $out"
      failed=1
      ;;
  esac
}

expect 0 'qkv 0.1.0' --version
expect 0 'demo' --help
expect 0 'This build holds' demo
expect 0 '"version"' demo --json
expect 0 'Examples' tokenizer train --help
expect 2 'none.txt' tokenizer train --vocab 300 --out "${TMPDIR:-/tmp}" /none.txt
expect 2 'llama3' tokenizer train --vocab 300 --pattern lama3 /none.txt
tokenizers=$(dirname "$0")/../golden/tokenizers
expect 0 '180 of 180 equal' tokenize "$tokenizers/gpt2/tokenizer.json" --verify "$tokenizers/gpt2/vectors.json"
expect 1 'of 180 equal' tokenize "$tokenizers/gpt2" --verify "$tokenizers/llama3/vectors.json"
expect 1 '"differences"' tokenize "$tokenizers/gpt2" --json --verify "$tokenizers/llama3/vectors.json"
expect 0 '0 221 328' tokenize "$tokenizers/gpt2" --ids '<|endoftext|> 。'
expect 0 '[。]' tokenize "$tokenizers/gpt2" '。早'
expect 0 '"continues": true' tokenize "$tokenizers/gpt2" --spans --json '早'
expect 2 'no such file' tokenize /none/tokenizer.json x
expect 2 'hint' tokenize "$tokenizers/training_text.txt" x
expect 2 'demo' dmeo
expect 0 '' world --lines 0
expect 0 'root' world --labels conllu --lines 1
expect 0 '。' world --lang zh --lines 3
expect 0 '"mentions"' world --lang zh --json --lines 1
expect 2 'one language' world --lang pairs --labels coref
expect 2 'leave out --json' world --labels conllu --json
expect 2 '--lang' world --lang fr
expect 2 '--lines' world --lines -1
expect 2 '训练' 训练
expect 2 '--jsno' demo --jsno

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf 'one two three four\n\n你好，世界\n' >"$folder/text"
printf 'a\tb\nno tab\n' >"$folder/bad.tsv"
expect 0 '2 documents, 35 tokens' data pack --tokenizer bytes --split-validation 0 --out "$folder/data" "$folder/text"
expect 2 'exists already' data pack --tokenizer bytes --out "$folder/data" "$folder/text"
expect 2 'bad.tsv, line 2: 1 column' data pack --tokenizer bytes --format tsv --out "$folder/pairs" "$folder/bad.tsv"
expect 2 'no documents' data pack --tokenizer bytes --out "$folder/none" -
expect 0 '16 to 31' data stats "$folder/data"
expect 0 '"tokens": 35' data stats "$folder/data" --json
expect 0 'every file is what was written' data verify "$folder/data"
printf 'x' | dd of="$folder/data/train-00000.tokens" bs=1 seek=2 conv=notrunc 2>/dev/null
expect 1 'train-00000.tokens is not what was written' data verify "$folder/data"
expect 2 'no manifest.json' data stats "$folder"
expect 0 'BLEU     100.00' score --tokenize zh "$folder/text" "$folder/text"
expect 0 '"chrf2pp"' score --metric chrf --json "$folder/text" "$folder/text"
expect 2 '3 lines' score "$folder/bad.tsv" "$folder/text"
expect 0 'Presets:' info --help
expect 0 '124,439,808' info --preset gpt2
expect 0 '"parameters": 63082496' info --preset transformer-base --json
expect 2 'did you mean gpt2-xl' info --preset gpt2-xxl
expect 2 'no such file or folder' info "$folder/nowhere"
printf '{"model_type": "gpt2", "vocab_size": 50, "n_positions": 16, "n_embd": 8, "n_layer": 2, "n_head": 2}' \
  >"$folder/config.json"
expect 0 '2 layers, width 8' info "$folder/config.json"
expect 0 'my model' new --spec "$folder/config.json" --seed 1 "$folder/my model"
expect 2 'exists already' new --spec "$folder/config.json" --seed 1 "$folder/my model"
expect 0 '2 layers, width 8' info "$folder/my model"
expect 2 '--seed' new --preset gpt2 "$folder/other"
expect 2 'there is no preset' new --preset gpt3 --seed 1 "$folder/other"
if "$qkv" demo --json | grep -q "$(printf '\033')"; then
  echo 'qkv demo --json: colour where there is no terminal'
  failed=1
fi

golden=$(dirname "$0")/../golden
made=$(mktemp -d)
expect 0 'Examples' convert --help
expect 0 'is written' convert "$golden/llama" "$made/模型.gguf" --dtype q8_0
expect 0 'is written' convert "$made/模型.gguf" "$made/back"
expect 2 'is already there' convert "$golden/llama" "$made/模型.gguf"
expect 2 'GGUF has no place' convert "$golden/bart" "$made/bart.gguf"
expect 2 'in a Hugging Face folder' convert "$golden/llama" "$made/other" --dtype q8_0
expect 2 '--dtype' convert "$golden/llama" "$made/other" --dtype int3
expect 2 'no such file' convert "$made/nowhere" "$made/other"

expect 0 'Examples' quantize --help
expect 0 'random ids' quantize "$golden/llama" "$made/量化" --to q8
expect 0 '"top1_agreement"' quantize "$golden/t5" "$made/t5" --to q4 --json
expect 0 'q8/32' info "$made/量化"
cp "$golden/llama/io.safetensors" "$made/量化"
expect 1 'mean KL' verify "$made/量化"
expect 0 'is written' convert "$made/量化" "$made/plain"
expect 2 'quantised already' quantize "$made/量化" "$made/other" --to q4
expect 2 'is already there' quantize "$golden/llama" "$made/量化" --to q4
expect 2 'is already there' quantize "$golden/llama" "$golden/llama" --to q4
expect 2 '--to' quantize "$golden/llama" "$made/other" --to q5
expect 2 'no matrix' quantize "$golden/llama" "$made/other" --to q4 --group 256
expect 2 'tokenizer' quantize "$golden/llama" "$made/other" --to q4 --data "$golden/README.md"

# Running: a small model with random weights, with a tokenizer and a template beside it.
model=$made/模型
printf '%s' '{"model_type": "llama", "vocab_size": 484, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
  "num_attention_heads": 4, "max_position_embeddings": 256, "bos_token_id": 0, "eos_token_id": 1}' >"$made/config.json"
expect 0 '' new --spec "$made/config.json" --seed 1 "$model"
expect 2 'has no tokenizer' run "$model" hello
expect 0 '' run "$model" --ids '5, 6 7' --max-new 4
[ "$(printf '%s' "$out" | wc -w)" = 4 ] || { echo "run --ids: not 4 ids: $out"; failed=1; }
expect 2 'token ids' run "$model" --ids 'x'
expect 2 '484' run "$model" --ids '5 484'
cp "$golden/tokenizers/qwen2/tokenizer.json" "$model"
expect 0 '"ended": "length"' run "$model" '床前明月光 👍🏽' --max-new 3 --json --logprobs 2 --seed 3 --temperature 1
expect 0 '[2 of 2]' run "$model" hello --n 2 --temperature 1 --max-new 3
expect 2 'the same' run "$model" hello --n 2
expect 2 'temperature' run "$model" hello --temperature -1
expect 2 'temperature' run "$model" hello --temperature nan
expect 2 'top_p' run "$model" hello --top-p 2
expect 2 'ID=VALUE' run "$model" hello --logit-bias 5
expect 2 'stop string' run "$model" hello --stop "$(printf '%2000s' x)"
expect 2 '--json' run "$model" hello --logprobs 1
expect 2 'room for 3' run "$model" 'one two three four' --context 3
expect 2 '256' run "$model" hello --context 257
expect 2 '--unneeded' run "$model" hello --unneeded
expect 2 'no chat template' chat "$model"
printf '%s' "{% for m in messages %}<|im_start|>{{ m.role }} {{ m.content }}<|im_end|>{% endfor %}<|im_start|>" \
  >"$model/chat_template.jinja"
say() {  # say TEXT LINES ARGUMENTS...: a conversation with these lines prints this
  text=$1 lines=$2
  shift 2
  out=$(printf "$lines" | "$qkv" chat "$model" --max-new 5 "$@" 2>&1)
  case $out in
    *"$text"*) ;;
    *) echo "qkv chat $*: '$text' is not in: $out"; failed=1 ;;
  esac
}
say '' 'hello\n你好\n'
[ "$(printf '%s\n' "$out" | wc -l)" -ge 2 ] || { echo "qkv chat: two lines, not two answers: $out"; failed=1; }
say 'tokens were known' 'one two three four five six seven\nagain\n' --stats
[ "$(printf '%s\n' "$out" | grep -c '^0 of ')" = 1 ] || { echo "qkv chat: it was read again: $out"; failed=1; }
say '/undo' '/help\n'
say 'taken back' 'one\n/undo\n/undo\n/exit\nnever answered\n'
say 'nothing was said yet' '/undo\n'
say 'there is no command' '/etc\n'
say 'room for 20' 'one two three four five six seven eight nine ten\n' --context 20
say 'NAME=VALUE' 'x\n' --set x
say 'is not UTF-8' 'x\n' --stop "$(printf '\377')"
rm -r "$made"
exit "$failed"

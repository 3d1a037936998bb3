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
expect 0 '--lang' demo --help
expect 2 '--lang' demo --lang fr
expect 0 'Examples' tokenizer train --help
expect 2 'none.txt' tokenizer train --vocab 300 --out "${TMPDIR:-/tmp}" /none.txt
expect 2 'llama3' tokenizer train --vocab 300 --pattern lama3 /none.txt
tokenizers=$(dirname "$0")/../golden/tokenizers
expect 0 '180 of 180 equal' verify "$tokenizers/gpt2/tokenizer.json" --vectors "$tokenizers/gpt2/vectors.json"
expect 0 '180 of 180 equal' verify "$tokenizers/gpt2"
expect 1 'of 180 equal' verify "$tokenizers/gpt2" --vectors "$tokenizers/llama3/vectors.json"
expect 1 '"differences"' verify "$tokenizers/gpt2" --json --vectors "$tokenizers/llama3/vectors.json"
expect 0 '0 221 328' tokenize "$tokenizers/gpt2" --ids '<|endoftext|> 。'
expect 0 '[。]' tokenize "$tokenizers/gpt2" '。早'
expect 0 '"continues": true' tokenize "$tokenizers/gpt2" --spans --json '早'
expect 2 'no such file' tokenize /none/tokenizer.json x
expect 2 'hint' tokenize "$tokenizers/training_text.txt" x
expect 2 'demo' dmeo
expect 2 'not in range 1 to 1024' run model prompt --n 0
expect 2 'PROMPT is required' run model
expect 2 '--by requires --keep' cut model --by random
expect 2 '--heads excludes --by' cut model --by random --keep 60% --heads L0
expect 2 'Exactly 1 option' new --out folder --seed 1
expect 2 'Exactly 1 option' new --out folder --preset a --spec b --seed 1
expect 2 'A subcommand is required' tokenizer
expect 0 '' world --lines 0
expect 0 'root' world --labels conllu --lines 1
expect 0 '。' world --lang zh --lines 3
expect 0 '"mentions"' world --lang zh --json --lines 1
expect 2 'one language' world --lang pairs --labels coref
expect 0 '"target_words"' world --labels align --lines 1
expect 0 '8-grams of characters' world --lang zh --ngrams 8 --lines 20
expect 2 'one language' world --lang pairs --ngrams 8
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
expect 0 'every file is what was written' verify "$folder/data"
printf 'x' | dd of="$folder/data/train-00000.tokens" bs=1 seek=2 conv=notrunc 2>/dev/null
expect 1 'train-00000.tokens is not what was written' verify "$folder/data"
expect 2 'did you mean' verify wrold  # a built-in model is meant
expect 2 'built-in models are world' tokenize wrold text
expect 2 'no manifest.json' data stats "$folder"
expect 0 'BLEU     100.00' score --tokenize zh "$folder/text" "$folder/text"
expect 0 '"chrf2pp"' score --metric chrf --json "$folder/text" "$folder/text"
expect 2 '3 lines' score "$folder/bad.tsv" "$folder/text"
# The seed draws other test sets, and the same ones again.
i=0
while [ $i -lt 30 ]; do
  echo "the $i th line is a sentence of some words number $((i * i % 17))" >>"$folder/reference"
  echo "the $i th line was a sentence of words number $((i * i % 13))" >>"$folder/hypothesis"
  i=$((i + 1))
done
seeded() { "$qkv" score --seed "$1" --json "$folder/hypothesis" "$folder/reference"; }
[ "$(seeded 1)" = "$(seeded 1)" ] || { echo 'qkv score: the same seed gave two intervals' && failed=1; }
[ "$(seeded 1)" != "$(seeded 2)" ] || { echo 'qkv score: --seed changes no interval' && failed=1; }
expect 0 'Presets:' info --help
expect 0 '124,439,808' info --preset gpt2
expect 0 '"parameters": 63082496' info --preset transformer-base --json
expect 2 'did you mean gpt2-xl' info --preset gpt2-xxl
expect 0 'OPT 125M to 66B' info --families
expect 2 'no such file or folder' info "$folder/nowhere"
printf '{"model_type": "gpt2", "vocab_size": 50, "n_positions": 16, "n_embd": 8, "n_layer": 2, "n_head": 2}' \
  >"$folder/config.json"
expect 0 '2 layers, width 8' info "$folder/config.json"
expect 0 'my model' new --spec "$folder/config.json" --seed 1 --out "$folder/my model"
expect 2 'exists already' new --spec "$folder/config.json" --seed 1 --out "$folder/my model"
expect 0 '2 layers, width 8' info "$folder/my model"
expect 2 '--seed' new --preset gpt2 --out "$folder/other"
expect 2 'there is no preset' new --preset gpt3 --seed 1 --out "$folder/other"
golden=$(dirname "$0")/../golden
made=$(mktemp -d)
expect 0 'Examples' convert --help
printf '{"model_type": "llama4"}' >"$made/llama4.json"
expect 2 'the nearest known is llama4_text' info "$made/llama4.json"
expect 0 'is written' convert "$golden/llama" --out "$made/模型.gguf" --dtype q8_0
expect 0 'is written' convert "$made/模型.gguf" --out "$made/back"
expect 2 'exists already' convert "$golden/llama" --out "$made/模型.gguf"
expect 2 'GGUF has no place' convert "$golden/bart" --out "$made/bart.gguf"
expect 2 'in a Hugging Face folder' convert "$golden/llama" --out "$made/other" --dtype q8_0
expect 2 '--dtype' convert "$golden/llama" --out "$made/other" --dtype int3
expect 2 'no such file' convert "$made/nowhere" --out "$made/other"

expect 0 'Examples' quantize --help
expect 0 'random ids' quantize "$golden/llama" --out "$made/量化" --to q8
expect 0 '"top1_agreement"' quantize "$golden/t5" --out "$made/t5" --to q4 --json
expect 0 'q8/32' info "$made/量化"
cp "$golden/llama/io.safetensors" "$made/量化"
expect 1 'mean KL' verify "$made/量化"
expect 0 'is written' convert "$made/量化" --out "$made/plain"
expect 2 'quantised already' quantize "$made/量化" --out "$made/other" --to q4
expect 2 'exists already' quantize "$golden/llama" --out "$made/量化" --to q4
expect 2 'exists already' quantize "$golden/llama" --out "$golden/llama" --to q4
expect 2 '--to' quantize "$golden/llama" --out "$made/other" --to q5
expect 2 'no matrix' quantize "$golden/llama" --out "$made/other" --to q4 --group 256
expect 2 'tokenizer' quantize "$golden/llama" --out "$made/other" --to q4 --data "$golden/README.md"

# Running: a small model with random weights, with a tokenizer and a template beside it.
model=$made/模型
printf '%s' '{"model_type": "llama", "vocab_size": 484, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
  "num_attention_heads": 4, "max_position_embeddings": 256, "bos_token_id": 0, "eos_token_id": 1}' >"$made/config.json"
expect 0 '' new --spec "$made/config.json" --seed 1 --out "$model"
expect 2 'has no tokenizer' run "$model" hello
expect 0 '' run "$model" --ids '5, 6 7' --max-new 4
[ "$(printf '%s' "$out" | wc -w)" = 4 ] || { echo "run --ids: not 4 ids: $out"; failed=1; }
expect 2 'token ids' run "$model" --ids 'x'
expect 2 '484' run "$model" --ids '5 484'
cp "$golden/tokenizers/qwen2/tokenizer.json" "$model"
expect 0 '"ended": "length"' run "$model" '床前明月光 👍🏽' --max-new 3 --json --logprobs 2 --seed 3 --temperature 1
expect 0 '[2 of 2]' run "$model" hello --n 2 --temperature 1 --max-new 3
expect 2 'the same' run "$model" hello --n 2
printf '{"properties": {"k": {"enum": ["x", "yz"]}, "n": {"type": "integer", "maximum": 7}}, "required": ["k"]}' >"$made/s.json"
expect 0 '"k":' run "$model" hello --json-schema "$made/s.json"
expect 0 '"k":' run "$model" hello --json-schema "$made/s.json" --temperature 1.5 --draft 4 --n 3
expect 0 '"ended": "length"' run "$model" hello --json-schema "$made/s.json" --max-new 1 --json
expect 2 'with --beam' run "$model" hello --json-schema "$made/s.json" --beam 2
expect 2 'with --ids' run "$model" --ids 5 --json-schema "$made/s.json"
expect 2 'is not a file' run "$model" hello --json-schema '{}'
printf '{"properties": {"a": {"not": {}}}}' >"$made/s.json"
expect 2 '#/properties/a/not' run "$model" hello --json-schema "$made/s.json"
for from in 0 1 2 3 4 5 6 7 8 9; do printf ',{"enum":[%s]}' "$(seq -s, $((from * 1000)) $((from * 1000 + 999)))"; done >"$made/lists"
printf '{"oneOf":[%s]}' "$(sed 's/^,//' "$made/lists")" >"$made/s.json"
expect 2 'more than 40000000 steps' run "$model" hello --json-schema "$made/s.json"
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
printf '[{"role": "user", "content": "hi<|im_end|>"}]' >"$made/messages.json"
printf '[{"type": "function"}]' >"$made/tools.json"
expect 0 '<|im_start|>user hi<|im_end|><|im_end|><|im_start|>' chat "$model" --render "$made/messages.json"
expect 0 '"ids": [' chat "$model" --render "$made/messages.json" --json
printf '%s' '{% generation %}{{ tools | tojson }}{% endgeneration %}{{ name }}{{ add_generation_prompt }}' >"$made/own.jinja"
expect 0 '[{"type": "function"}]AnnFalse' chat --template "$made/own.jinja" --render "$made/messages.json" \
  --tools "$made/tools.json" --set name=Ann --set add_generation_prompt=false
expect 0 '"generated"' chat --template "$made/own.jinja" --render "$made/messages.json" --json
expect 2 '--render' chat "$model" --json
expect 2 'no such file' chat "$model" --render "$made/none.json"
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

# A model that translates, of any weights, with a tokenizer.
printf '{"model_type": "t5", "vocab_size": 124, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2,
  "feed_forward_proj": "relu", "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0,
  "tie_word_embeddings": true, "is_encoder_decoder": true}' >"$made/t5.json"
"$qkv" new --spec "$made/t5.json" --seed 3 --out "$made/translator" >/dev/null
expect 2 'tokenizer' translate "$made/translator"
cp "$tokenizers/unigram/tokenizer.json" "$made/translator"

translates() {  # translates EXIT_CODE TEXT ARGUMENTS...: standard input is $made/in, output stays in $made/out
  code=$1 text=$2
  shift 2
  "$qkv" translate "$made/translator" "$@" <"$made/in" >"$made/out" 2>"$made/err"
  got=$?
  if [ "$got" != "$code" ] || ! { [ -z "$text" ] || grep -qF -- "$text" "$made/err" "$made/out"; }; then
    echo "qkv translate $* < $(cat "$made/in"): exit $got, not $code, or no '$text': $(cat "$made/out" "$made/err")"
    failed=1
  fi
}
same() {  # same FILE FILE
  cmp -s "$1" "$2" || { echo "differ: $(head -n 20 "$1" "$2")"; failed=1; }
}

# Lines keep their order, empty ones too, whatever is translated beside them.
printf 'the cat sat on the mat\n\n一只猫坐在垫子上。\nthe\n   \nwhere is the dog and what is it doing there\n' >"$made/in"
cp "$made/in" "$made/all"
translates 0 '' --max-new 12 --batch 64
cp "$made/out" "$made/together"
: >"$made/alone"
while IFS= read -r line; do
  printf '%s\n' "$line" >"$made/in"
  translates 0 '' --max-new 12 --batch 4
  cat "$made/out" >>"$made/alone"
done <"$made/all"
same "$made/together" "$made/alone"
cp "$made/all" "$made/in"
translates 0 '' --max-new 12 --batch 1 --threads 1
same "$made/together" "$made/out"
[ "$(wc -l <"$made/out")" = 6 ] && [ "$(sed -n 2p "$made/out")" = '' ] || { echo 'lines were lost'; failed=1; }
translates 0 '"line":6' --max-new 12 --n 2 --json
translates 0 '' --max-new 12 --beam 1 --prefix 'x: '
: >"$made/in"
translates 0 ''
[ -s "$made/out" ] && { echo 'no lines became some'; failed=1; }
# What cannot be translated ends it; what was before it is written.
{ printf 'the cat\n'; printf 'a \377 b\n'; printf 'the dog\n'; } >"$made/in"
translates 2 'line 2 is not UTF-8' --max-new 4
[ "$(wc -l <"$made/out")" = 1 ] || { echo 'the line before a broken one is missing'; failed=1; }
{ printf 'the cat\n\n'; printf 'cat %.0s' 1 2 3 4 5 6 7 8 9; printf '\n'; } >"$made/in"
translates 2 'line 3 has' --max-new 4 --context 8
[ "$(wc -l <"$made/out")" = 2 ] || { echo 'the lines before a long one are missing'; failed=1; }
translates 2 'beams' --beam 2 --n 3
translates 2 '--max-new is 8 but' --max-new 8 --context 8
expect 2 'translates nothing' translate "$golden/llama"
expect 2 'translates nothing' translate "$golden/bert"
# run --beam and translate find the same text, whatever generation_config.json says.
printf 'the cat sat on the mat\n' >"$made/in"
search='"decoder_start_token_id": 0, "no_repeat_ngram_size": 1, "max_length": 12, "eos_token_id": [1, 9, 26, 38, 112]'
plain_search=
for field in '"num_beams": 4' '"early_stopping": true' '"length_penalty": -4' '"forced_bos_token_id": 65' \
  '"suppress_tokens": [65]' '"bad_words_ids": [[65]]' '"max_new_tokens": 2' \
  '"max_new_tokens": 3, "forced_eos_token_id": 33'; do
  printf '{%s, %s}' "$search" "$field" >"$made/translator/generation_config.json"
  translates 0 '' --beam 4
  "$qkv" run "$made/translator" - --beam 4 <"$made/in" >"$made/ran" 2>"$made/err"
  cmp -s "$made/out" "$made/ran" ||
    { echo "with $field translate wrote '$(cat "$made/out")' but run '$(cat "$made/ran" "$made/err")'"; failed=1; }
  [ "$(cat "$made/out")" != "$plain_search" ] || { echo "$field changed nothing: $plain_search"; failed=1; }
  plain_search=${plain_search:-$(cat "$made/out")}
done
printf '{"num_beams": 0}' >"$made/translator/generation_config.json"
translates 2 "'num_beams' is 0"
rm "$made/translator/generation_config.json"

printf 'the cat\tdie Katze\n猫\tKatze\n' >"$made/pairs.tsv"
expect 0 'perplexity' eval "$made/translator" --data "$made/pairs.tsv"
expect 0 '"mode": "pairs"' eval "$made/translator" --data "$made/pairs.tsv" --json
expect 2 'line 1 has 0 tabs' eval "$made/translator" --data "$made/all"
expect 2 '--data is required' eval "$made/translator"

printf '{"model_type": "llama", "vocab_size": 600, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
  "num_attention_heads": 2, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2}' >"$made/llama.json"
"$qkv" new --spec "$made/llama.json" --seed 3 --out "$made/reader" >/dev/null
cp "$tokenizers/llama2/tokenizer.json" "$made/reader"
expect 0 'each begins with <s>' eval "$made/reader" --data "$tokenizers/training_text.txt" --window 32
expect 0 '"bits_per_byte"' eval "$made/reader" --data "$tokenizers/training_text.txt" --stride 9 --json
expect 2 '--window is 65 but' eval "$made/reader" --data "$tokenizers/training_text.txt" --window 65
expect 2 'a stride of 32' eval "$made/reader" --data "$tokenizers/training_text.txt" --window 32 --stride 32
expect 2 'too few' eval "$made/reader" --data /dev/null
# Looking inside.
say='The cat 小猫🙂 sat'
expect 0 'guesses layer by layer' look "$made/reader" "$say"
expect 0 'the path of token 2' look "$made/reader" "$say" --token 2
expect 0 'head L1H1' look "$made/reader" "$say" --layer 1 --head 1
expect 2 'no layer 2' look "$made/reader" "$say" --layer 2
expect 2 'L0H0 to L1H1' look "$made/reader" "$say" --layer 0 --head 2
expect 2 'of which layer' look "$made/reader" "$say" --head 1
expect 2 'no token 99: the text has tokens 0 to' look "$made/reader" "$say" --token 99
expect 2 'not UTF-8' look "$made/reader" "$(printf 'a\377')"
expect 2 'the text is empty' look "$made/reader" ''
expect 2 'was made for 64' look "$made/reader" "$(cat "$tokenizers/training_text.txt")"
expect 2 'leave it out' look "$made/reader" "$say" --target x
expect 0 'wrote' look "$made/reader" "$say" --npz "$made/a.npz" --html "$made/a.html" --out "$made/a.json"
"$qkv" look "$made/reader" "$say" --json | cmp - "$made/a.json" || failed=1
if "$qkv" look "$made/reader" "$say" | cat - "$made/a.json" "$made/a.html" | grep -q "$(printf '\357\277\275')"; then
  echo 'look: a replacement character'
  failed=1
fi
if command -v python3 >/dev/null; then
  python3 - "$made/a.npz" "$made/a.json" <<'END' || { echo 'look: the files are not what they should be'; failed=1; }
import ast, base64, json, math, struct, sys, zipfile
arrays = {}
with zipfile.ZipFile(sys.argv[1]) as z:
    assert z.testzip() is None
    for name in z.namelist():
        b = z.read(name)
        size = struct.unpack("<H", b[8:10])[0]
        head = ast.literal_eval(b[10:10 + size].decode())
        arrays[name[:-4]] = (head["shape"], head["descr"], b[10 + size:])
report = json.load(open(sys.argv[2]))
tokens = len(report["tokens"])
shape, kind, data = arrays["L1.probs"]
assert shape == (tokens, 2, tokens) and kind == "<f4", shape
probs = struct.unpack("<%df" % (len(data) // 4), data)
head = report["heads"][3]
assert head["name"] == "L1H1"
drawn = base64.b64decode(head["map"])
for i in range(tokens):
    row = probs[(i * 2 + 1) * tokens:(i * 2 + 2) * tokens]
    assert abs(sum(row) - 1) < 1e-5
    assert all(abs(drawn[i * tokens + j] - 255 * math.sqrt(row[j])) < 0.51 for j in range(tokens))
    key, weight = head["top"][i][0]
    assert row[key] == max(row) and abs(weight - row[key]) < 1e-4
words = arrays["tokens"]
width = int(words[1][2:])
told = [words[2][i * width:(i + 1) * width].rstrip(b"\0").decode() for i in range(tokens)]
assert told == [t["text"] for t in report["tokens"]]
logits = struct.unpack("<%df" % (len(arrays["logits"][2]) // 4), arrays["logits"][2])[-arrays["logits"][0][1]:]
best = math.exp(max(logits)) / sum(math.exp(x) for x in logits)
assert abs(report["ladder"]["guesses"][-1][-1][0]["p"] - best) < 1e-4
END
fi
printf '{"sentence_good": "The cats sleep.", "sentence_bad": "The cats sleeps."}\n{"sentence_good": "猫在睡觉。", "sentence_bad": "猫睡觉在。"}\n' >"$made/agreement.jsonl"
expect 0 '2 pairs   agreement' eval "$made/reader" --data "$made/agreement.jsonl"
mkdir "$made/pairs"
expect 2 'has no .jsonl files' eval "$made/reader" --data "$made/pairs"
cp "$made/agreement.jsonl" "$made/pairs/a.jsonl"
cp "$made/agreement.jsonl" "$made/pairs/b.jsonl"
expect 0 '4 pairs   all' eval "$made/reader" --data "$made/pairs"
printf '{"sentence_good": "The cats sleep."}\n' >>"$made/pairs/b.jsonl"
expect 2 'line 3 is no minimal pair' eval "$made/reader" --data "$made/pairs"
expect 2 'no perplexity' eval "$golden/bert" --data "$made/all"
# Looking: taps, the lens, attribution, alignment.
expect 0 'attn.probs' taps
expect 0 '"transformer_lens"' taps --json
expect 0 '1.attn.z' taps "$model"
expect 0 'cross.1.attn.q' taps "$made/translator"
expect 0 '1.attn.probs' taps "$model" '床前明月光' --sites blocks.1.attn.hook_pattern,final
for looked in "$made/量化" "$golden/deepseek_v3"; do
  expect 0 'same bits' taps "$looked" --cost
  case $out in *OTHER*) echo "taps --cost: looking changed the logits: $out"; failed=1 ;; esac
done
expect 2 'did you mean 0.attn.probs' taps "$model" hello --sites 0.attn.prob
expect 2 'the nearest is 0.resid.pre, what that norm reads' taps "$model" hello --sites blocks.0.ln1.hook_scale
expect 2 'this llama has 0.* to 1.*' taps "$model" hello --sites 9.attn.q
expect 2 'for a text' taps "$model" --sites 0.attn.q
expect 2 'about a model' taps --cost
# Token ids instead of text, with models that have no tokenizer; arrays for NumPy.
expect 0 '#5' look "$golden/llama" '5, 9 2' --ids
expect 0 '"id":9' look "$golden/llama" '5 9 2' --ids --json --out "$made/ids.json"
expect 0 'X0 ' look "$golden/t5" '5 9 2' --target '7 8' --ids
expect 0 '0.attn.z' taps "$golden/bert" '5 9 2' --ids --sites 0.attn.z
expect 2 'the id 96 but' look "$golden/llama" '5 96' --ids
expect 2 "is token ids, but there is 'x'" taps "$golden/llama" '5 x' --ids
expect 2 'no tokenizer' look "$golden/llama" 'the cat'
for i in $(seq 20); do echo "5 9 $i 7 3 9 5"; done >"$made/ids.txt"
expect 0 '8 heads, 20 texts' heads "$golden/llama" --data "$made/ids.txt" --ids
echo 5 99 >>"$made/ids.txt"
expect 2 'ids.txt line 21: token 1 has the id 99' heads "$golden/llama" --data "$made/ids.txt" --ids
expect 0 'wrote' taps "$golden/mixtral" '5 9 2' --ids --sites attn.z,1.mlp.post,attn.scores,mlp.out,final,logits --npz "$made/taps.npz"
if command -v python3 >/dev/null; then
  python3 - "$made/taps.npz" <<'END' || failed=1
import ast, struct, sys, zipfile
shapes = {}
with zipfile.ZipFile(sys.argv[1]) as file:
    assert file.testzip() is None
    for name in file.namelist():
        data = file.read(name)
        assert data[:6] == b'\x93NUMPY', name
        length, = struct.unpack('<H', data[8:10])
        head = ast.literal_eval(data[10:10 + length].decode())
        assert head['descr'] == '<f4' and not head['fortran_order'], head
        count = 4
        for n in head['shape']:
            count *= n
        assert len(data) == 10 + length + count, (name, head)
        shapes[name] = head['shape']
assert shapes['L0.attn.z.npy'][0] == 3 and len(shapes['L1.attn.z.npy']) == 3, shapes
assert shapes['logits.npy'] == (3, 96) and shapes['L0.mlp.out.npy'] == shapes['final.npy'], shapes
END
fi
expect 2 'no tap' taps "$golden/llama" '5 9' --ids --sites 0.attn.zz --npz "$made/none.npz"
expect 2 'values for a text' taps "$golden/llama" --npz "$made/none.npz"
[ ! -e "$made/none.npz" ] || { echo 'taps --npz: a refused command left a file'; failed=1; }
expect 0 'n = ' lens "$model" --data world --tokens 400 --window 40
expect 0 '"settled_at"' lens "$model" --data world:zh --tokens 400 --window 40 --json
expect 0 'have not seen' lens "$model" --data world --tokens 400 --window 20 --train
expect 2 'too few' lens "$model" --data world --tokens 20 --window 40 --train
expect 2 'world:pairs' lens "$made/translator" --data world
expect 0 'exact' attribute "$model" '床前明月光'
expect 0 '"difference"' attribute "$model" hello --token 0 --json
expect 2 'no token 99' attribute "$model" hello --token 99
expect 2 'tokens: ' attribute "$model" hello --for 'two words'
expect 2 'is  --for TOKEN' attribute "$model" hello --target two
expect 0 'X1H1' attribute "$made/translator" 'the cat' --target 'the'
expect 0 'residual stream' patch "$model" --clean '床前明月光' --corrupt '床后明月光' --answer a --wrong b
expect 0 'L1H1' patch "$model" --clean 'hello' --corrupt 'hallo' --answer a --wrong b --heads L1
expect 0 '"restored"' patch "$model" --clean 'hello' --corrupt 'hallo' --answer a --wrong b --json
expect 0 'cross-attention' patch "$made/translator" --clean 'the cat' --corrupt 'cat the' --target the --answer the --wrong '</s>'
expect 2 'patching puts' patch "$model" --clean 'hello' --corrupt 'hello there'
expect 2 'the same' patch "$model" --clean hello --corrupt hello
expect 2 'tokens: ' patch "$model" --clean hello --corrupt hallo --answer 'two words'
expect 2 'is empty' patch "$model" --clean '' --corrupt hallo
expect 2 'no token 99' patch "$model" --clean hello --corrupt hallo --token 99
expect 2 'has no source' patch "$model" --clean hello --corrupt hallo --target two
# What the error of several tokens proposes is taken; so is every number of it.
expect 2 'name one by its number' patch "$model" --clean hello --corrupt hallo --answer 'two words'
number=$(printf '%s\n' "$out" | sed -n "s/.* --answer '\(#[0-9]*\)'$/\1/p")
expect 0 "\"id\": ${number#\#}" patch "$model" --clean hello --corrupt hallo --answer "$number" --wrong b --json
expect 2 'name one by its number' attribute "$model" hello --for 'two words'
expect 0 "\"id\": ${number#\#}" attribute "$model" hello --for "$number" --json
expect 2 'there is no token 99999' patch "$model" --clean hello --corrupt hallo --answer '#99999'
# Token ids instead of text, where there is no tokenizer.
expect 0 "'#8'" patch "$golden/llama" --ids --clean '5 9 2' --corrupt '5, 8 2' --answer 7 --wrong 8
expect 0 '"row": 1' patch "$golden/t5" --ids --clean '5 9 2' --corrupt '5 8 2' --target 4 --answer 7 --wrong '#8' --json
expect 2 'is a token id' patch "$golden/llama" --ids --clean '5 9 2' --corrupt '5 8 2' --answer seven
expect 2 "is token ids, but there is 'x 2'" patch "$golden/llama" --ids --clean '5 x 2' --corrupt '5 8 2'
expect 0 "'#7' rather than '#8'" attribute "$golden/llama" --ids '5 9 2' --for 7 --against 8
expect 0 'X1H1' attribute "$golden/t5" --ids '5 9 2' --target '4 7'
expect 2 'no tokenizer' attribute "$golden/llama" 'the cat'
head -n 8 "$made/ids.txt" >"$made/few.txt"
expect 0 'of 8 texts' lens "$golden/llama" --ids --data "$made/few.txt"
expect 0 'after    ' cut "$golden/llama" --ids --data "$made/few.txt" --heads L0H1 --prompt '5 9 2'
case $out in
  *'prompt   5 9 2'*) ;;
  *) echo "cut --ids --prompt: $out"; failed=1 ;;
esac
expect 2 'id 999' cut "$golden/llama" --ids --data "$made/few.txt" --heads L0H1 --prompt '5 999'
expect 2 'ids.txt line 21' lens "$golden/llama" --ids --data "$made/ids.txt"
for command in lens heads 'cut --heads L0H1'; do
  # shellcheck disable=SC2086
  expect 2 '--ids without --data' $command "$golden/llama" --ids
done
# Without --data: the stories of the world, the pairs of a model that translates.
expect 0 '"data": "world:pairs"' lens "$made/translator" --tokens 400 --json
expect 0 '"data": "world"' lens "$model" --tokens 400 --window 40 --json
expect 0 '"data": "world:pairs"' heads "$made/translator" --tokens 900 --json
expect 2 '--labels conllu without --data' heads "$model" --labels conllu
expect 2 'no head' patch "$model" --clean hello --corrupt hallo --answer a --wrong b --heads L9H9
expect 2 '--clean' patch "$model" --corrupt hallo
expect 0 'wrote' patch "$model" --clean hello --corrupt hallo --answer a --wrong b --html "$made/patch.html"
grep -q '"report":"patch"' "$made/patch.html" || { echo 'patch --html: no report in the page'; failed=1; }
expect 0 'layer 0' align "$made/translator" 'the cat' 'the cat sat'
expect 0 '-1' align "$made/translator" 'the cat' 'the cat' --pharaoh
expect 0 '-0' align "$made/translator" --data "$made/pairs.tsv"
expect 0 '"weights"' align "$made/translator" --data "$made/pairs.tsv" --json
expect 2 'cross-attention' align "$model" 'the cat' 'the cat'
expect 2 'no layer 7' align "$made/translator" 'the cat' 'the cat' --layer 7
expect 2 'a source and a target' align "$made/translator" 'the cat'
gold='{"source": "the cat", "target": "cat the", "source_words": [[0, 3], [4, 7]], "target_words": [[0, 3], [4, 7]], "pairs": [[0, 1], [1, 0]]}'
for _ in $(seq 40); do echo "$gold"; done >"$made/gold.jsonl"
expect 0 'IBM model 1' align "$made/translator" --gold "$made/gold.jsonl"
expect 0 '"where_chosen"' align "$made/translator" --gold "$made/gold.jsonl" --json
echo "$gold" >"$made/gold.jsonl"
expect 2 '1 gold sentence pairs' align "$made/translator" --gold "$made/gold.jsonl"
echo '{"source": 3}' >"$made/gold.jsonl"
expect 2 'gold.jsonl:1' align "$made/translator" --gold "$made/gold.jsonl"
# Training: twelve steps, the same bits when stopped after six and with two processes.
small="--set steps=12 --set schedule.decay=4 --set schedule.warmup=2 --set evaluate.every=6 --set evaluate.samples=1
  --set data.stories=300 --set data.validation=0.02 --set micro_batches=2 --set sequence=32 --set batch_tokens=256 --set checkpoint.every=6
  --set model.hidden_size=32 --set model.intermediate_size=64 --set model.num_hidden_layers=1 --set tokenizer.vocab=400
  --set model.num_attention_heads=4 --set model.num_key_value_heads=4"
sum_of() { sha256sum <"$1/last/model.safetensors"; }
expect 0 'shakespeare-char' train --list
# shellcheck disable=SC2086
{
  expect 0 'the model:' train world --out "$made/跑" --threads 1 $small
  expect 0 '' run "$made/跑/best" 'The cat' --max-new 3
  expect 0 'none found' heads "$made/跑/best" --data world --tokens 1500 --window 32
  expect 0 '"report": "heads"' heads "$made/跑/best" --data world --tokens 1500 --window 32 --json
  expect 0 'L0H0' heads "$made/跑/best" --data world:zh:echo --tokens 2000 --window 32 --json
  expect 2 "no stories of the kind 'ecko'" heads "$made/跑/best" --data world:ecko
  expect 0 'without attention' heads "$made/跑/best" --data world --labels world --tokens 12000 --out "$made/heads.json"
  grep -q '"interval95"' "$made/heads.json" || { echo 'heads: no interval in its JSON'; failed=1; }
  expect 2 'an interval needs 20' heads "$made/跑/best" --data "$folder/text"
  expect 2 'text:1 has 1 columns' heads "$made/跑/best" --data "$folder/text" --labels conllu
  expect 2 'do not belong' heads "$made/跑/best" --data "$folder/text" --labels world
  expect 2 '--labels' heads "$made/跑/best" --data world --labels words
  expect 0 'held-out loss' train world --out "$made/run2" --threads 2 $small
  [ "$(sum_of "$made/跑")" = "$(sum_of "$made/run2")" ] || { echo 'train: 1 and 2 threads differ'; failed=1; }
  rm -r "$made/run2/checkpoints/step-00000012"
  expect 0 'done after 12 steps' train --resume --out "$made/run2"
  [ "$(sum_of "$made/跑")" = "$(sum_of "$made/run2")" ] || { echo 'train: a resumed run differs'; failed=1; }
  # Watched: the same bits; a run that goes on has each snapshot once.
  expect 0 'watching cost' train world --watch --out "$made/watched" --threads 2 $small
  [ "$(sum_of "$made/跑")" = "$(sum_of "$made/watched")" ] || { echo 'train: a watched run differs'; failed=1; }
  taken=$(ls "$made/watched/watch")
  case $taken in
    *step-00000000.safetensors*step-00000012.safetensors*) ;;
    *) echo "train --watch: no first and last snapshot: $taken"; failed=1 ;;
  esac
  rm -r "$made/watched/checkpoints/step-00000012"
  expect 0 'watching cost' train --resume --out "$made/watched"
  [ "$taken" = "$(ls "$made/watched/watch")" ] || { echo 'train --watch: resumed with other snapshots'; failed=1; }
  [ "$(grep -c '"step":12.*watch_share' "$made/watched/log.jsonl")" = 1 ] || { echo 'train --watch: not logged'; failed=1; }
  expect 0 'parameters' train world --plan --out "$made/run3" $small
  expect 2 'exists already' train world --out "$made/run2" $small
}
# Characters as tokens need nothing but --set; a sample has a heading and a mark before each line; --set while resuming.
yes 'ab cd' | head -400 >"$made/lines.txt"
tiny="--threads 1 --set tokenizer.train=char --set steps=2 --set sequence=32 --set batch_tokens=64 --set evaluate.samples=2
  --set model.hidden_size=32 --set model.intermediate_size=64 --set model.num_hidden_layers=1"
# shellcheck disable=SC2086
sampled=$("$qkv" train text --data "$made/lines.txt" --out "$made/chars" $tiny 2>/dev/null)
echo "$sampled" | grep -q '^step      2  a sample, 1 of 2:$' || { echo "train: a sample without its heading: $sampled"; failed=1; }
echo "$sampled" | sed -n '/a sample, 1/,/^done/p' | grep -qvE '^(step|done|    \|)' && { echo "train: lines of a sample without a mark: $sampled"; failed=1; }
expect 0 'done after 4 steps' train --resume --out "$made/chars" --set steps=4
expect 2 'model.hidden_size: 16, was 32' train --resume --out "$made/chars" --set model.hidden_size=16
expect 2 "did you mean 'num_hidden_layers'" train text --data "$made/lines.txt" --out "$made/none" --set model.num_hidden_layer=8
[ ! -e "$made/none" ] || { echo 'train: a refused model left a folder'; failed=1; }
# Cutting: what a head is worth, and a smaller model that every command takes.
best="$made/跑/best" few="--data world --tokens 900 --window 32 --threads 1"
# shellcheck disable=SC2086
{
  expect 0 'KL(before, after)' cut "$best" --heads L0H1 $few
  expect 0 '"interval95"' cut "$best" --heads L0H0,L0H2 --with resample --json $few
  expect 0 'times as fast' cut "$best" --by gradient --keep 50% --out "$made/小" $few
  expect 0 'Heads were cut' info "$made/小"
  expect 0 '' run "$made/小" 'The cat' --max-new 3
  expect 2 'exists already' cut "$best" --heads L0H1 --out "$made/小" $few
  expect 2 'left without a head' cut "$best" --heads L0 --out "$made/none" $few
  expect 2 "no head 'L9H9'" cut "$best" --heads L9H9 $few
  expect 2 'leaves no head' cut "$best" --by random --keep 0% $few
  expect 2 'cuts nothing' cut "$best" --by random --keep 100% $few
  expect 2 'attentions keeps one' cut "$best" --by random --keep 1% $few
  expect 2 'a share of the heads' cut "$best" --by random --keep some $few
  expect 2 'nothing to cut' cut "$best" $few
  expect 2 'no experts' cut "$best" --experts L0E1 $few
  expect 0 'pairs compared' twins "$best" $few
  expect 2 'no experts' route "$golden/llama" --data world
  expect 0 '' train experts --out "$made/moe" --threads 1 $small --set steps=2 --set schedule.decay=1 --set schedule.warmup=1
  expect 0 'by chance' route "$made/moe/last" $few
  expect 0 'of 8 experts' cut "$made/moe/last" --experts L0E1 --out "$made/moe3" $few
  [ ! -e "$made/none" ] || { echo 'cut: what was refused left something'; failed=1; }
}
if command -v mpirun >/dev/null; then
  for zero in 0 2; do
    # shellcheck disable=SC2086
    mpirun --allow-run-as-root --oversubscribe -n 2 "$qkv" train world --out "$made/ranks$zero" --threads 1 $small \
      --set zero=$zero >"$made/ranks.log" 2>&1 || { cat "$made/ranks.log"; failed=1; }
    [ "$(sum_of "$made/跑")" = "$(sum_of "$made/ranks$zero")" ] || { echo "train: 2 ranks, zero $zero, differ"; failed=1; }
  done
fi
expect 0 'Examples' movie --help
# The demo on a run that is trained already; a run of another language or no run at all is said.
for lang in en zh; do
  mkdir "$made/demo-$lang"
  # shellcheck disable=SC2086
  expect 0 'snapshots' train world --watch --out "$made/demo-$lang/run" --threads 2 $small --set data.world=$lang --json
done
QKV_MODELS=$made/no-models # it goes on without the built-in model
export QKV_MODELS
expect 0 'demo-en/demo.html' demo --out "$made/demo-en"
"$qkv" demo --out "$made/demo-en" --json >"$made/demo.json" 2>/dev/null || { echo 'demo --json failed'; failed=1; }
expect 0 '没有它们会怎样' demo --out "$made/demo-zh" --lang zh
expect 2 'holds a demo with --lang zh' demo --out "$made/demo-zh"
expect 2 "no demo's folder" demo --out "$golden"
for part in tokens ladder heads story written cuts movie; do
  grep -q "\"$part\"" "$made/demo.json" || { echo "demo: no $part in its report"; failed=1; }
done
unset QKV_MODELS
expect 0 'KL(model || unigram)' movie "$made/watched"
expect 0 '"report":"movie"' movie "$made/watched" --json
expect 0 'the page:' movie "$made/watched" --html "$made/电影.html" --out "$made/movie.json"
grep -q '</html>' "$made/电影.html" && grep -q '"importance_in_layer"' "$made/movie.json" || { echo 'movie: no page'; failed=1; }
mkdir "$made/models"
expect 0 'is written' models --pack "$made/watched" --out "$made/models/world"
QKV_MODELS=$made/models
export QKV_MODELS
expect 0 'every file is what was written' verify world
expect 0 ' tokens, ' tokenize world text
cp -r "$made/models/world" "$made/damaged" && printf ' ' >>"$made/damaged/config.json"
expect 1 'config.json' verify "$made/damaged"
expect 0 '"movie": true' models --json
expect 0 'of each the best head' demo --out "$made/demo-en"
expect 0 '每种任务列出最好的头' demo --out "$made/demo-zh" --lang zh
expect 0 '"built_in"' demo --out "$made/demo-en" --json
mkdir "$made/folders" && mv "$made/demo-zh" "$made/folders/qkv-demo-zh" # a folder for each language
(cd "$made/folders" && "$qkv" demo --lang zh 2>&1) | grep -q 'qkv-demo-zh/demo.html' || { echo 'demo: not in qkv-demo-zh'; failed=1; }
expect 0 'KL(model || unigram)' movie world
expect 0 '' run world 'The cat' --max-new 3
expect 0 'decoder-only' info builtin:world
expect 2 "did you mean 'world'" run wrold hi
expect 2 'qkv train translator' run translator hi
# They lie beside an installed program, or in the source tree of one that was built there.
mkdir -p "$made/prefix/bin" "$made/prefix/share/qkv"
cp "$qkv" "$made/prefix/bin/qkv" && cp -r "$made/models" "$made/prefix/share/qkv"
env -u QKV_MODELS "$made/prefix/bin/qkv" info builtin:world | grep -q 'decoder-only' || { echo 'models: none of an installed program'; failed=1; }
rm -r "$made/prefix"
source=$(cd "$(dirname "$0")/../.." && pwd -P)
env -u QKV_MODELS "$qkv" models --json | grep -qF "\"$source/models/world\"" || { echo "models: not those of $source"; failed=1; }
printf x >>"$made/models/world/tokenizer.json"
expect 2 'qkv train world' look world hi
expect 0 'goes on without it' demo --out "$made/demo-en"
unset QKV_MODELS
expect 2 'has no snapshots' movie "$made/跑"
expect 2 'there is no' movie "$made/none"
printf 'x' >>"$made/watched/watch/step-00000012.safetensors"
expect 2 'step-00000012.safetensors' movie "$made/watched"
expect 2 "did you mean 'steps'" train world --out "$made/run4" --set stps=1
expect 2 "did you mean 'world'" train worl --out "$made/run4"
expect 2 'no such file' train shakespeare-char --data "$made/none.txt" --out "$made/run4"
expect 2 'none.txt: there is no such file' train world --data "$made/none.txt" --out "$made/run4"
# shellcheck disable=SC2086
expect 2 'evaluate.prompts' train world --plan --out "$made/run4" --threads 1 $small --set evaluate.samples=1 \
  --set "evaluate.prompts=[\"$(awk 'BEGIN { while (n++ < 200) printf "the cat " }')\"]"
[ ! -e "$made/run4" ] || { echo 'train --plan: left a folder'; failed=1; }
: >"$made/empty.txt"
expect 2 'is empty' train shakespeare-char --data "$made/empty.txt" --out "$made/run4"
printf 'short' >"$made/short.txt"
expect 2 'a window is 64' train shakespeare-char --data "$made/short.txt" --out "$made/run4"
printf 'a\377b' >"$made/bad.txt"
expect 2 'UTF-8' train shakespeare-char --data "$made/bad.txt" --out "$made/run4"
expect 2 'no run' train --resume --out "$made/run4"
[ ! -e "$made/run4" ] || { echo 'train: a run that never began left something'; failed=1; }

expect 0 'sixteen-heads' lab --list
expect 0 '因果' lab --list
expect 0 'verdict: seen' lab causality --threads 1 --out "$made/lab.json" --html "$made/lab.html"
grep -q '"report":"labs"' "$made/lab.html" || { echo 'lab --html: no report in the page'; failed=1; }
expect 2 'both go to standard output' lab causality --json --html -
expect 2 '--size' lab causality --size 0
grep -q '"verdict": "seen"' "$made/lab.json" || { echo 'lab: no verdict in its JSON'; failed=1; }
expect 2 'did you mean induction' lab inducton
expect 2 'needs 3 at least' lab causality --seeds 2
expect 2 'which lab' lab

rm -r "$made"
exit "$failed"

#!/bin/sh
# Templates, messages, settings and tokenizers that are made to do harm end with exit code 2 and a reason, in seconds.
# shellcheck source=tests/faults/common.sh
. "$(dirname "$0")/common.sh"
depth=20000
[ "$form" = short ] || depth=2000000
repeat() { awk -v n="$1" -v s="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%s", s }'; }
write() { printf '%s' "$2" >"$folder/$1"; }  # write NAME TEXT
limited() { timeout 60 "$qkv" "$@"; }
refused() {  # refused TEXT ARGUMENTS...
  text=$1
  shift
  out=$(limited "$@" 2>&1 </dev/null)
  code=$?
  [ "$code" = 2 ] || bad "qkv $1 $2 ...: exit $code, not 2: $(printf '%s' "$out" | cut -c 1-300)"
  case $out in
    *"$text"*) ;;
    *) bad "qkv $1 $2 ...: '$text' is not in: $(printf '%s' "$out" | cut -c 1-300)" ;;
  esac
}

write plain.jinja '{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}{{ x }}'
write messages.json '[{"role": "user", "content": "hello"}]'
render() { printf 'chat --template %s --render %s' "$folder/$1" "$folder/$2"; }

# Deep values, wherever they come from. The command line takes 128 KiB in one word, so 20,000 levels are its most.
brackets=$(repeat 20000 '[')$(repeat 20000 ']')
# shellcheck disable=SC2046
refused 'levels deep' $(render plain.jinja messages.json) --set "x=$brackets"
objects=$(repeat 20000 '{"a":')1$(repeat 20000 '}')
# shellcheck disable=SC2046
refused 'levels deep' $(render plain.jinja messages.json) --set "x=$objects"
{
  printf '[{"role": "user", "content": '
  repeat "$depth" '['
  repeat "$depth" ']'
  printf '}]'
} >"$folder/deep.json"
# shellcheck disable=SC2046
refused 'levels deep' $(render plain.jinja deep.json)
# shellcheck disable=SC2046
refused 'levels deep' $(render plain.jinja messages.json) --tools "$folder/deep.json"
write deep.jinja "{% set n = namespace(s={}) %}{% for i in range(9999) %}{% set n.s = {'a': [n.s]} %}{% endfor %}{{ n.s | tojson }}"
# shellcheck disable=SC2046
refused 'levels deep' $(render deep.jinja messages.json)
write keys.jinja "{% set n = namespace(s={}) %}{% for i in range(99999) %}{% set n.s = {(n.s,): 1} %}{% endfor %}{{ n.s == {} }}"
# shellcheck disable=SC2046
refused 'cannot be a key' $(render keys.jinja messages.json)
write loop.jinja '{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}'
# shellcheck disable=SC2046
refused 'levels deep' $(render loop.jinja messages.json)
# What is no JSON is a word, however it begins.
# shellcheck disable=SC2046
expect 0 'hello[[[CLS]' $(render plain.jinja messages.json) --set 'x=[[[CLS]'

# Messages that are none.
for text in '{}' '[]' '"hello"' '[1]' '[{"content": "x"}]' '[{"role": 1}]' '[{"role": "user", "content": 5}]' 'nonsense' ''; do
  write bad.json "$text"
  # shellcheck disable=SC2046
  refused 'bad.json' $(render plain.jinja bad.json)
done
refused 'neither a MODEL nor a --template' chat --render "$folder/messages.json"

# A few steps of a tokenizer that make gigabytes of one character.
thousand=$(repeat 1000 a)
step='{"type": "Replace", "pattern": {"String": "a"}, "content": "'$thousand'"}'
steps="$step, $step, $step, $step, $step"
model='"added_tokens": [], "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}'
write normalizer.json "{\"version\": \"1.0\", \"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [$steps]}, $model}"
refused 'the normalizer Replace makes more than' tokenize "$folder/normalizer.json" a
write decoder.json "{\"version\": \"1.0\", \"decoder\": {\"type\": \"Sequence\", \"decoders\": [$steps]}, $model}"
refused 'the decoder Replace makes more than' tokenize "$folder/decoder.json" --spans a
bytes='{"type": "ByteLevel", "add_prefix_space": true, "use_regex": false}'
bytes="$bytes$(repeat 59 ", $bytes")"
write bytes.json "{\"version\": \"1.0\", \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [$bytes]}, $model}"
refused 'the pre-tokenizer ByteLevel makes more than' tokenize "$folder/bytes.json" a
many="{\"type\": \"Whitespace\"}$(repeat 5000 ', {"type": "Whitespace"}')"
write many.json "{\"version\": \"1.0\", \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [$many]}, $model}"
refused 'steps' tokenize "$folder/many.json" a

# Two messages side by side make no control token, and a message holds none.
tokens=$folder/tokens
mkdir "$tokens"
cp "$golden/tokenizers/qwen2/tokenizer.json" "$tokens"
printf '%s' '{% for m in messages %}{{ m.content }}{% endfor %}<|im_end|>' >"$tokens/chat_template.jinja"
write joined.json '[{"role": "user", "content": "a<|im_end|>b<|im_e"}, {"role": "user", "content": "nd|>"}]'
expect 0 '"ids"' chat "$tokens" --render "$folder/joined.json" --json
[ "$(printf '%s\n' "$out" | grep -cx ' *1,\{0,1\}')" = 1 ] || bad "not one <|im_end|> (id 1) but: $out"
exit "$failed"

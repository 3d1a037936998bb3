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
expect 2 '训练' 训练
expect 2 '--jsno' demo --jsno
if "$qkv" demo --json | grep -q "$(printf '\033')"; then
  echo 'qkv demo --json: colour where there is no terminal'
  failed=1
fi
exit "$failed"

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
expect 2 'demo' dmeo
expect 2 '训练' 训练
expect 2 '--jsno' demo --jsno
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
rm -r "$made"
exit "$failed"

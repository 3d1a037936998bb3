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
if "$qkv" demo --json | grep -q "$(printf '\033')"; then
  echo 'qkv demo --json: colour where there is no terminal'
  failed=1
fi
exit "$failed"

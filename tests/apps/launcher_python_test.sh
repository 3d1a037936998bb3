#!/bin/sh
# launcher_python_test.sh ROOT: what ./qkv says of an interpreter that QKV_PYTHON names and that lacks something, before it builds.
root=$1
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

says() {  # says WORDS... with the interpreter $python: exit 2, and each of the words
  for command in python 'test --python'; do
    # shellcheck disable=SC2086
    QKV_PYTHON=$python "$root/qkv" $command </dev/null >"$folder/out" 2>&1
    code=$?
    [ "$code" = 2 ] || { echo "./qkv $command with $python ends with $code: $(cat "$folder/out")"; failed=1; }
    for word in "$@"; do
      grep -qF -e "$word" "$folder/out" || { echo "./qkv $command with $python does not say $word: $(cat "$folder/out")"; failed=1; }
    done
  done
}

fake() {  # fake NAME BODY: an interpreter
  python=$folder/$1
  printf '#!/bin/sh\n%s\n' "$2" >"$python"
  chmod +x "$python"
}

python=$folder/nothing
says "$python" 'no such program' 'hint'
fake old 'exit 1'
says "$python" '3.9 or later'
# shellcheck disable=SC2016
fake bare 'case "$*" in *numpy*) exit 1 ;; esac'
says "$python" 'has no NumPy' "$python -m pip install numpy"
# shellcheck disable=SC2016
fake headless 'case "$*" in *Python.h*) exit 1 ;; esac'
says "$python" 'headers' 'dev package'
exit $failed

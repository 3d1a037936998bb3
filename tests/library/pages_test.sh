#!/bin/sh
# pages_test.sh QKV BUILD SOURCE: the programs of docs/library.md, compiled and run; what they print and write equals what
# the commands below them print and write, bit for bit.
. "$(dirname "$0")/common.sh"
small_models

# N.cpp and N.sh for each program of the page; a command belongs to the program before it.
awk -v made="$made" '
  /^```(cpp|sh)$/ { kind = substr($0, 4); if (kind == "cpp") ++n; next }
  /^```$/ { kind = ""; next }
  kind != "" { print > (made "/" n "." kind) }' "$source/docs/library.md"

cd "$made"
mkdir pch && echo '#include <qkv/qkv.h>' >pch/all.h
flags="-std=c++20 -Wall -Wextra -Werror -I$prefix/include"
# The header is read once for all of them.
# shellcheck disable=SC2086
${CXX:-c++} $flags -x c++-header pch/all.h -o pch/all.h.gch

compared=0
n=1
while [ -f "$n.cpp" ]; do
  # shellcheck disable=SC2086
  ${CXX:-c++} $flags -include pch/all.h "$n.cpp" -o "program$n" -L"$lib" -lqkv || { fail "program $n does not compile"; n=$((n + 1)); continue; }
  mkdir "ours$n" "theirs$n"
  used=$model
  [ ! -f "$n.sh" ] || ! grep -q TRANSLATOR "$n.sh" || used=$translator
  code=0
  (cd "ours$n" && "../program$n" "$used" >../ours.out 2>../ours.err) || code=$?
  [ "$code" = 0 ] || fail "program $n: exit $code, $(cat ours.err)"
  if [ -f "$n.sh" ]; then
    sed "s|MODEL|$model|g; s|TRANSLATOR|$translator|g" "$n.sh" >command.sh
    (cd "theirs$n" && sh ../command.sh >../theirs.out 2>../theirs.err) || fail "$(cat "$n.sh"): $(cat theirs.err)"
    [ -s theirs.out ] || fail "$(cat "$n.sh") prints nothing"
    cmp -s ours.out theirs.out || fail "program $n prints
$(head -c 400 ours.out)
but $(cat "$n.sh") prints
$(head -c 400 theirs.out)"
    for file in $(cd "ours$n" && find . -name '*.npz' -o -name '*.safetensors'); do
      cmp "ours$n/$file" "theirs$n/$file" || fail "program $n writes another $file"
      compared=$((compared + 1))
    done
  fi
  n=$((n + 1))
done
[ "$n" -ge 11 ] || fail "there are $((n - 1)) programs on the page, not ten"
[ "$compared" -ge 3 ] || fail "only $compared files were compared"
exit "$failed"

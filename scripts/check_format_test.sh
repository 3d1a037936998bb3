#!/bin/sh
# Plants a line that is not formatted and expects check_format.sh to name it.
set -eu
here=$(dirname -- "$(readlink -f -- "$0")")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cp "$here/../.clang-format" "$tree"
mkdir -p "$tree/src/base" "$tree/tests"
printf '#pragma once\n\nint twice(int x);\n' >"$tree/src/base/good.h"
code=0
sh "$here/check_format.sh" "$tree" || code=$?
[ "$code" != 77 ] || exit 77
[ "$code" = 0 ] || { echo "a formatted tree is refused: exit $code"; exit 1; }
for file in src/base/bad.h src/bad.cpp tests/bad.cu; do
  printf 'int twice(int x);\nint   half( int x );\n' >"$tree/$file"
  if out=$(sh "$here/check_format.sh" "$tree"); then echo "$file passes"; exit 1; fi
  case $out in
    *"$file:2"*) ;;
    *) echo "$file:2 is not named: $out"; exit 1 ;;
  esac
  rm "$tree/$file"
done

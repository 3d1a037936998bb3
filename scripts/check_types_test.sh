#!/bin/sh
# check_types.sh must name a type that two files define, and pass what only looks like it.
set -eu

check=$(dirname -- "$(readlink -f -- "$0")")/check_types.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/src/a" "$tree/apps" "$tree/tests/support" "$tree/tests/a"
put() { printf '%s\n' 'namespace qkv {' "$2" '}  // namespace qkv' >"$tree/$1"; }

put src/a/one.h 'struct Once {
};
struct alignas(16) Wide {
};
class Declared;'
put src/a/two.cpp 'namespace {
struct Once {
};
}  // namespace
class Declared {
};
struct Declared::Impl {
};'
put src/a/three.cpp 'struct Other::Impl {
};
struct alignas(16) Wider {
};'
output=$(sh "$check" "$tree" 2>&1) || { echo "FAIL: nothing is twice, but the check said: $output"; exit 1; }

put tests/a/four.cpp 'struct Once {
};
struct alignas(8) Wide {
};'
output=$(sh "$check" "$tree" 2>&1) && { echo "FAIL: Once is twice, but the check passed"; exit 1; }
case $output in
  *'tests/a/four.cpp:2: qkv::Once is also a type of src/a/one.h'*) ;;
  *) echo "FAIL: the check said: $output"; exit 1 ;;
esac
case $output in
  *'qkv::Wide is also a type of src/a/one.h'*) ;;
  *) echo "FAIL: Wide is twice, but the check said: $output"; exit 1 ;;
esac
echo "check_types: good"

#!/bin/sh
# examples_test.sh QKV BUILD SOURCE: the examples, built with find_package against an installed copy and run; the C
# functions from Rust.
. "$(dirname "$0")/common.sh"
small_models

cmake -G Ninja -S "$source/examples" -B "$made/examples" -DCMAKE_PREFIX_PATH="$prefix" >"$made/cmake.log" 2>&1 ||
  { cat "$made/cmake.log"; exit 1; }
ninja -C "$made/examples" >"$made/ninja.log" 2>&1 || { tail -n 30 "$made/ninja.log"; exit 1; }
cd "$made/examples"
for file in "$source"/examples/*.cpp "$source"/examples/*.c; do
  [ "$(wc -l <"$file")" -lt 60 ] || fail "$file has 60 lines or more"
done

run() {  # run NAME ARGUMENTS...: its output is in $out
  name=$1
  shift
  code=0
  out=$("./$name" "$@" 2>"$made/err") || code=$?
  [ "$code" = 0 ] || fail "$name $*: exit $code: $out $(cat "$made/err")"
}
says() {
  case $out in *"$1"*) ;; *) fail "$name: '$1' is not in: $out" ;; esac
}

prompt='Once upon a time'
written=$(qkv run "$model" "$prompt" --max-new 40)
run generate "$model" "$prompt"
says "$prompt$written"
says '20 tokens, length'
says 'ended: c'
run look "$model" 'The cat sat on the'
says 'L1H3 looks at'
says 'layer 1:'
says '1.resid.post ['
run cut "$model" 'The cat sat on the mat'
says 'L1H3 '
says 'over 6 texts'
run train "$made/learner"
says 'step 250: loss 1.'
says ' of 6 tokens'
says 'as it was said: 6'
run serve "$model" 0
says '/v1/models'
says stopped
run plain_c "$model" "$prompt"
says "$written"
says '0.attn.probs ['
for name in generate look cut plain_c; do
  code=0
  "./$name" /no/such/model text >"$made/out" 2>"$made/err" || code=$?
  [ "$code" = 2 ] && grep -q hint "$made/err" || fail "$name /no/such/model: exit $code, $(cat "$made/err")"
done

# pkg-config says the same as find_package, and nothing that C and C++ do not share: Clang refuses -std=c++20 for C.
# shellcheck disable=SC2046
${CC:-cc} -Werror "$source/examples/plain_c.c" -o "$made/by_pkg_config" $(pkg-config --cflags --libs qkv) &&
  [ "$("$made/by_pkg_config" "$model" "$prompt" | head -n 1)" = "$(printf '%s\n' "$written" | head -n 1)" ] ||
  fail 'pkg-config does not lead to the library'

# And so does a project that has qkv as a folder; only planned here, because it builds all of it.
mkdir "$made/whole"
printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(mine CXX)' "add_subdirectory($source qkv EXCLUDE_FROM_ALL)" \
  "add_executable(mine $source/examples/generate.cpp)" 'target_link_libraries(mine qkv::qkv)' >"$made/whole/CMakeLists.txt"
cmake -G Ninja -S "$made/whole" -B "$made/whole/build" -DCMAKE_BUILD_TYPE=Release >"$made/cmake.log" 2>&1 &&
  ninja -C "$made/whole/build" -t inputs mine 2>&1 | grep -q libqkv.so ||
  fail "a project with add_subdirectory does not link libqkv.so: $(tail -n 5 "$made/cmake.log")"

if command -v rustc >/dev/null && rustc --version >/dev/null 2>&1; then
  rustc -O --edition 2021 -L "$lib" -o "$made/plain_rust" "$source/tests/library/plain.rs" 2>"$made/err" ||
    fail "rustc: $(cat "$made/err")"
  out=$("$made/plain_rust" "$model" "$prompt") || fail "plain.rs: $out"
  name=plain.rs
  says "$written"
  says 'threads agree'
else
  echo 'no rustc here: the C functions are tested from C alone'
fi
exit "$failed"

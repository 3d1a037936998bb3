#!/bin/sh
# install_test.sh QKV BUILD SOURCE: what cmake --install makes of a build that has the program alone, as ./qkv builds it; and which flags
# a project gets that has qkv as a folder of its own. Only planned: what would be built is taken from BUILD.
. "$(dirname "$0")/common.sh"

mkdir "$made/whole"
printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(mine CXX)' "add_subdirectory($source qkv)" >"$made/whole/CMakeLists.txt"
plan=$made/whole/build
cmake -G Ninja -S "$made/whole" -B "$plan" -DCMAKE_BUILD_TYPE=Release -DQKV_CUDA=OFF >"$made/cmake.log" 2>&1 || { tail "$made/cmake.log"; exit 1; }
for flag in Werror Wall Wextra Wconversion; do
  if grep -q -e "-$flag" "$plan/build.ninja"; then fail "a project with add_subdirectory is compiled with -$flag"; fi
done

mkdir -p "$plan/qkv/bin" "$plan/qkv/lib"
cp "$build"/bin/qkv "$plan/qkv/bin"
cp "$build"/bin/libqkv_mpi.so "$plan/qkv/bin" 2>/dev/null || :
cmake --install "$plan" --prefix "$made/plain" >"$made/plain.log" 2>&1 || fail "without the library: $(tail -n 5 "$made/plain.log")"
"$made/plain/bin/qkv" version >/dev/null || fail 'the program alone is not installed'
"$made/plain/bin/qkv" info world >/dev/null || fail 'its models are not installed'
grep -q 'target qkv_shared' "$made/plain.log" || fail "it does not say that the library is left out: $(tail -n 5 "$made/plain.log")"
found=$(find "$made/plain" -name '*.cmake' -o -name '*.pc' -o -name '*.h')
[ -z "$found" ] || fail "what leads to a library that is not there is installed: $found"
if cmake --install "$plan" --prefix "$made/plain" --component library >"$made/plain.log" 2>&1; then
  fail 'a library that is not built can be installed'
fi
grep -q 'target qkv_shared' "$made/plain.log" || fail "$(tail -n 5 "$made/plain.log")"

cp -P "$build"/lib/libqkv.so* "$plan/qkv/lib"
cmake --install "$plan" --prefix "$made/plain" >"$made/plain.log" 2>&1 || fail "with the library: $(tail -n 5 "$made/plain.log")"
for file in libqkv.so cmake/qkv/qkvConfig.cmake cmake/qkv/qkvTargets.cmake pkgconfig/qkv.pc; do
  [ -n "$(find "$made/plain" -path "*/$file")" ] || fail "no $file is installed where the library is built"
done

cmake -DQKV_WERROR=ON "$plan" >"$made/cmake.log" 2>&1
for flag in Werror Wall; do
  grep -q -e "-$flag" "$plan/build.ninja" || fail "QKV_WERROR=ON compiles without -$flag"
done
exit "$failed"

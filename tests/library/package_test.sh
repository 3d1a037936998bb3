#!/bin/sh
# package_test.sh QKV BUILD SOURCE: the Debian package has what it says, and what it has works from where it is unpacked.
. "$(dirname "$0")/common.sh"
command -v dpkg-deb >/dev/null && command -v cpack >/dev/null || { echo 'no dpkg-deb or cpack here'; exit 77; }
small_models

(cd "$build" && cpack -G DEB -B "$made/package") >"$made/cpack.log" 2>&1 || { tail -n 20 "$made/cpack.log"; exit 1; }
file=$(find "$made/package" -maxdepth 1 -name 'qkv_*.deb')
dpkg-deb -x "$file" "$made/root"
cd "$made/root/usr"
for part in bin/qkv lib/libqkv.so.0 include/qkv/qkv.h include/qkv/c.h lib/cmake/qkv/qkvConfig.cmake lib/pkgconfig/qkv.pc \
  share/man/man1/qkv.1.gz share/bash-completion/completions/qkv share/zsh/vendor-completions/_qkv share/doc/qkv/copyright \
  share/qkv/models; do
  [ -e "$part" ] || fail "the package has no $part"
done
for name in $(ls "$source/models"); do
  [ "$name" = README.md ] || [ -f "share/qkv/models/$name/config.json" ] || fail "the package has no model $name"
done
depends=$(dpkg-deb -f "$file" Depends)
case $depends in *libc6*) ;; *) fail "it depends on: $depends" ;; esac
case $depends in *mpi*) fail "it asks for MPI: $depends" ;; esac

text=$(bin/qkv run "$model" 'Once upon a time' --max-new 8) || fail 'the packaged program does not run'
[ "$text" = "$(qkv run "$model" 'Once upon a time' --max-new 8)" ] || fail "the packaged program writes: $text"
zcat share/man/man1/qkv.1.gz >"$made/qkv.1"
grep -q '^\.TH QKV 1' "$made/qkv.1" && grep -q '^\.SS "qkv run' "$made/qkv.1" || fail 'the manual page has no qkv run'
if command -v groff >/dev/null; then
  said=$(groff -man -Tutf8 -Kutf8 -ww "$made/qkv.1" 2>&1 >/dev/null | grep -v "can't break line" | head -n 5)
  [ -z "$said" ] || fail "groff: $said"
fi
bash -n share/bash-completion/completions/qkv || fail 'the completion is no bash'
# A program against the headers and the library of the package.
printf '#include <qkv/qkv.h>\n#include <cstdio>\nint main() { std::puts(qkv::version()); }\n' >"$made/version.cpp"
${CXX:-c++} -std=c++20 -Iinclude "$made/version.cpp" -Llib -lqkv -o "$made/version" &&
  [ "$(LD_LIBRARY_PATH=lib "$made/version")" = "$(dpkg-deb -f "$file" Version)" ] || fail 'another version than the package'
exit "$failed"

#!/bin/sh
# headers_test.sh QKV BUILD SOURCE: every public header stands alone and shows nothing of the inside, and the library
# shows nothing but what they declare.
. "$(dirname "$0")/common.sh"

# check_headers FOLDER [PATTERN]: what is wrong with the headers there.
check_headers() {
  for header in "$1"/qkv/${2-*.h}; do
    # Nothing but the library's own and the standard's, whose names have neither a folder nor an end.
    grep -n '^ *# *include' "$header" | grep -v -e '<qkv/[a-z_]*\.h>' -e '<[a-z_]*>' -e '<std[a-z]*\.h>' &&
      echo "${header##*/} includes what is not installed"
    case $header in
      */c.h) printf '#include <qkv/c.h>\nint main(void) { return qkv_version() == 0; }\n' |
        ${CC:-cc} -std=c99 -Wall -Wextra -pedantic -Werror -fsyntax-only -I"$1" -x c - || echo "c.h is not plain C" ;;
    esac
    printf '#include <qkv/%s>\nint main() {}\n' "${header##*/}" |
      ${CXX:-c++} -std=c++20 -Wall -Wextra -Wconversion -Wshadow -Werror -fsyntax-only -I"$1" -x c++ - ||
      echo "${header##*/} does not stand alone"
  done
}

# foreign_symbols: reads names of symbols, prints those that no public header has.
foreign_symbols() {
  grep -v -E '^(qkv_[a-z_]+|QKV_0|qkv::v1::.*|(qkv::(Error::Error\(.*)|(typeinfo|typeinfo name|vtable) for qkv::(Error|ClosedError|BusyError)))$'
}

printf '#include <qkv/qkv.h>\n' | ${CXX:-c++} -std=c++17 -fsyntax-only -I"$prefix/include" -x c++ - 2>&1 | grep -q 'need C++20' ||
  fail 'nobody says that the headers need C++20'
found=$(check_headers "$prefix/include" 2>&1) || :
[ -z "$found" ] || fail "$found"
shown=$(nm -DC --defined-only "$lib/libqkv.so" | cut -c20- | sed 's/@@.*//' | foreign_symbols) || :
[ -z "$shown" ] || fail "the library shows: $shown"
inside=$(nm -DC --defined-only "$lib/libqkv.so" | grep -c 'Impl::') || :
[ "$inside" = 0 ] || fail "the library shows $inside functions of an Impl"
readelf -d "$lib/libqkv.so" | grep -q 'SONAME.*libqkv\.so\.0' || fail 'its name has no version'

# A test that cannot fail says nothing.
cp -r "$prefix/include" "$made/bad"
printf '#include "base/error.h"\n' >>"$made/bad/qkv/text.h"
[ -n "$(check_headers "$made/bad" text.h 2>/dev/null)" ] || fail 'a header that includes base/error.h was not noticed'
cp -r "$prefix/include" "$made/worse"
sed -i 's/#include <string>//' "$made/worse/qkv/text.h" "$made/worse/qkv/error.h"
[ -n "$(check_headers "$made/worse" text.h 2>/dev/null)" ] || fail 'a header that does not stand alone was not noticed'
[ "$(printf 'qkv::Reader::look()\npcre2_compile_8\nqkv_open\n' | foreign_symbols | wc -l)" = 2 ] ||
  fail 'symbols of the inside were not noticed'
exit "$failed"

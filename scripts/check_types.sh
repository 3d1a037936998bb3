#!/bin/sh
# check_types.sh ROOT: fails where two files define a type of one name in one namespace. A linker sees one type there and
# takes either file's inline functions for both; no compiler says so.
set -eu

cd -- "${1:?usage: check_types.sh ROOT}"
[ -d src ] || { echo "check_types: $1 has no src/; give it the root of the repository" >&2; exit 2; }

# shellcheck disable=SC2016
types='
FNR == 1 { depth = 0 }
/^(inline )?namespace .*\{$/ || /^namespace \{$/ {
  space[++depth] = $2 == "{" ? "{" : $(NF - 1)
  next
}
/^\}  \/\/ namespace/ { if (depth > 0) --depth; next }
/^(struct|class|enum class|enum|union) [A-Za-z_0-9]+[^;]*$/ {
  where = ""
  for (i = 1; i <= depth; ++i) {
    if (space[i] == "{") next  # a name of this file alone
    where = where space[i] "::"
  }
  sub(/ alignas\([^)]*\)/, "")
  name = $1 == "enum" && $2 == "class" ? $3 : $2
  if (name ~ /<|::/ || $3 ~ /^</) next  # a specialisation, or a part of a class
  sub(/[^A-Za-z_0-9].*/, "", name)
  name = where name
  if (name in first && first[name] != FILENAME) {
    printf "%s:%d: %s is also a type of %s\n", FILENAME, FNR, name, first[name]
    bad = 1
  }
  first[name] = FILENAME
}
END { exit bad }
'
# Commands are one program with the rooms; each test program and benchmark is one of its own.
status=0
find src apps -name '*.h' -o -name '*.cpp' 2>/dev/null | LC_ALL=C sort | xargs awk "$types" || status=1
for program in tests/*/ bench/; do
  [ -d "$program" ] || continue
  { find src tests/support -name '*.h' -o -name '*.cpp'; find "$program" -name '*.h' -o -name '*.cpp'; } |
    LC_ALL=C sort -u | xargs awk "$types" || status=1
done
exit "$status"

#!/bin/sh
# check_links.sh ROOT: fails where a document names a file that is not there. Checked are relative links, and paths in
# backticks that begin with a folder of the repository or, like an #include, with a module of src/. In a path NAME and *
# stand for anything, and the suffix may be left out. What lies below build/ is made, one preset at a time.
set -eu

cd -- "${1:?usage: check_links.sh ROOT}"
[ -d docs ] || { echo "check_links: $1 has no docs/; give it the root of the repository" >&2; exit 2; }

# "FILE:LINE PATH" for each of them; code blocks are left out.
# shellcheck disable=SC2016
paths='
FNR == 1 { code = 0; folder = FILENAME; sub(/[^\/]*$/, "", folder) }
/^```/ { code = !code; next }
code { next }
{
  rest = $0
  text = ""
  while (match(rest, /`[^`]*`/)) {
    path = substr(rest, RSTART + 1, RLENGTH - 2)
    text = text substr(rest, 1, RSTART - 1)
    rest = substr(rest, RSTART + RLENGTH)
    if (path ~ /^[A-Za-z0-9_.*-]+\/[A-Za-z0-9_.*\/-]+$/ && path !~ /^\.\.?\//) print FILENAME ":" FNR, "path", path
  }
  text = text rest
  while (match(text, /\]\([^) #]+[)#]/)) {
    link = substr(text, RSTART + 2, RLENGTH - 3)
    text = substr(text, RSTART + RLENGTH)
    if (link !~ /^[a-z]+:/) print FILENAME ":" FNR, "link", folder link
  }
}
'
exists() {
  # shellcheck disable=SC2086
  set -- $1 $1.*
  for found; do
    [ ! -e "$found" ] || return 0
  done
  return 1
}

awk "$paths" ./*.md docs/*.md | {
  status=0
  while read -r where kind path; do
    top=${path%%/*}
    if [ "$top" = build ]; then continue; fi
    if [ "$kind" = path ] && [ ! -d "$top" ]; then
      [ -d "src/$top" ] || continue  # a path of something else
      path=src/$path
    fi
    exists "$(printf '%s' "$path" | sed 's/NAME/*/g')" && continue
    echo "$where: $path is not there"
    status=1
  done
  exit "$status"
}

#!/bin/sh
# check_includes.sh ROOT: fails where a room includes one it may not see (docs/architecture.md draws the arrows).
# Rooms stand in src/. apps/, bench/ and tests/ may include everything, so they are not looked at.
set -eu

cd -- "${1:?usage: check_includes.sh ROOT}"
[ -d src ] || { echo "check_includes: $1 has no src/; give it the root of the repository" >&2; exit 2; }

# shellcheck disable=SC2016
arrows='
function allow(room, rooms) { allowed[room] = rooms " " room }

function wrong(what) {
  printf "%s:%d: %s\n", FILENAME, FNR, what
  bad = 1
}

BEGIN {
  allow("base", "")
  allow("io", "base")
  allow("text", "base io")
  allow("eval", "base io text")
  allow("data", "base io text")
  allow("world", "base io text")
  allow("core", "base io")
  allow("kernels", "base core")   # the table and its plain types, nothing more
  allow("ops", "base io core")    # kernels are reached through the table, so no list but their own has them
  allow("nn", "base io core ops")
  allow("model", "base io core ops nn")
  allow("dist", "base io core")
  left = "base io text eval data world core ops nn model"
  allow("train", left " dist")    # these three never include one another
  allow("infer", left)
  allow("inspect", left)
  allow("open", left " infer kernels")  # it picks the kernels of this machine
  left = left " dist train infer inspect open"
  allow("verify", left)
  allow("labs", left)
  allow("server", left " verify labs")
  allow("api", left " verify labs server")  # the library, whose headers are include/qkv
}

FNR == 1 {
  split(FILENAME, path, "/")
  room = path[2]
  known = room in allowed
  if (!known) wrong("unknown room src/" room "; give it its arrows in scripts/check_includes.sh")
}

known && /^[ \t]*#[ \t]*include[ \t]*["<]/ {
  quoted = $0 ~ /include[ \t]*"/
  target = $0
  sub(/^[^"<]*["<]/, "", target)
  sub(/[">].*/, "", target)
  if (target ~ /(^|\/)\.\.?\//) {
    wrong("\"" target "\" walks through folders; write it as \"room/file.h\"")
    next
  }
  if (split(target, part, "/") < 2) next  # a neighbour, or a standard header
  if (!(part[1] in allowed)) {
    if (quoted) wrong("\"" target "\" is in no room; a library is included with <>, tests and apps never from src/")
    next
  }
  if (index(" " allowed[room] " ", " " part[1] " ") == 0) {
    list = allowed[room]
    sub(/^ /, "", list)
    wrong("wrong arrow " room " -> " part[1] " (\"" target "\"); " room " may include: " list)
  }
}

END { exit bad }
'

find src -type f \( -name '*.h' -o -name '*.hpp' -o -name '*.cpp' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \
  -o -name '*.inc' \) -exec awk "$arrows" {} +

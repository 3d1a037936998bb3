#!/bin/sh
# lines.sh [ROOT]: lines per room, the five largest files, the share of tests. Code: neither blank nor only a comment.
set -eu

cd -- "${1:-$(dirname -- "$(readlink -f -- "$0")")/..}"
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT

# One line a file: lines, code, path.
for folder in src include apps tests bench; do
  [ -d "$folder" ] || continue
  find "$folder" -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -exec awk '
    function flush() { if (path != "") print lines, code, path }
    FNR == 1           { flush(); path = FILENAME; lines = code = 0 }
                       { ++lines }
    !/^[ \t]*(\/\/|$)/ { ++code }
    END                { flush() }' {} +
done >"$counts"

awk '
  function row(room) {
    printf "%-12s %6d %8d %8d\n", room, files[room], lines[room], code[room]
    delete files[room]
  }
  {
    split($3, path, "/")
    room = path[1] == "src" ? path[2] : path[1]
    ++files[room]; lines[room] += $1; code[room] += $2
    ++files["all"]; lines["all"] += $1; code["all"] += $2
  }
  END {
    printf "%-12s %6s %8s %8s\n", "room", "files", "lines", "code"
    count = split("base io text eval core kernels ops nn model dist train infer inspect labs server apps include", order, " ")
    for (i = 1; i <= count; ++i) if (order[i] in files) row(order[i])
    for (room in files) if (room != "tests" && room != "bench" && room != "all") row(room)
    if ("bench" in files) row("bench")
    if ("tests" in files) row("tests")
    row("all")
    if (code["all"] > 0) printf "\ntests are %.0f %% of the code\n", 100 * code["tests"] / code["all"]
  }' "$counts"

printf '\nlargest files\n'
sort -k1,1nr -k3 "$counts" | head -n 5 | awk '{ printf "%12d  %s\n", $1, $3 }'

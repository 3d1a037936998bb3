#!/bin/sh
# check_links.sh must name a file that a document links or names in backticks and that is not there, and pass the rest.
set -eu

check=$(dirname -- "$(readlink -f -- "$0")")/check_links.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/docs" "$tree/src/ops" "$tree/tests" "$tree/build/asan"
: >"$tree/src/ops/add.h"
: >"$tree/docs/there.md"

# shellcheck disable=SC2016
cat >"$tree/README.md" <<'END'
[a page](docs/there.md), [a part of it](docs/there.md#part), [elsewhere](https://example.org/none.md), `src/ops/add.h`,
`ops/add.h`, `src/ops/add`, `src/ops/*.h`, `src/ops/NAME.h`, `other/none.h`, `build/release`, `../shared/none`, `[](int& x) { src/none.h }`
```
src/none.h [none](none.md) `src/none.h`
```
END
output=$(sh "$check" "$tree" 2>&1) || { echo "FAIL: everything is there, but the check said: $output"; exit 1; }

refuses() {  # refuses TEXT COMPLAINT
  printf '%s\n' "$1" >"$tree/docs/there.md"
  output=$(sh "$check" "$tree" 2>&1) && { echo "FAIL: the check passed: $1"; exit 1; }
  [ "$output" = "docs/there.md:1: $2 is not there" ] || { echo "FAIL: the check said: $output"; exit 1; }
}
# shellcheck disable=SC2016
{
  refuses 'see [this](none.md)' docs/none.md
  refuses 'see `src/ops/none.cpp`' src/ops/none.cpp
  refuses 'see `ops/none.h`' src/ops/none.h
  refuses 'see `tests/no_*.cpp`' 'tests/no_*.cpp'
}
echo "check_links: good"

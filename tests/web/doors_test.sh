#!/bin/sh
# doors_test.sh QKV [FOLDER]: the doors of the page in a real browser; screenshots stay in FOLDER if one is given.
set -eu
qkv=$1
here=$(dirname -- "$(readlink -f -- "$0")")

# shellcheck source=tests/web/browser_needs.sh
. "$here/browser_needs.sh"
browser_needs playwright-core

folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$folder"' EXIT
# shellcheck source=tests/web/web_models.sh
. "$here/web_models.sh"
web_models plain experts translator
"$qkv" serve "$folder/plain" "$folder/translator" "$folder/experts" --port 0 >"$folder/log" 2>&1 &
server=$!
base=
for _ in $(seq 600); do
  base=$(sed -n 's/.*\(http:\/\/127\.0\.0\.1:[0-9]*\).*/\1/p' "$folder/log" | head -1)
  [ -n "$base" ] && node -e "fetch('$base/page/models').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))" && break
  sleep 0.2
done
node "$here/doors_test.mjs" "$base" "${2:-}"

#!/bin/sh
# training_test.sh QKV [FOLDER]: trainings and labs on the live page, in a real browser; screenshots stay in FOLDER if one is given.
set -eu
qkv=$1
here=$(dirname -- "$(readlink -f -- "$0")")
golden=$here/../golden

# shellcheck source=tests/web/browser_needs.sh
. "$here/browser_needs.sh"
browser_needs playwright-core

folder=$(mktemp -d)
pid=
trap 'if [ -n "$pid" ]; then kill "$pid" 2>/dev/null || true; fi; rm -rf "$folder"' EXIT
bad() {
  echo "$1"
  exit 1
}
# shellcheck source=tests/server/serve_common.sh
. "$here/../server/serve_common.sh"
serve_models
serve_start "$folder/plain" --runs "$folder/runs"
node "$here/training_test.mjs" "http://127.0.0.1:$port" "$pid" "${2:-}"
serve_stop TERM
pid=
# What was trained from the page is a run like any other.
"$qkv" movie "$folder/runs/demo-1" --json >/dev/null
"$qkv" run "$folder/runs/demo-1/last" "Tom: cat dog." --max-new 4 >/dev/null

# qkv train --serve: the page lives while it trains, and ends with it.
"$qkv" train demo --set steps=400 --serve --port 0 --out "$folder/own" >"$folder/out" 2>"$folder/err" &
pid=$!
for _ in $(seq 200); do
  if grep -q '^watch it learn: ' "$folder/out"; then break; fi
  sleep 0.05
done
address=$(sed -n 's/^watch it learn: \(.*\)$/\1/p' "$folder/out")
[ -n "$address" ] || bad "train --serve printed no address: $(cat "$folder/out" "$folder/err")"
node "$here/training_test.mjs" --follow "$address"
wait "$pid" || bad "train --serve ended with exit $?: $(cat "$folder/out" "$folder/err")"
pid=
grep -q '^done after 400 steps' "$folder/out" || bad "train --serve does not say what it did: $(cat "$folder/out")"

#!/bin/sh
# report_test.sh REPORT_PAGE [FOLDER]: the report page in a real browser; screenshots stay in FOLDER if one is given.
# ./qkv test --web installs what it needs. Without that it fails: a test that was asked for must run.
set -eu
page=$1
here=$(dirname -- "$(readlink -f -- "$0")")

need() {
  echo "the browser test needs $1; ./qkv test --web installs it"
  exit 1
}
command -v node >/dev/null || need node
CHROMIUM=$(command -v chromium) || need chromium
export CHROMIUM
[ -d "$here/node_modules/playwright-core" ] || need playwright-core

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for kind in demo translate large long; do
  node "$here/sample_report.mjs" "$kind" >"$folder/$kind.json"
  "$page" "$folder/$kind.json" >"$folder/$kind.html"
done
node "$here/report_test.mjs" "$folder" "${2:-}"

#!/bin/sh
# report_test.sh REPORT_PAGE [FOLDER]: the report's page in a real browser; screenshots stay in FOLDER if one is given.
# Skips (77) where chromium, node or playwright-core are not there: none of them is needed to build or run qkv.
set -eu
page=$1
here=$(dirname -- "$(readlink -f -- "$0")")

skip() {
  echo "skipped: no $1; install it with  $2"
  exit 77
}
command -v node >/dev/null || skip node "apt-get install nodejs npm"
CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  skip chromium "apt-get install chromium"
export CHROMIUM
(cd "$here" && node -e 'require("playwright-core")') 2>/dev/null ||
  skip playwright-core "npm install  in tests/web, or point NODE_PATH at it"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for kind in demo translate large long; do
  node "$here/sample_report.mjs" "$kind" >"$folder/$kind.json"
  "$page" "$folder/$kind.json" >"$folder/$kind.html"
done
node "$here/report_test.mjs" "$folder" "${2:-}"

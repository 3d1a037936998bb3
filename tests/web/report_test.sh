#!/bin/sh
# report_test.sh REPORT_PAGE [FOLDER]: the report page in a real browser; screenshots stay in FOLDER if one is given.
set -eu
page=$1
here=$(dirname -- "$(readlink -f -- "$0")")

# shellcheck source=tests/web/browser_needs.sh
. "$here/browser_needs.sh"
browser_needs playwright-core

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for kind in demo translate large long patch labs; do
  node "$here/sample_report.mjs" "$kind" >"$folder/$kind.json"
  "$page" "$folder/$kind.json" >"$folder/$kind.html"
done
node "$here/report_test.mjs" "$folder" "${2:-}"

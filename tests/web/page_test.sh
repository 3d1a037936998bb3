#!/bin/sh
# page_test.sh QKV [FOLDER]: the live page in a real browser; screenshots stay in FOLDER if one is given.
set -eu
qkv=$1
here=$(dirname -- "$(readlink -f -- "$0")")

# shellcheck source=tests/web/browser_needs.sh
. "$here/browser_needs.sh"
browser_needs playwright-core axe-core

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# shellcheck source=tests/web/web_models.sh
. "$here/web_models.sh"
web_models plain translator experts '<img src=x onerror=window.boom=1>'
node "$here/page_test.mjs" "$qkv" "$folder" "${2:-}"

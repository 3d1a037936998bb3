#!/bin/sh
# page_test.sh QKV [FOLDER]: the live page in a real browser; screenshots stay in FOLDER if one is given.
# ./qkv test --web installs what it needs. Without that it fails: a test that was asked for must run.
set -eu
qkv=$1
here=$(dirname -- "$(readlink -f -- "$0")")

need() {
  echo "the browser test needs $1; ./qkv test --web installs it"
  exit 1
}
command -v node >/dev/null || need node
CHROMIUM=$(command -v chromium) || need chromium
export CHROMIUM
for module in playwright-core axe-core; do
  [ -d "$here/node_modules/$module" ] || need "$module"
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# shellcheck source=tests/web/web_models.sh
. "$here/web_models.sh"
web_models plain translator experts '<img src=x onerror=window.boom=1>'
node "$here/page_test.mjs" "$qkv" "$folder" "${2:-}"

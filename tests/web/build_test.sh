#!/bin/sh
# The page that is committed (web/dist) is what its sources give, its types are right, and it is small.
set -eu
web=$(dirname -- "$(readlink -f -- "$0")")/../../web
[ -d "$web/node_modules/esbuild" ] || {
  echo "building the page needs esbuild; ./qkv test --web installs it"
  exit 1
}
built=$(mktemp)
trap 'rm -f "$built"' EXIT
(cd "$web" && node node_modules/typescript/bin/tsc --noEmit && node build.mjs "$built")
cmp "$built" "$web/dist/page.html" || {
  echo "web/dist/page.html is not what web/src gives:  cd web && npm ci && npm run build"
  exit 1
}
bytes=$(wc -c <"$built")
packed=$(gzip -9 <"$built" | wc -c)
echo "the page has $bytes bytes, $packed packed with gzip"
[ "$bytes" -lt 600000 ] && [ "$packed" -lt 250000 ]

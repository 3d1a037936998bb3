#!/bin/sh
# openai_test.sh QKV: OpenAI's own client for JavaScript, unmodified, against qkv serve.
# ./qkv test --web installs what it needs. Without that it fails: a test that was asked for must run.
set -eu
qkv=$1
here=$(dirname -- "$(readlink -f -- "$0")")
golden=$here/../golden

need() {
  echo "the test of the openai client needs $1; ./qkv test --web installs it"
  exit 1
}
command -v node >/dev/null || need node
[ -d "$here/node_modules/openai" ] || need openai

folder=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$folder"' EXIT
trap 'exit 143' HUP INT TERM  # is an exit too
bad() {
  printf '%s\n' "$1"
  exit 1
}
# shellcheck source=tests/server/serve_common.sh
. "$here/../server/serve_common.sh"
serve_models
printf 'key-of-the-tests-0001\n' >"$folder/keys"
serve_start "$folder/chatty" "$folder/caller" "$folder/plain" --keys "$folder/keys" --slots 2 --queue 4
node "$here/openai_test.mjs" "$port" key-of-the-tests-0001 || bad "the client was not served; the server's log: $(cat "$folder/err")"
serve_stop TERM
pid=

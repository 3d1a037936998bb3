# What a test in a browser needs; read by those.  browser_needs MODULE...
# shellcheck shell=sh disable=SC2154
# $here is the folder of this file. ./qkv test --web installs all of it. Without that the test fails: one that was asked
# for must run.

# A signal is an exit too, so that a script's trap ends the server it started.
trap 'exit 143' HUP INT TERM

need() {
  echo "the browser test needs $1; ./qkv test --web installs it"
  exit 1
}

browser_needs() {
  command -v node >/dev/null || need node
  CHROMIUM=$(command -v chromium) || need chromium
  export CHROMIUM
  for module in "$@"; do
    [ -d "$here/node_modules/$module" ] || need "$module"
  done
}

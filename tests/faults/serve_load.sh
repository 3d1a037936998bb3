#!/bin/sh
# Many clients of the server: bench/serve_load.py in small and in full.  sh serve_load.sh QKV short|long
# shellcheck source=tests/faults/common.sh
. "$(dirname "$0")/common.sh"

load() {  # load ARGUMENTS...
  python3 "$(dirname "$0")/../../bench/serve_load.py" "$qkv" "$@" || bad "serve_load.py $*: exit $?"
}

if ! command -v python3 >/dev/null; then
  echo 'left out without python3'
elif [ "$form" = short ]; then
  load same --clients 8 --requests 10
  load leave --clients 8 --requests 10
  load flood --clients 120 --slots 2 --queue 16 --no-times
  load slow --clients 20 --requests 40 --no-wait --no-times
else
  load same
  load leave
  load flood
  load slow
  load attack
fi
exit "$failed"

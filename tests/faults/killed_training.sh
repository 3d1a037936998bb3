#!/bin/sh
# A training run killed at random moments and resumed ends with the bits of one that was left alone.
# shellcheck source=tests/faults/common.sh
. "$(dirname "$0")/common.sh"
recipe=$small_recipe
times=10
[ "$form" = short ] || times=100
sums() { (cd "$1/last/" && sha256sum model.safetensors train_state.safetensors); }

# shellcheck disable=SC2086
"$qkv" train world --out "$folder/whole" $recipe >/dev/null 2>&1 || exit 1
right=$(sums "$folder/whole")
n=0
while [ "$n" -lt "$times" ]; do
  n=$((n + 1))
  run=$folder/killed
  rm -rf "$run"
  # shellcheck disable=SC2086
  "$qkv" train world --out "$run" $recipe >/dev/null 2>&1 &
  for again in 1 2; do  # twice: the resumed run is killed too
    sleep "0.$(awk -v seed="$n$again" 'BEGIN { srand(seed); printf "%03d", rand() * 900 }')"
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    [ -f "$run/recipe.json" ] || break
    [ "$again" = 2 ] || "$qkv" train --resume --out "$run" --threads 1 >/dev/null 2>&1 &
  done
  if [ -f "$run/recipe.json" ]; then
    "$qkv" train --resume --out "$run" --threads 1 >"$folder/log" 2>&1 || { cat "$folder/log"; failed=1; }
  else  # killed before the run had a folder
    rm -rf "$run"
    # shellcheck disable=SC2086
    "$qkv" train world --out "$run" $recipe >"$folder/log" 2>&1 || { cat "$folder/log"; failed=1; }
  fi
  [ "$(sums "$run")" = "$right" ] || { echo "kill $n: the weights differ"; failed=1; }
done
exit "$failed"

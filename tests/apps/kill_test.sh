#!/bin/sh
# kill_test.sh QKV TIMES: a training run killed at random moments, so often, and resumed, ends with the bits of one that
# was left alone.
qkv=$1
times=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
recipe="--set steps=30 --set schedule.decay=4 --set schedule.warmup=2 --set evaluate.every=10 --set evaluate.samples=0
  --set data.stories=200 --set sequence=32 --set batch_tokens=256 --set checkpoint.every=3 --set tokenizer.vocab=400
  --set model.hidden_size=32 --set model.intermediate_size=64 --set model.num_hidden_layers=1 --threads 1"
sums() { (cd "$1/last/" && sha256sum model.safetensors train_state.safetensors); }

# shellcheck disable=SC2086
"$qkv" train world --out "$folder/whole" $recipe >/dev/null 2>&1 || exit 1
right=$(sums "$folder/whole")
failed=0
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
    [ -d "$run/prepared" ] || break
    [ "$again" = 2 ] || "$qkv" train --resume --out "$run" --threads 1 >/dev/null 2>&1 &
  done
  if [ -d "$run/prepared" ]; then
    "$qkv" train --resume --out "$run" --threads 1 >"$folder/log" 2>&1 || { cat "$folder/log"; failed=1; }
  else  # killed before anything was prepared: there is nothing to go on with but the recipe
    rm -rf "$run"
    # shellcheck disable=SC2086
    "$qkv" train world --out "$run" $recipe >"$folder/log" 2>&1 || { cat "$folder/log"; failed=1; }
  fi
  [ "$(sums "$run")" = "$right" ] || { echo "kill $n: the weights differ"; failed=1; }
done
exit "$failed"

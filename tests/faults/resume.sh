#!/bin/sh
# A run that is resumed goes on with the bits of one that was left alone, or is refused: it never begins again unasked.
# shellcheck source=tests/faults/common.sh
. "$(dirname "$0")/common.sh"
case $qkv in /*) ;; *) qkv=$(pwd)/$qkv ;; esac  # it is run from another folder, too
steps="--set steps=6 --set schedule.decay=1 --set schedule.warmup=1 --set evaluate.every=3 --set evaluate.samples=0
  --set data.stories=120 --set data.validation=0.02 --set sequence=32 --set batch_tokens=256 --set checkpoint.every=3 --threads 1"
size="--set tokenizer.vocab=400 --set model.hidden_size=32 --set model.intermediate_size=64 --set model.num_hidden_layers=1
  --set model.num_attention_heads=4 --set model.num_key_value_heads=4"
sums() { (cd "$1/last/" && sha256sum model.safetensors train_state.safetensors); }
not_begun() { rm -r "${1:?}"/checkpoints/* "$1/last" "$1/best" "$1/log.jsonl"; }  # as if killed before the first checkpoint
same() { [ "$(sums "$1")" = "$2" ] || bad "$3: the weights differ"; }
resume() {  # resume EXIT_CODE TEXT RUN [OPTION...]
  code=$1 text=$2 which=$3
  shift 3
  expect "$code" "$text" train --resume --out "$which" --threads 1 "$@"
}
run=$folder/run
copy_of() { rm -rf "$run" && cp -a "$1" "$run" || exit 1; }

# shellcheck disable=SC2086
{
  "$qkv" train world --out "$folder/model" $steps $size >/dev/null 2>&1 || bad 'the small model did not train'
  (cd "$folder" && "$qkv" train world --from model/last --watch --out tuned $steps >/dev/null 2>&1) ||
    bad 'the small model was not tuned'
}
[ "$failed" = 0 ] || exit 1
right=$(sums "$folder/model") tuned=$(sums "$folder/tuned")

# Killed before it began: prepared again from the model that was named then, as it was then.
copy_of "$folder/tuned"
not_begun "$run"
rm -r "$run/prepared/start" "$run/watch"
resume 0 'is missing: the run is prepared again' "$run"
same "$run" "$tuned" 'prepared again'
[ -f "$run/watch/watch.json" ] || bad 'train --resume: --watch was forgotten'
not_begun "$run"
rm -r "$run/prepared"
mv "$folder/model" "$folder/away"
resume 2 'there is no such file or folder' "$run"
mv "$folder/away" "$folder/model"
resume 0 '' "$run"
same "$run" "$tuned" 'prepared anew'
rm -r "$run/prepared/start"
resume 2 'has been trained on it' "$run"

# What was prepared changed under the run.
for file in data/train/train-00000.tokens tokenizer/tokenizer.json start/config.json; do
  copy_of "$folder/tuned"
  printf ' ' >>"$run/prepared/$file"
  before=$(sha256sum <"$run/log.jsonl")
  resume 2 "$file is {\"bytes\":" "$run"
  [ "$before" = "$(sha256sum <"$run/log.jsonl")" ] || bad "$file changed: the log was cut"
done
copy_of "$folder/model"
sed -i 's/"stories": 120/"stories": 121/' "$run/recipe.json"
resume 2 'data.stories: 121, was 120' "$run"
copy_of "$folder/model"
sed -i 's/"steps": 6/"steps": 7/' "$run/recipe.json"
resume 0 'steps: 7, was 6' "$run"
resume 0 'after 8 steps' "$run" --set steps=8
resume 2 '--data was given too' "$run" --data none.txt

# No checkpoint can be read.
copy_of "$folder/model"
log=$(sha256sum <"$run/log.jsonl")
for manifest in "$run"/checkpoints/*/manifest.json; do printf 'x' >>"$manifest"; done
resume 2 'step-00000003: ' "$run"
case $out in *'step-00000006: '*) ;; *) bad "not every checkpoint is named: $out" ;; esac
case $out in *--from-scratch*) ;; *) bad "no word of --from-scratch: $out" ;; esac
[ "$log" = "$(sha256sum <"$run/log.jsonl")" ] || bad 'no checkpoint could be read, and the log was cut'
resume 0 'before-1' "$run" --from-scratch
same "$run" "$right" 'from scratch'
[ "$log" = "$(sha256sum <"$run/before-1/log.jsonl")" ] || bad 'the log was not kept aside'
[ -d "$run/before-1/last/" ] || bad 'the checkpoints were not kept aside'
rm -r "$run"/checkpoints/*
resume 2 'last points to checkpoints/step-00000006' "$run"
expect 2 'there is no --resume' train world --out "$folder/none" --from-scratch

# A checkpoint without a file, a torn line of the log, a run that another process has.
copy_of "$folder/model"
rm "$run/checkpoints/step-00000006/train_state.json"
printf '{"step": 9, "lo' >>"$run/log.jsonl"
resume 0 'skipping a damaged checkpoint: step-00000006' "$run"
same "$run" "$right" 'a file was missing'
grep -q '"step": 9' "$run/log.jsonl" && bad 'a torn line is still in the log'
if command -v flock >/dev/null; then
  out=$(flock "$run" "$qkv" train --resume --out "$run" 2>&1)
  case $? in 2) ;; *) bad "two processes train in one folder: $out" ;; esac
  case $out in *'is in use'*) ;; *) bad "two processes: $out" ;; esac
else
  echo 'left out: two processes in one folder (no flock)'
fi

# An I/O error on every manifest.
if can_inject; then
  copy_of "$folder/model"
  out=$(strace -f -o /dev/null -P "$run/checkpoints/step-00000003/manifest.json" \
    -P "$run/checkpoints/step-00000006/manifest.json" -e trace=openat -e inject=openat:error=EIO \
    "$qkv" train --resume --out "$run" --threads 1 2>&1)
  case $? in 2) ;; *) bad "an I/O error on the manifests: $out" ;; esac
  [ "$log" = "$(sha256sum <"$run/log.jsonl")" ] || bad 'an I/O error on the manifests cut the log'
  resume 0 'done after 6 steps' "$run"
else
  echo 'left out: I/O errors and kills at every rename (no strace here)'
fi

# Too much: nested, or larger than this machine. Nothing is left behind.
deep=$(awk 'BEGIN { for (i = 1; i < 64000; ++i) printf "a."; print "a=1" }')
expect 2 '64000 parts' train world --out "$folder/none" --set "$deep"
expect 2 'levels deep' train world --out "$folder/none" --set "steps=$(awk 'BEGIN { for (i = 0; i < 60000; ++i) printf "[" }')"
# shellcheck disable=SC2086
{
  expect 2 'but the disk of' train world --out "$folder/none" $steps $size --set data.stories=1000000000000
  expect 2 'this run needs' train world --out "$folder/none" $steps $size --set batch_tokens=2147483648
  # A full disk ends the writing of stories at once: two minutes of them would follow.
  out=$(ulimit -f 64 && timeout 30 "$qkv" train world --out "$folder/none" $steps $size --set data.stories=1000000 2>&1)
  case $? in 2) ;; *) bad "a full disk: $out" ;; esac
  case $out in *'world.txt'*) ;; *) bad "a full disk: $out" ;; esac
}
[ ! -e "$folder/none" ] || bad 'a run that was refused left something'
timeout -s INT -k 10 1 "$qkv" world --lines 2147483648 >/dev/null 2>&1
case $? in 124) ;; *) bad 'world: Ctrl-C did not end it' ;; esac
if [ -e /dev/full ]; then
  timeout 10 "$qkv" world --lines 2147483648 >/dev/full 2>/dev/null
  case $? in 2) ;; *) bad 'world: a full disk did not end it' ;; esac
fi

# Three ranks: one error, from one of them.
if command -v mpirun >/dev/null; then
  # shellcheck disable=SC2086
  out=$(mpirun --allow-run-as-root --oversubscribe -n 3 "$qkv" train world --out "$folder/none" $steps $size 2>&1)
  case $? in 2) ;; *) bad "three ranks: $out" ;; esac
  [ "$(printf '%s\n' "$out" | grep -c '^qkv:')" = 1 ] || bad "three ranks: not one error: $out"
  case $out in *'must be a power of two'*) ;; *) bad "three ranks: $out" ;; esac
  [ ! -e "$folder/none" ] || bad 'three ranks left something'
  # A recipe that is wrong on every rank is said once, too.
  # shellcheck disable=SC2086
  out=$(mpirun --allow-run-as-root --oversubscribe -n 2 "$qkv" train world --out "$folder/none" $steps $size \
    --set micro_batches=2 --set model.max_position_embeddings=8 2>&1)
  [ "$(printf '%s\n' "$out" | grep -c '^qkv:')" = 1 ] || bad "two ranks: not one error: $out"
  case $out in *"model's context of 8"*) ;; *) bad "two ranks: $out" ;; esac
else
  echo 'left out: three ranks (no mpirun)'
fi

if [ "$form" = long ] && can_inject; then
  # Killed at each rename, new folder and removal in turn, of the run and of the one that resumes it.
  for call in rename,renameat2 mkdir unlink,unlinkat,rmdir; do
    n=0 ended=137
    while [ "$ended" != 0 ]; do
      n=$((n + 1))
      rm -rf "$folder/run"
      # shellcheck disable=SC2086
      (cd "$folder" && strace -f -o /dev/null -e "trace=$call" -e "inject=$call:signal=KILL:when=$n" \
        "$qkv" train world --from model/last --watch --out run $steps >/dev/null 2>&1)
      ended=$?
      [ -e "$run" ] || continue
      strace -f -o /dev/null -e "trace=$call" -e "inject=$call:signal=KILL:when=$n" \
        "$qkv" train --resume --out "$run" --threads 1 >/dev/null 2>&1
      resume 0 '' "$run"
      same "$run" "$tuned" "killed at $call $n"
      [ -f "$run/watch/watch.json" ] || bad "killed at $call $n: --watch was forgotten"
    done
    echo "killed at $call: $((n - 1)) times"
  done
  # Each file of the run cannot be opened: it goes on with the same bits, or it is refused and the log stays.
  (cd "$folder/tuned" && find . -type f) >"$folder/files"
  refused=0
  while read -r file; do
    copy_of "$folder/tuned"
    rm -r "$run/checkpoints/step-00000006"  # there are steps to do
    log=$(sha256sum <"$run/log.jsonl")
    [ -e "$run/$file" ] || continue
    out=$(strace -f -o /dev/null -P "$run/$file" -e trace=openat -e inject=openat:error=EIO \
      "$qkv" train --resume --out "$run" --threads 1 2>&1 </dev/null)
    case $? in
      0) same "$run" "$tuned" "no $file" ;;
      2)
        refused=$((refused + 1))
        [ "$log" = "$(sha256sum <"$run/log.jsonl")" ] || bad "an I/O error on $file cut the log"
        ;;
      *) bad "an I/O error on $file: $out" ;;
    esac
  done <"$folder/files"
  echo "I/O errors: $refused of $(wc -l <"$folder/files") files refused"
  [ "$refused" -gt 5 ] || bad 'I/O errors were not injected'
fi
exit "$failed"

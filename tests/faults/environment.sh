#!/bin/sh
# What surrounds the program fails: files, permissions, memory, threads, descriptors. That is exit code 2 with a hint,
# never a signal and never exit code 3.
# shellcheck source=tests/faults/common.sh
. "$(dirname "$0")/common.sh"
chmod 755 "$folder"
model=$folder/world/best
small_model "$folder/world"
story=$folder/story.txt
echo "Once upon a time there was a cat. The cat sat on the mat and slept." >"$story"

as=  # to run a command without root's rights
if [ "$(id -u)" = 0 ]; then
  as="setpriv --reuid=65534 --regid=65534 --clear-groups"
  cp "$qkv" "$folder/qkv"  # the tree may be closed to others
  qkv=$folder/qkv
fi

refused() {  # refused WORDS COMMAND...: exit code 2, a hint, and WORDS, kept in $out
  words=$1
  shift
  out=$(timeout 60 "$@" 2>&1 </dev/null)
  got=$?
  [ "$got" = 2 ] || bad "$*: exit $got, not 2: $out"
  case $out in *"hint: "*) ;; *) bad "$*: no hint: $out" ;; esac
  case $out in *"$words"*) ;; *) bad "$*: '$words' is not in: $out" ;; esac
  case $out in *.qkv-tmp-*) bad "$*: names a temporary: $out" ;; esac
}

names() {  # names WORDS PATH: a path that cannot be looked at, wherever a path may stand
  for command in "info $2" "run $2 hi" "tokenize $2 hi" "look $2 hi" "verify $2" "taps $2" "train $2 --out $folder/out/no" \
    "train shakespeare-char --data $2 --out $folder/out/no" "eval $model --data $2" "new --spec $2 --out $folder/out/no --seed 1" \
    "data pack $2 --tokenizer $model --out $folder/out/no" "tokenizer train $2 --vocab 300 --out $folder/out/no" \
    "data pack $story --tokenizer $2 --out $folder/out/no" "movie $2" "chat $model --template $2" "score $2 $story" \
    "convert $2 --out $folder/out/no" "quantize $2 --to q8 --out $folder/out/no"; do
    [ "$form" = long ] || case $command in run* | look* | taps* | new* | score* | convert*) continue ;; esac
    # shellcheck disable=SC2086
    refused "$1" $as "$qkv" $command
    case $out in *"no such file"* | *"No such file"*) bad "$command: what is there is 'no such file': $out" ;; esac
    rm -rf "$folder/out/no"
  done
}

# --- paths -----------------------------------------------------------------------------------------------------------
mkdir "$folder/locked" "$folder/out"
chmod 777 "$folder/out"
cp -rL "$model" "$folder/locked/model"
chmod 700 "$folder/locked"
[ "$(id -u)" = 0 ] || chmod 000 "$folder/locked"
names "Permission denied" "$folder/locked/model"
chmod 700 "$folder/locked"
ln -s loop "$folder/loop"
names "Too many levels of symbolic links" "$folder/loop"
[ "$form" = short ] || names "File name too long" "$folder/$(printf '%0300d' 0)"
refused "there is no such file or folder" "$qkv" info "$folder/none"

# Names that are not UTF-8 are names.
latin=$folder/$(printf 'caf\351')
cp -rL "$model" "$latin"
cp "$story" "$latin.txt"
expect 0 "parameters" info "$latin"
expect 0 "" run "$latin" "Once" --max-new 2 --threads 1
expect 0 "" eval "$latin" --data "$latin.txt" --threads 1
refused "caf\\xe9" "$qkv" train shakespeare-char --data "$latin.txt" --out "$folder/no"
refused "caf" "$qkv" info "$latin/none"

# --- pipes -----------------------------------------------------------------------------------------------------------
mkfifo "$folder/pipe" "$folder/pipe.json" "$folder/pipe.gguf"
refused "is a pipe" "$qkv" info "$folder/pipe"
refused "is a pipe" "$qkv" info "$folder/pipe.json"
refused "is a pipe" "$qkv" info "$folder/pipe.gguf"
refused "is a pipe" "$qkv" tokenize "$folder/pipe.json" hi
refused "a pipe or a device" "$qkv" train shakespeare-char --data "$folder/pipe" --out "$folder/no"
mkdir "$folder/piped"
mkfifo "$folder/piped/config.json"
refused "is a pipe" "$qkv" run "$folder/piped" hi
out=$("$qkv" eval "$model" --data /dev/stdin --threads 1 2>&1 <"$story") || bad "a text from standard input: $out"
# shellcheck disable=SC2002
out=$(cat "$story" | "$qkv" eval "$model" --data /dev/stdin --threads 1 2>&1) || bad "a text from a pipe: $out"

# --- numbers ---------------------------------------------------------------------------------------------------------
for seed in 99999999999999999999 -1 18446744073709551616; do
  refused "'$seed' is not from 0 to 18446744073709551615" "$qkv" run "$model" hi "--seed=$seed"
done
refused "'4294967297' is not from" "$qkv" run "$model" hi --threads 4294967297
refused "'1e400' is no finite number" "$qkv" run "$model" hi --temperature 1e400
refused "'nan' is no finite number" "$qkv" run "$model" hi --temperature nan
refused "is 18446744073709551615 but must be a whole number from" "$qkv" train world --set steps=18446744073709551615 --out "$folder/no"
refused "but must be a whole number from" "$qkv" train world --set seed=99999999999999999999 --out "$folder/no"
expect 0 "" run "$model" Once --max-new 1 --threads 1 --seed 18446744073709551615

# --- descriptors -----------------------------------------------------------------------------------------------------
# shellcheck disable=SC2086
"$qkv" train world --out "$folder/closed" $small_recipe <&- >&- 2>&- || bad "training with closed descriptors failed"
cmp "$folder/world/last/model.safetensors" "$folder/closed/last/model.safetensors" || failed=1
grep -qv '^{.*}$' "$folder/closed/log.jsonl" && bad "the log has other lines: $(grep -v '^{.*}$' "$folder/closed/log.jsonl")"
"$qkv" info "$model" >/dev/full 2>/dev/null && bad "a full standard output is no failure"

# --- memory and threads ----------------------------------------------------------------------------------------------
# shellcheck disable=SC2086
refused "cannot start 64 threads" $as prlimit --nproc=1 "$qkv" run "$model" hi --threads 64
size=40000 most=52000 step=4000  # in KiB: from too little to start with
[ "$form" = short ] || size=30000 most=300000 step=1500
met=0
while [ "$size" -le "$most" ]; do
  # shellcheck disable=SC2086
  out=$($as prlimit --as=$((size * 1024)) "$qkv" train demo --out "$folder/out/no" --set steps=1 --set schedule.warmup=0 \
    --set schedule.decay=0 --set data.stories=200 --threads 2 2>&1)
  got=$?
  rm -rf "$folder/out/no"
  case $got:$out in
    0:* | 127:*"shared librar"*) ;;
    2:*"hint: "*) case $out in *"ulimit -v"*) met=1 ;; esac ;;
    *) bad "address space of $size KiB: exit $got: $out" ;;
  esac
  size=$((size + step))
done
[ "$met" = 1 ] || bad "no limit on the address space was ever met"

# --- no /proc, as in a chroot --------------------------------------------------------------------------------------------
without_proc() { unshare -rm sh -c 'mount -t tmpfs none /proc && [ ! -e /proc/self ] && shift && exec "$@"' sh - "$@"; }
if without_proc true 2>/dev/null; then
  # Where the program stands without QKV_MODELS; a copy, because the models of the tree are looked for from build/PRESET/bin.
  mkdir -p "$folder/prefix/bin" "$folder/prefix/share/qkv/models"
  cp "$qkv" "$folder/prefix/bin"
  cp -r "$golden/../../models/world-2l" "$folder/prefix/share/qkv/models"
  for start in "$folder/prefix/bin/qkv" ./qkv; do
    out=$(cd "$folder/prefix/bin" && without_proc "$start" run world-2l 'Mia has a cat.' --max-new 4 --threads 2 2>&1) ||
      bad "$start without /proc: exit $?: $out"
  done
  printf '{"model_type": "llama", "vocab_size": 100, "hidden_size": 256, "intermediate_size": 64, "num_hidden_layers": 4,
    "num_attention_heads": 4, "max_position_embeddings": 1000000000}' >"$folder/long.json"
  "$qkv" new --spec "$folder/long.json" --seed 1 --out "$folder/long" >/dev/null || bad 'no model of a long context'
  out=$(without_proc "$qkv" run "$folder/long" --ids '1 2' --context 1000000000 --max-new 1 --threads 2 2>&1)
  got=$?
  free=$(printf '%s\n' "$out" | sed -n 's/.*but \([0-9]*\)\.[0-9]* GiB are free.*/\1/p')
  [ "$got" = 2 ] && [ "${free:-0}" -gt 0 ] && [ "$free" -lt 100000 ] || bad "memory without /proc: exit $got: $out"
else
  echo 'no namespaces of mounts here: what is done without /proc is not tested'
fi

# --- a model that is shortened while it is in use --------------------------------------------------------------------
shorten() {  # shorten FILE PROCESS INPUT TEXT: once PROCESS has mapped FILE, cuts it and sends TEXT into INPUT
  tries=0
  until grep -q "$1" "/proc/$2/maps" 2>/dev/null || [ "$tries" = 100 ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
  : >"$1"
  echo "$4" >"$3"
}
ended() {  # ended PROCESS NAME OUTPUT
  wait "$1"
  got=$?
  [ "$got" = 2 ] || bad "$2: exit $got, not 2: $(cat "$3")"
  grep -q "model.safetensors: was shortened" "$3" || bad "$2: $(cat "$3")"
  grep -q "hint: " "$3" || bad "$2: no hint"
}
cp -rL "$model" "$folder/cut"
mkfifo "$folder/input"
"$qkv" run "$folder/cut" - --max-new 50 --threads 2 <"$folder/input" >"$folder/said" 2>&1 &
exec 8>"$folder/input"
shorten "$folder/cut/model.safetensors" $! "$folder/input" "Once upon"
exec 8>&-
ended $! "run" "$folder/said"

# --- refused by the system -------------------------------------------------------------------------------------------
inject() {  # inject WHAT ARGUMENTS...: qkv with a failing system call; its code in $got and output in $out
  what=$1
  shift
  out=$(timeout 60 strace -f -qq -o /dev/null -e "inject=$what" "$qkv" "$@" 2>&1 </dev/null)
  got=$?
}
withstands() {  # withstands WHAT ARGUMENTS...: 0 or 1, or 2 with a hint
  inject "$@"
  case $got:$out in
    *.qkv-tmp-*) bad "inject=$*: names a temporary: $out" ;;
    0:* | 1:* | 2:*"hint: "* | 127:*"shared librar"*) ;;
    *) bad "inject=$*: exit $got: $out" ;;
  esac
}
if can_inject; then
  cp -rL "$model" "$folder/slow"
  mkdir "$folder/outs"
  for command in "quantize --to q8" convert; do
    cp -L "$model/model.safetensors" "$folder/slow/"
    # shellcheck disable=SC2086
    strace -f -qq -o /dev/null -e inject=mkdir:delay_exit=1500000 \
      "$qkv" $command "$folder/slow" --out "$folder/outs/made" >"$folder/said" 2>&1 </dev/null &
    tries=0
    until [ -n "$(ls -A "$folder/outs")" ] || [ "$tries" = 100 ]; do
      tries=$((tries + 1))
      sleep 0.1
    done
    : >"$folder/slow/model.safetensors"
    ended $! "$command" "$folder/said"
    rm -rf "$folder/outs/made" "$folder/outs"/.qkv-tmp-*
  done
  inject fsync:error=EIO:when=1 convert "$model" --out "$folder/outs/converted" --dtype f32
  case $got:$out in
    *.qkv-tmp-* | [013]:*) bad "fsync EIO: exit $got: $out" ;;
    2:*"$folder/outs/converted"*"hint: "*) ;;
    *) bad "fsync EIO: exit $got: $out" ;;
  esac
  out=$(strace -f -qq -o /dev/null -P "$model/config.json" -e inject=openat:error=EMFILE "$qkv" info "$model" 2>&1)
  case $out in *"Too many open files"*"ulimit -n"*) ;; *) bad "no descriptor left: $out" ;; esac
  inject mmap:error=ENOMEM:when=28+ run "$model" hi --threads 1
  case $got in 2 | 127) ;; *) bad "mmap ENOMEM: exit $got: $out" ;; esac
  if [ "$form" = long ]; then
    for call in openat:error=EMFILE openat:error=EIO openat:error=EACCES openat:error=ENOSPC read:error=EIO \
      mmap:error=ENOMEM newfstatat:error=EACCES newfstatat:error=EIO clone3:error=EAGAIN mkdir:error=ENOSPC \
      getdents64:error=EIO; do
      # Those of a command that does nothing are the loader's, which may crash.
      strace -f -qq -o "$folder/calls" -e "trace=${call%%:*}" "$qkv" version >/dev/null
      loading=$(wc -l <"$folder/calls")
      for when in 1 2 3 5 8 13 21 34 55 89; do
        when=$((loading + when))
        for command in "info $model" "run $model Once --max-new 2 --threads 2" "tokenize $model Once" \
          "eval $model --data $story --threads 2" "look $model Once --threads 2" "verify $golden/llama --threads 2" \
          "convert $model --out $folder/outs/c" "quantize $model --to q8 --out $folder/outs/q --threads 2" \
          "data pack $story --tokenizer $model --out $folder/outs/d" "train world --out $folder/outs/t $small_recipe"; do
          # shellcheck disable=SC2086
          withstands "$call:when=$when" $command
          rm -rf "$folder/outs"/* "$folder/outs"/.qkv-tmp-*
        done
      done
    done
  fi
else
  echo "left out: system calls cannot be made to fail here (no strace)"
fi
exit "$failed"

#!/bin/sh
# device.sh QKV short|long: --device on every command that computes, with and without a GPU.
# shellcheck source=tests/faults/common.sh
. "$(dirname "$0")/common.sh"

model=$golden/gpt2
printf 'one two three\n' >"$folder/text.txt"
printf 'a b\ta c\n' >"$folder/pairs.tsv"

each_command() {  # each_command EXIT_CODE TEXT OPTION...: commands that need no more than this folder
  wanted=$1 words=$2
  shift 2
  expect "$wanted" "$words" run "$model" --ids 1,2,3 --max-new 2 "$@"
  expect "$wanted" "$words" taps "$model" --ids 1,2,3 "$@"
  expect "$wanted" "$words" look "$model" --ids 1,2,3 "$@"
  expect "$wanted" "$words" verify "$model" "$@"
  expect "$wanted" "$words" train demo --plan --out "$folder/plan" "$@"
}

expect 2 'cpu' run "$model" --ids 1 --device gpu
expect 2 'cuda' run "$model" --ids 1 --device gpu
each_command 0 '' --device cpu
each_command 0 '' --device auto
for command in run chat translate eval look heads lens cut taps attribute align twins route train lab verify quantize demo; do
  expect 0 '--device' "$command" --help
done

if "$qkv" version | grep -q '^GPU  *none'; then
  why=$("$qkv" version | sed -n 's/^GPU  *none: //p')
  each_command 2 "there is no GPU to use: $why" --device cuda
  case $out in *hint:*'--device cpu'*) ;; *) bad "no hint: $out" ;; esac
  for command in translate eval heads lens cut attribute align twins route; do
    case $command in
      translate | align) set -- "$golden/marian" ;;
      route) set -- "$golden/mixtral" ;;
      *) set -- "$model" ;;
    esac
    case $command in
      attribute) set -- "$@" a ;;
      cut) set -- "$@" --heads L0H0 --data "$folder/text.txt" ;;
      align) set -- "$@" a b ;;
      translate) ;;
      *) set -- "$@" --data "$folder/text.txt" ;;
    esac
    expect 2 'there is no GPU to use' "$command" "$@" --device cuda
  done
  expect 2 'there is no GPU to use' lab causality --device cuda
  expect 2 'there is no GPU to use' demo --out "$folder/demo" --device cuda
  expect 2 'there is no GPU to use' quantize "$model" --to q8 --out "$folder/q8" --device cuda
  expect 2 'there is no GPU to use' train demo --out "$folder/new" --device cuda
  for made in q8 new; do [ ! -e "$folder/$made" ] || bad "$made was made although there is no GPU"; done
  # A run that cannot go on here stays as it was.
  small_model "$folder/run" --set steps=6
  before=$(cd "$folder/run" && find . -type f -exec cksum {} + | sort)
  expect 2 'there is no GPU to use' train --resume --out "$folder/run" --device cuda
  [ "$before" = "$(cd "$folder/run" && find . -type f -exec cksum {} + | sort)" ] || bad 'a refused resume changed the run'
else
  each_command 0 'device cuda: ' --device cuda
  each_command 0 'device cuda: ' --device auto
  # The same counters and data on any device: a run of the CPU goes on on the GPU and back.
  small_model "$folder/run" --device cpu --set steps=6
  sed -i 's/"steps": *6/"steps": 9/' "$folder/run/recipe.json"
  expect 0 'device cuda: ' train --resume --out "$folder/run" --device cuda
  sed -i 's/"steps": *9/"steps": 12/' "$folder/run/recipe.json"
  expect 0 'after 12 steps' train --resume --out "$folder/run" --device cpu
fi

# A driver that is too old, as the runtime sees it: a library that says so. Only where the program asks for one.
old_driver() {
  command -v cc >/dev/null || return 1
  echo 'int cuDriverGetVersion(int* v) { *v = 11040; return 0; } int cuInit(unsigned f) { return (int)f; }' >"$folder/old.c"
  cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$folder/libcuda.so.1" "$folder/old.c" 2>/dev/null
}
if "$qkv" version | grep -q 'without kernels for NVIDIA'; then
  echo 'left out: a driver that is too old; this program was built without kernels for GPUs'
elif old_driver; then
  LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
  expect 2 'the driver is made for CUDA 11.4 but this program needs one for' run "$model" --ids 1,2 --device cuda
  expect 0 '' run "$model" --ids 1,2 --max-new 2 --device auto
fi

exit "$failed"

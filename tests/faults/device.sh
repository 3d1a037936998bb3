#!/bin/sh
# device.sh QKV short|long: --device on every command that computes, with and without a GPU.
# shellcheck source=tests/faults/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=tests/server/serve_common.sh
. "$(dirname "$0")/../server/serve_common.sh"

model=$golden/gpt2
# A GPU in software takes minutes for a lab or a step of `demo`.
in_software=$("$qkv" version | grep '^GPU  *a GPU by hand')

each_command() {  # each_command EXIT_CODE TEXT OPTION...: commands that need no more than this folder
  wanted=$1 words=$2
  shift 2
  expect "$wanted" "$words" run "$model" --ids 1,2,3 --max-new 2 "$@"
  expect "$wanted" "$words" taps "$model" --ids 1,2,3 "$@"
  expect "$wanted" "$words" look "$model" --ids 1,2,3 "$@"
  expect "$wanted" "$words" verify "$model" "$@"
  [ -n "$in_software" ] || expect "$wanted" "$words" train demo --plan --out "$folder/plan" "$@"
}

# Random weights with tokenizers: chatty, which has a chat template too, one with experts, one that translates. And one
# that was trained.
serve_models
reader=$folder/chatty
printf '{"model_type": "mixtral", "vocab_size": 608, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
  "num_attention_heads": 2, "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
  "max_position_embeddings": 64, "bos_token_id": 0, "eos_token_id": 470}' >"$folder/experts.json"
printf '{"model_type": "t5", "vocab_size": 124, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2,
  "feed_forward_proj": "relu", "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0,
  "tie_word_embeddings": true, "is_encoder_decoder": true}' >"$folder/t5.json"
for made in experts t5; do expect 0 '' new --spec "$folder/$made.json" --seed 3 --out "$folder/$made"; done
cp "$golden/tokenizers/qwen2/tokenizer.json" "$folder/experts"
cp "$golden/tokenizers/unigram/tokenizer.json" "$folder/t5"
small_model "$folder/run" --device cpu --set steps=6
for i in $(seq 20); do echo "5 9 $i 7 3 9 5"; done >"$folder/ids.txt"

told() {  # told EXIT_CODE TEXT ARGUMENTS...: expect, with a line on standard input
  code=$1 text=$2
  shift 2
  out=$(echo 'the cat' | "$qkv" "$@" 2>&1)
  got=$?
  [ "$got" = "$code" ] || bad "qkv $*: exit $got, not $code: $out"
  case $out in *"$text"*) ;; *) bad "qkv $*: '$text' is not in: $out" ;; esac
}

each_other() {  # each_other EXIT_CODE TEXT OPTION...: the other commands that end by themselves
  wanted=$1 words=$2
  shift 2
  set -- --threads 1 "$@"
  told "$wanted" "$words" chat "$reader" --max-new 5 "$@"
  told "$wanted" "$words" translate "$folder/t5" --max-new 12 "$@"
  expect "$wanted" "$words" eval "$reader" --data "$golden/tokenizers/training_text.txt" --window 32 "$@"
  expect "$wanted" "$words" heads "$golden/llama" --data "$folder/ids.txt" --ids "$@"
  expect "$wanted" "$words" lens "$reader" --data world --tokens 400 --window 40 "$@"
  expect "$wanted" "$words" cut "$folder/run/last" --heads L0H1 --data world --tokens 900 --window 32 "$@"
  expect "$wanted" "$words" attribute "$reader" 'one two' "$@"
  expect "$wanted" "$words" align "$folder/t5" 'the cat' 'the cat sat' "$@"
  expect "$wanted" "$words" twins "$folder/run/last" --data world --tokens 900 --window 32 "$@"
  expect "$wanted" "$words" route "$folder/experts" --data world --tokens 400 --window 32 "$@"
  expect "$wanted" "$words" patch "$reader" --clean hello --corrupt hallo --answer a --wrong b "$@"
  [ -n "$in_software" ] || expect "$wanted" "$words" lab causality "$@"
  expect "$wanted" "$words" quantize "$golden/llama" --to q8 --out "$folder/q8" "$@"
}

sums() { (cd "$1/last/" && sha256sum model.safetensors train_state.safetensors); }

# shellcheck disable=SC2086
computes() {  # computes DEVICE TEXT: every command that has not been run yet; TEXT names the device
  device=$1 named=$2
  each_other 0 "$named" --device "$device"

  serve_start "$reader" --look --device "$device"
  grep -q -- "$named" "$folder/err" || bad "serve: '$named' is not in: $(cat "$folder/err")"
  if command -v curl >/dev/null; then
    # Texts are the same while the page, which has a thread and caches of its own, looks at another one.
    asked() { curl -sS -m 60 -H 'Content-Type: application/json' -d "$2" "http://127.0.0.1:$port$1" 2>&1; }
    text() { asked /v1/completions '{"prompt": "one", "max_tokens": 200, "temperature": 0.8, "seed": 7}' | sed 's/.*"choices"//; s/"usage".*//'; }
    alone=$(text)
    case $alone in *'"finish_reason"'*) ;; *) bad "serve --device $device: $alone" ;; esac
    look() { asked /page/look '{"text": "the cat sat on the mat"}'; }
    look >"$folder/looked"
    for _ in $(seq 600); do  # roles are measured once somebody looks, and are part of later answers
      case $(curl -sS -m 60 "http://127.0.0.1:$port/page/models") in *'"roles":"measuring"'* | *'"roles":"none"'*) sleep 0.1 ;; *) break ;; esac
    done
    looked=$(look)
    case $looked in *'"tokens"'*) ;; *) bad "the page on $device: $looked" ;; esac
    for _ in 1 2 3 4 5 6; do
      look >"$folder/looked" &
      looks=$!
      [ "$(text)" = "$alone" ] || bad "a text beside the page on $device is another one"
      wait "$looks"
      [ "$(cat "$folder/looked")" = "$looked" ] || bad "a look beside a text on $device is another one: $(cat "$folder/looked")"
    done
  else
    echo 'left out: texts of the server (no curl)'
  fi
  serve_stop TERM

  mkdir "$folder/shown"
  expect 0 "$named" train world --watch --out "$folder/shown/run" $small_recipe --set data.world=en \
    --set evaluate.samples=1 --device "$device"
  expect 0 'KL(model || unigram)' movie "$folder/shown/run"
  QKV_MODELS=$folder/none  # it goes on without the built-in model
  export QKV_MODELS
  [ -n "$in_software" ] || expect 0 "$named" demo --out "$folder/shown" --device "$device"
  unset QKV_MODELS

  if [ -n "$in_software" ]; then
    echo 'left out: trainings that are killed, and ranks; a GPU in software takes half a minute for the product that says how long one will take'
    return
  fi
  # Killed after its first checkpoint and resumed: the bits of one that was left alone.
  steps="--set steps=2000 --set checkpoint.every=100 --set evaluate.every=1000"
  expect 0 "$named" train world --out "$folder/whole" $small_recipe $steps --device "$device"
  "$qkv" train world --out "$folder/killed" $small_recipe $steps --device "$device" >/dev/null 2>&1 &
  pid=$!
  until [ -e "$folder/killed/last" ] || ! kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
  kill -9 "$pid" 2>/dev/null
  wait "$pid" 2>/dev/null
  [ $? = 137 ] || bad 'the training ended before it was killed'
  expect 0 "$named" train --resume --out "$folder/killed" --threads 1 --device "$device"
  [ "$(sums "$folder/whole")" = "$(sums "$folder/killed")" ] || bad "killed on $device and resumed: other bits"

  if command -v mpirun >/dev/null; then
    for ranks in 1 2 4; do
      mpirun --allow-run-as-root --oversubscribe -n "$ranks" "$qkv" train world --out "$folder/ranks$ranks" \
        $small_recipe --set steps=6 --set micro_batches=4 --device "$device" >"$folder/log" 2>&1 ||
        bad "$ranks ranks: $(cat "$folder/log")"
      grep -q -- "$named" "$folder/log" || bad "$ranks ranks: '$named' is not in: $(cat "$folder/log")"
      cmp "$folder/ranks1/last/model.safetensors" "$folder/ranks$ranks/last/model.safetensors" ||
        bad "1 and $ranks ranks on $device: other weights"
    done
  else
    echo 'left out: ranks that share the device (no mpirun)'
  fi
}

expect 2 'cpu' run "$model" --ids 1 --device gpu
expect 2 'cuda' run "$model" --ids 1 --device gpu
each_command 0 '' --device cpu
each_command 0 '' --device auto
for command in run chat translate serve eval look heads lens cut taps attribute patch align twins route train lab verify quantize demo; do
  expect 0 '--device' "$command" --help
done

if "$qkv" version | grep -q '^GPU  *none'; then
  why=$("$qkv" version | sed -n 's/^GPU  *none: //p')
  each_command 2 "there is no GPU to use: $why" --device cuda
  case $out in *hint:*'--device cpu'*) ;; *) bad "no hint: $out" ;; esac
  each_other 2 'there is no GPU to use' --device cuda
  expect 2 'there is no GPU to use' serve "$reader" --port 0 --device cuda
  expect 2 'there is no GPU to use' demo --out "$folder/demo" --device cuda
  expect 2 'there is no GPU to use' train demo --out "$folder/new" --device cuda
  for made in q8 new; do [ ! -e "$folder/$made" ] || bad "$made was made although there is no GPU"; done
  # A run that cannot go on here stays as it was.
  before=$(cd "$folder/run" && find . -type f -exec cksum {} + | sort)
  expect 2 'there is no GPU to use' train --resume --out "$folder/run" --device cuda
  [ "$before" = "$(cd "$folder/run" && find . -type f -exec cksum {} + | sort)" ] || bad 'a refused resume changed the run'
  # What a GPU is asked below, asked of the CPU.
  [ "$form" = short ] || computes cpu ''
else
  each_command 0 'device cuda: ' --device cuda
  each_command 0 'device cuda: ' --device auto
  computes cuda 'device cuda: '
  # The same counters and data on any device: a run of the CPU goes on on the GPU and back.
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
elif [ -n "$in_software" ]; then
  echo 'left out: a driver that is too old; a GPU in software has none'
elif old_driver; then
  LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
  expect 2 'the driver is made for CUDA 11.4 but this program needs one for' run "$model" --ids 1,2 --device cuda
  expect 0 '' run "$model" --ids 1,2 --max-new 2 --device auto
fi

exit "$failed"

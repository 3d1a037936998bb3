# Read by each file here:  sh NAME.sh QKV short|long
# shellcheck shell=sh disable=SC2034
qkv=$1
form=$2  # short: seconds, in every run of the tests; long: ./qkv test --faults
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
golden=$(cd "$(dirname "$0")/../golden" && pwd)

bad() {  # bad TEXT: notes a failure and goes on
  printf '%s\n' "$1"
  failed=1
}

expect() {  # expect EXIT_CODE TEXT ARGUMENTS...: qkv's exit code, and TEXT somewhere in stdout or stderr, kept in $out
  code=$1 text=$2
  shift 2
  out=$("$qkv" "$@" 2>&1 </dev/null)
  got=$?
  [ "$got" = "$code" ] || bad "qkv $*: exit $got, not $code: $out"
  case $out in
    *"$text"*) ;;
    *) bad "qkv $*: '$text' is not in: $out" ;;
  esac
}

can_inject() { command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; }  # not in every container

small_model() {  # small_model FOLDER [SETTING...]: trains a tiny model in a second or two
  out=$1
  shift
  # shellcheck disable=SC2086,SC2048
  "$qkv" train world --out "$out" $small_recipe "$@" >/dev/null 2>&1 || bad "the small model did not train"
}
small_recipe="--set steps=30 --set schedule.decay=4 --set schedule.warmup=2 --set evaluate.every=10 --set evaluate.samples=0
  --set data.stories=200 --set data.validation=0.02 --set sequence=32 --set batch_tokens=256 --set checkpoint.every=3 --set tokenizer.vocab=400
  --set model.hidden_size=32 --set model.intermediate_size=64 --set model.num_hidden_layers=1
  --set model.num_attention_heads=4 --set model.num_key_value_heads=4 --threads 1"

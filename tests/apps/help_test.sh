#!/bin/sh
# help_test.sh QKV: help, suggestions, old spellings, completion, and --json of every command that reports.
qkv=$1
failed=0
root=$(cd "$(dirname "$0")/../.." && pwd)
golden=$root/tests/golden
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
unset COLUMNS

wrong() {
  echo "$*"
  failed=1
}

has() {  # has EXIT_CODE TEXT ARGUMENTS...: the code, and the text in stdout or stderr
  code=$1 text=$2
  shift 2
  out=$("$qkv" "$@" 2>&1 </dev/null)
  got=$?
  [ "$got" = "$code" ] || wrong "qkv $*: exit $got, not $code: $out"
  case $out in
    *"$text"*) ;;
    *) wrong "qkv $*: '$text' is not in: $out" ;;
  esac
}

# --- help ------------------------------------------------------------------------------------------------------------
commands='new train tokenizer data world run chat translate serve tokenize eval score verify lab convert quantize cut demo info
  look heads lens attribute patch twins align route taps movie version completion help'
for group in Make Run Judge Change See Help; do has 0 "
$group:
" --help; done
for command in $commands; do
  has 0 "
  $command " help
  has 0 "Usage: qkv $command" help "$command"
  has 0 "Usage: qkv $command" "$command" --help
  has 0 'Examples:' "$command" --help
done
has 0 'Usage: qkv data pack FILE... --tokenizer TOKENIZER --out DIR' help data pack
[ "$("$qkv")" = "$("$qkv" --help)" ] && [ "$("$qkv" help)" = "$("$qkv" --help)" ] || wrong 'qkv, qkv help and --help differ'
has 0 '3 internal error' help
has 0 '--dtype auto|f32|bf16' help run
has 0 '--temperature NUMBER' help run
has 0 '--max-new N' help run
has 0 '--template FILE' help chat
has 0 '--out DIR' help cut

# Examples name commands and options that exist.
if command -v python3 >/dev/null; then
  python3 - "$qkv" $commands <<'END_PYTHON' || wrong 'an example of --help would be refused'
import re, subprocess, sys
qkv, commands = sys.argv[1], sys.argv[2:]
texts = {}
def help_of(words):
    if words not in texts:
        run = subprocess.run([qkv, "help", *words], capture_output=True, text=True, env={"COLUMNS": "100"})
        texts[words] = run.stdout if run.returncode == 0 else None
    return texts[words]
bad = 0
for command in [(), *((c,) for c in commands), ("data", "pack"), ("data", "stats"), ("tokenizer", "train")]:
    for line in re.sub(r" \\\n +", " ", help_of(command)).splitlines():
        if not re.match(r"  (\./)?qkv ", line):
            continue
        line = re.sub(r'"[^"]*"', "TEXT", line)
        for call in re.findall(r"(?:\./)?qkv ((?:[^ |&]+ ?)*)", line.split("   ")[0].strip()):
            words = call.split()
            if not words or words[0] in ("test", "bench", "COMMAND"):
                continue
            asked = tuple(words[:2]) if words[0] in ("data", "tokenizer") and len(words) > 1 else tuple(words[:1])
            text = help_of(asked)
            missing = [w for w in words if w.startswith("--") and text and w.split("=")[0] not in text]
            if text is None or missing:
                print("qkv", *command, "--help:", line.strip(), "->", missing or "no such command")
                bad = 1
sys.exit(bad)
END_PYTHON
fi

# No line is wider than the terminal, whose width COLUMNS says; wide characters count twice.
if command -v python3 >/dev/null; then
  for columns in 60 80 100; do
    for command in '' $commands 'data pack' 'data stats' 'tokenizer train'; do
      # shellcheck disable=SC2086
      COLUMNS=$columns "$qkv" help $command >"$made/help" || wrong "help $command failed"
      python3 - "$made/help" "$columns" <<'END_PYTHON' || wrong "help $command at $columns columns is too wide"
import sys, unicodedata
for line in open(sys.argv[1], encoding="utf-8"):
    line = line.rstrip("\n")
    width = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)
    if width > int(sys.argv[2]):
        print(width, line)
        sys.exit(1)
END_PYTHON
    done
  done
fi
[ "$(COLUMNS=60 "$qkv" help run | wc -l)" -gt "$(COLUMNS=100 "$qkv" help run | wc -l)" ] || wrong 'COLUMNS has no effect'

# --- version ---------------------------------------------------------------------------------------------------------
has 0 'qkv 0.1.0' version
for part in commit kernels compiler MPI; do has 0 "
$part" --version; done
has 0 '"commit"' version --json
has 0 '"kernels"' --version --json
if git -C "$root" rev-parse HEAD >/dev/null 2>&1; then
  commit=$("$qkv" version | sed -n 's/^commit *//p')
  git -C "$root" rev-parse -q --verify "$commit^{commit}" >/dev/null || wrong "version: $commit is no commit"
fi

# --- suggestions -----------------------------------------------------------------------------------------------------
has 2 'did you mean  --temperature' run M hi --temprature 0.5
has 2 'see  qkv run --help' run M hi --temprature 0.5
has 2 'did you mean  --data' heads M --dat world
has 2 'did you mean  qkv quantize' quantise M
has 2 'did you mean  qkv test' tset
has 2 'did you mean  qkv data pack' data pak
has 2 'did you mean  qkv look' help lok
has 2 'see  qkv data pack --help' data pack --tokenizer bytes --nothing-like-it x
has 2 'did you mean  --version' --verison
has 2 'see  qkv score --help' score one
# Names of llama.cpp, vLLM, transformers and ollama.
for theirs in --max-tokens --n-predict --num_predict --max-new-tokens --max_new_tokens -n; do
  has 2 'did you mean  --max-new ' run M hi $theirs 5
done
has 2 'did you mean  --temperature' run M hi --temp=0.5
has 2 'did you mean  --context' run M hi --ctx-size 512
has 2 'did you mean  --context' serve M --max-model-len 512
has 2 'did you mean  --window' eval M --data f --max_length 512
has 2 'did you mean  --threads' run M hi -t 4
has 2 'did you mean  --device' run M hi -ngl 99
has 2 'did you mean  --repetition-penalty' chat M --repeat-penalty 1.1
has 2 'did you mean  --slots' serve M --parallel 4
has 2 'did you mean  --keys' serve M --api-key k
has 2 'did you mean  --json-schema' run M hi --guided-json f
has 2 'did you mean  --to' quantize M --out d --bits 4
has 2 'did you mean  --set steps=N' train demo --max-steps 5
has 2 'did you mean  --set seed=N' train demo --seed 5
has 2 'MODEL is an argument without a name:  qkv run MODEL' run --model M hi
has 2 'PROMPT is an argument without a name' run M -p hi
has 2 'did you mean  qkv run' generate M hi
has 2 'did you mean  qkv models' list
has 2 'see  qkv run --help' run M hi --slots 4
has 2 "unexpected argument 'three'" run one two three
has 2 'command of the launcher' test

# --- old spellings: an error that names the new one ------------------------------------------------------------------
old() {  # old NEW ARGUMENTS...
  new=$1
  shift
  has 2 "is now  $new" "$@"
  case $out in *"see  qkv $1"*) ;; *) wrong "qkv $*: no way to its help: $out" ;; esac
}
old --pharaoh align M a b --pairs
old --target attribute M text written
old --target taps M text written
old --out convert M x.gguf
old --out new --preset gpt2 --seed 1 x
old --out quantize M x --to q8
old --format convert M --out x --to hf
old --out cut M --heads L0H0 --save x
for command in cut heads lens route twins; do old --window "$command" M --data world --length 9; done
old 'qkv verify' data verify x
old --data eval M --pairs x
old --cost taps M --price
old 'qkv verify' tokenize M --verify x
old --kind tokenizer train --vocab 300 --model bpe x
old --n translate M --n-best 2
old --closest twins M --data world --pairs 3
for command in align attribute heads lab lens look movie patch route taps twins; do
  has 2 '--out FILE' "$command" --json x.json
  has 2 '--out FILE' "$command" --json -
  has 2 '--out FILE' "$command" --json=x
done
for command in cut demo; do has 2 '--json > FILE' "$command" --json x.json; done
[ ! -e x ] && [ ! -e x.json ] || wrong 'an old spelling wrote something'

# --- completion ------------------------------------------------------------------------------------------------------
has 0 '#compdef qkv' completion zsh
has 2 'bash, zsh' completion fish
if command -v bash >/dev/null; then
  "$qkv" completion bash >"$made/completion" || wrong 'completion bash failed'
  cat >"$made/ask" <<'END_BASH'
source "$1"
cd "$2"
ask() {  # ask EXPECTED WORDS...: what the last word is completed to
  local expected=$1
  shift
  COMP_WORDS=(qkv "$@") COMP_CWORD=$#
  _qkv
  case " ${COMPREPLY[*]} " in
    *" $expected "*) ;;
    *) echo "completion of '$*': no $expected in: ${COMPREPLY[*]}"; exit 1 ;;
  esac
}
ask quantize quan
ask test te
ask --temperature run M --te
ask bf16 run --dtype b
ask pack data ''
ask --split-validation data pack --split
ask bytes.txt data pack by
ask bytes.txt run by
ask bytes.txt run M hi --draft 2 --cache auto by
ask zsh completion ''
ask data help da
ask induction lab ind
ask gpt2-xl info --preset gpt2-x
ask shakespeare-char train shake
ask world:zh heads M --data world
COMP_WORDS=(qkv run M --n '') COMP_CWORD=4
_qkv
[ "${#COMPREPLY[@]}" = 0 ] || { echo "completion of a number: ${COMPREPLY[*]}"; exit 1; }
END_BASH
  : >"$made/bytes.txt"
  bash "$made/ask" "$made/completion" "$made" || failed=1
fi

# --- --json: JSON on standard output, and nothing else ---------------------------------------------------------------
command -v python3 >/dev/null || exit "$failed"
json() {  # json EXIT_CODE ARGUMENTS...
  code=$1
  shift
  "$qkv" "$@" --json >"$made/out.json" 2>"$made/err" </dev/null
  got=$?
  [ "$got" = "$code" ] || wrong "qkv $* --json: exit $got, not $code: $(cat "$made/err")"
  python3 -m json.tool "$made/out.json" >/dev/null 2>&1 || wrong "qkv $* --json: not JSON: $(head -c 300 "$made/out.json")"
}
json_lines() {  # the same, a document per line
  "$qkv" "$@" --json >"$made/out.json" 2>"$made/err" || wrong "qkv $* --json: $(cat "$made/err")"
  python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]' "$made/out.json" ||
    wrong "qkv $* --json: a line is not JSON: $(head -c 300 "$made/out.json")"
}
tokenizers=$golden/tokenizers
printf '{"model_type": "llama", "vocab_size": 600, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
  "num_attention_heads": 2, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2}' >"$made/llama.json"
printf '{"model_type": "t5", "vocab_size": 124, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2,
  "feed_forward_proj": "relu", "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0,
  "tie_word_embeddings": true, "is_encoder_decoder": true}' >"$made/t5.json"
"$qkv" new --spec "$made/llama.json" --seed 3 --out "$made/llama" >/dev/null || failed=1
"$qkv" new --spec "$made/t5.json" --seed 3 --out "$made/t5" >/dev/null || failed=1
cp "$tokenizers/llama2/tokenizer.json" "$made/llama"
cp "$tokenizers/unigram/tokenizer.json" "$made/t5"
printf 'the cat sat\n\nthe dog ran\n' >"$made/text"
printf 'the cat\tdie Katze\n' >"$made/pairs"
few='--data world --tokens 800 --window 32 --threads 1'
json 0 version
json 0 info --preset gpt2
json 0 info "$made/llama"
json 0 tokenize "$made/llama" 'the cat'
json 0 verify "$golden/llama"
json 0 verify "$tokenizers/gpt2"
json 0 tokenizer train --vocab 300 --out "$made/tokenizer.json" "$tokenizers/training_text.txt"
json 0 data pack --tokenizer bytes --split-validation 0 --out "$made/data" "$made/text"
json 0 data stats "$made/data"
json 0 verify "$made/data"
json 0 run "$made/llama" 'the cat' --max-new 3
json 0 eval "$made/llama" --data "$tokenizers/training_text.txt" --window 32
json 0 score "$made/text" "$made/text"
json 0 quantize "$golden/llama" --to q8 --out "$made/q8"
json 0 look "$made/llama" 'the cat sat'
json 0 attribute "$made/llama" 'the cat sat'
json 0 patch "$made/llama" --clean 'the cat sat' --corrupt 'the cot sat' --answer the --wrong a
json 0 align "$made/t5" 'the cat' 'the cat'
json 0 align "$made/t5" --data "$made/pairs"
json 0 taps
json 0 taps "$made/llama"
json 0 taps "$made/llama" 'the cat' --sites attn.q
json 0 lab --list
json 0 train --list
# shellcheck disable=SC2086
{
  json 0 heads "$made/llama" $few
  json 0 lens "$made/llama" $few
  json 0 twins "$made/llama" $few
  json 0 cut "$made/llama" --heads L0H0 $few
}
json_lines world --lines 3
printf 'the cat\n' >"$made/in"
"$qkv" translate "$made/t5" --max-new 3 --json <"$made/in" >"$made/out.json" 2>/dev/null
python3 -m json.tool "$made/out.json" >/dev/null || wrong 'translate --json: not JSON'
json_lines train world --watch --out "$made/run" --threads 1 --set steps=4 --set schedule.decay=1 --set schedule.warmup=1 \
  --set evaluate.every=4 --set evaluate.samples=1 --set micro_batches=2 --set checkpoint.every=4 --set data.stories=300 --set data.validation=0.02 --set sequence=32 --set batch_tokens=256 --set model.hidden_size=32 \
  --set model.intermediate_size=64 --set model.num_hidden_layers=1 --set tokenizer.vocab=400 --set model.num_attention_heads=4 --set model.num_key_value_heads=4
json 0 movie "$made/run"

# A warm-up that does not fit names its key.
has 2 'schedule.warmup is 100' train world --out "$made/short" --set steps=60 --set schedule.warmup=100 --set schedule.decay=0
# Where a file is wanted, a template is no file.
has 2 'takes a file' chat "$made/llama" --template '{{ messages }}'
exit "$failed"

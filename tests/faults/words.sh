#!/bin/sh
# Words from elsewhere: they cannot steer a terminal, fill a screen or all memory; options are not left aside in silence.
# shellcheck source=tests/faults/common.sh
. "$(dirname "$0")/common.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
esc=$(printf '\033')
bell=$(printf '\007')
csi=$(printf '\302\233')       # U+009B
turn=$(printf '\342\200\256')  # U+202E

# --- models whose every token holds what steers a terminal --------------------------------------------------------------

tokens='"</s>": 0, "<unk>": 1'
for n in 2 3 4 5 6 7; do tokens="$tokens, \"\\u001b]0;t\\u0007\\u009b31m\\u202e$n\": $n"; done
for kind in llama t5; do
  case $kind in
    llama) fields='"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
      "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "bos_token_id": 0' ;;
    t5) fields='"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2, "feed_forward_proj": "relu",
      "pad_token_id": 0, "decoder_start_token_id": 0, "is_encoder_decoder": true' ;;
  esac
  printf '{"model_type": "%s", "vocab_size": 8, "eos_token_id": 0, "tie_word_embeddings": true, %s}' "$kind" "$fields" \
    >"$folder/config.json"
  "$qkv" new --spec "$folder/config.json" --seed 3 --out "$folder/$kind" >/dev/null || bad "no model $kind"
  printf '{"version": "1.0", "added_tokens": [{"id": 0, "content": "</s>", "single_word": false, "lstrip": false,
    "rstrip": false, "normalized": false, "special": true}], "normalizer": null, "pre_tokenizer": null,
    "post_processor": null, "decoder": null, "model": {"type": "WordLevel", "vocab": {%s}, "unk_token": "<unk>"}}' \
    "$tokens" >"$folder/$kind/tokenizer.json"
  printf '{"decoder_start_token_id": 0, "eos_token_id": 0, "suppress_tokens": [0, 1]}' \
    >"$folder/$kind/generation_config.json"
done

harmless() {  # harmless WHAT TEXT: shown escaped, not sent
  case $2 in
    *"$esc"* | *"$bell"* | *"$csi"* | *"$turn"*) bad "$1 steers the terminal: $(printf '%.300s' "$2" | cat -v)" ;;
  esac
  case $2 in
    *'\u001b'*) ;;
    *) bad "$1 does not show what it has: $2" ;;
  esac
}

on_terminal() {  # on_terminal ARGUMENTS...: what a terminal gets of qkv, in $out
  out=$(TERM=${term-xterm} NO_COLOR=${no_color-1} script -qec "'$qkv' $*" /dev/null </dev/null)
}

if command -v script >/dev/null; then
  for arguments in "run $folder/llama a --max-new 3" "run $folder/llama a --max-new 3 --n 2 --temperature 1" \
    "run $folder/llama a --max-new 3 --beam 2" "run $folder/t5 a --max-new 3" "run $folder/llama a --max-new 3 --json" \
    "tokenize $folder/llama '$esc]0;t$bell${csi}31m${turn}2'" "tokenize $folder/llama --spans '$esc]0;t$bell${csi}31m${turn}2'"; do
    on_terminal "$arguments"
    case $arguments in tokenize*) out="$out\\u001b" ;; esac  # has a picture of it instead
    harmless "$arguments" "$out"
  done
  printf 'a\n' >"$folder/in"
  for more in '' '--n 2' '--json'; do
    out=$(TERM=xterm script -qec "'$qkv' translate $folder/t5 --max-new 3 $more <$folder/in" /dev/null </dev/null)
    harmless "translate $more" "$out"
  done

  # Colour where it is wanted, nowhere else.
  look="look $folder/llama 'a'"
  no_color='' on_terminal "$look"
  case $out in *"$esc"*) ;; *) bad 'no colour on a terminal' ;; esac
  for term in dumb ''; do
    no_color='' on_terminal "$look"
    case $out in *"$esc"*) bad "colour with TERM=$term" ;; esac
  done
  term=xterm on_terminal "$look"
  case $out in *"$esc"*) bad 'colour in spite of NO_COLOR' ;; esac
  unset term
else
  echo 'without script(1) nothing was tried on a terminal'
fi

# A file gets the text as it is; messages are escaped everywhere.
case $("$qkv" run "$folder/llama" a --max-new 3 2>/dev/null) in
  *"$esc]0;t$bell$csi"*) ;;
  *) bad 'a pipe gets another text than the model wrote' ;;
esac
name="x${esc}[31m$bell$csi$turn"
{ printf "{{ raise_exception('%s' + " "$name"; printf "'x' * 4000000) }}"; } >"$folder/template"
for arguments in "train $name --out $folder/none" "run $folder/$name a" "info $folder/$name" "$name" "run --$name" "run $folder/llama a --stop $name --ids" \
  "chat $folder/llama --template $folder/template --set $name" "data pack $folder/$name --out $folder/none --tokenizer bytes"; do
  # shellcheck disable=SC2086
  expect 2 'hint' $arguments
  harmless "qkv $arguments" "$out"
done
printf 'hello\n' >"$folder/in"
out=$("$qkv" chat "$folder/llama" --template "$folder/template" 2>&1 <"$folder/in")
[ "${#out}" -lt 2000 ] || bad "the message of a template has ${#out} characters"
harmless 'the message of a template' "$out"
long=$(head -c 100000 /dev/zero | tr '\0' x)
for arguments in "run $long a" "$long" "run --$long" "look $folder/llama a --head $long"; do
  # shellcheck disable=SC2086
  expect 2 'bytes]...' $arguments
  [ "${#out}" -lt 1500 ] || bad "a message has ${#out} characters: $(printf '%.300s' "$out")"
done
expect 0 '"train"' data pack "$folder/in" --out "$folder/$(printf 'text\377')" --tokenizer bytes --json
small_model "$folder/world" --set evaluate.samples=1 --set "evaluate.prompts=[\"\\u001b[31mx\"]"
if command -v script >/dev/null; then
  rm -rf "$folder/world"
  # shellcheck disable=SC2086
  set -- $small_recipe
  out=$(TERM=xterm NO_COLOR=1 script -qec "'$qkv' train world --out $folder/world $* --set evaluate.samples=1 \
    --set 'evaluate.prompts=[\"\\u001b]0;t\\u0007\"]'" /dev/null </dev/null | grep -a '^    |')
  harmless 'a sample' "$out"
fi

# --- standard input without end -----------------------------------------------------------------------------------------

bounded='prlimit --as=4500000000'
$bounded "$qkv" version >/dev/null 2>&1 || bounded=  # not under a sanitizer
endless() {  # endless TEXT COMMAND...: exit 2 and this text, in bounded memory
  text=$1
  shift
  # shellcheck disable=SC2086
  out=$(yes endless | tr '\n' ' ' | timeout 100 $bounded "$qkv" "$@" 2>&1 >/dev/null)
  got=$?
  [ "$got" = 2 ] || bad "qkv $* reads without end: exit $got: $(printf '%.300s' "$out")"
  case $out in *"$text"*) ;; *) bad "qkv $*: '$text' is not in: $(printf '%.300s' "$out")" ;; esac
}
endless 'more than 67108864 bytes' tokenize "$folder/llama" - --ids
endless 'more than 67108864 bytes' tokenize "$folder/llama"
endless 'more than 67108864 bytes' run "$folder/llama" -
endless 'line 1 of standard input has more than 1048576 bytes' translate "$folder/t5"
endless 'line 1 of standard input has more than 1048576 bytes' chat "$folder/llama" --template "$folder/template"
endless 'limit' data pack - --out "$folder/packed" --tokenizer bytes
if [ "$form" = long ]; then
  endless 'more than' score /dev/stdin "$folder/in"
  endless 'more than' eval "$folder/llama" --data /dev/stdin
  endless 'more than' heads "$folder/llama" --data /dev/stdin
fi
out=$(yes a | timeout 60 "$qkv" translate "$folder/t5" --max-new 2 2>/dev/null | head -n 3 | wc -l)
[ "$out" = 3 ] || bad "translate wrote $out of 3 lines of input without end"

# A line is answered when it is there, not at the end.
mkfifo "$folder/pipe"
timeout 60 "$qkv" translate "$folder/t5" --max-new 2 --threads 1 <"$folder/pipe" >"$folder/out" 2>&1 &
exec 3>"$folder/pipe"
printf 'a\n' >&3
waited=0
while [ ! -s "$folder/out" ] && [ "$waited" -lt 150 ]; do
  sleep 0.1
  waited=$((waited + 1))
done
[ -s "$folder/out" ] || bad 'translate waits for the end of its input'
exec 3>&-
wait $! || bad "translate failed: $(cat "$folder/out")"

# --- options that would be left aside -----------------------------------------------------------------------------------

for option in '--temperature 1' '--top-k 2' '--top-p 0.5' '--min-p 0.1' '--typical-p 0.5' '--seed 1' '--presence-penalty 1' \
  '--frequency-penalty 1' '--logit-bias 3=1' '--stop x' '--draft 2' '--logprobs 1 --json'; do
  # shellcheck disable=SC2086
  expect 2 "${option%% *} with --beam 2" run "$folder/llama" a --beam 2 --max-new 2 $option
done
expect 2 'without --beam' run "$folder/llama" a --length-penalty 2
expect 0 '' run "$folder/llama" a --beam 2 --max-new 2 --length-penalty 2 --repetition-penalty 1.1 --no-repeat-ngram 2
expect 2 'leave out --dtype' verify "$golden/tokenizers/gpt2" --dtype bf16
expect 2 'leave out --dtype' verify "$golden/tokenizers/gpt2" --vectors "$golden/tokenizers/gpt2/vectors.json" --dtype f32
"$qkv" data pack "$folder/in" --out "$folder/packed" --tokenizer bytes >/dev/null || bad 'data pack failed'
expect 0 'every file' verify "$folder/packed"
expect 2 'leave out --dtype' verify "$folder/packed" --dtype bf16

# The forced first token of the target, token by token as in a search.
for forced in 4 6; do
  printf '{"decoder_start_token_id": 0, "eos_token_id": 0, "suppress_tokens": [0, 1], "forced_bos_token_id": %d}' "$forced" \
    >"$folder/t5/generation_config.json"
  greedy=$("$qkv" run "$folder/t5" a --max-new 3)
  search=$("$qkv" run "$folder/t5" a --max-new 3 --beam 1)
  [ "$greedy" = "$search" ] || bad "run wrote '$greedy' but with --beam 1 '$search'"
  case $greedy in "$esc]0;t$bell${csi}31m$turn$forced"*) ;; *) bad "token $forced is not forced: $greedy" ;; esac
done

# --- look shows no bytes ------------------------------------------------------------------------------------------------

printf '{"model_type": "llama", "vocab_size": 500, "eos_token_id": 0, "hidden_size": 16, "intermediate_size": 32,
  "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 64,
  "rms_norm_eps": 1e-6, "bos_token_id": 0}' >"$folder/config.json"
"$qkv" new --spec "$folder/config.json" --seed 4 --out "$folder/bytes" >/dev/null || bad 'no model of bytes'
cp "$golden/tokenizers/gpt2/tokenizer.json" "$folder/bytes"
for more in '' '--token 3' '--layer 1'; do
  # shellcheck disable=SC2086
  out=$(COLUMNS=200 "$qkv" look "$folder/bytes" '早上好，床前明月光' $more 2>&1) || bad "look $more: $out"
  case $out in *'\x'*) bad "look $more shows bytes: $(printf '%s\n' "$out" | grep -F '\x')" ;; esac
  case $out in *◌*) ;; *) bad "look $more: no part of a character was there to be shown" ;; esac
done

# --- the launcher of a tree that cannot be written ------------------------------------------------------------------------

tree=$folder/tree
mkdir -p "$tree/build/release/bin" "$tree/scripts" "$tree/src"
cp "$root/qkv" "$tree"
printf '#!/bin/sh\necho "built: $*"\n' >"$tree/build/release/bin/qkv"
chmod +x "$tree/build/release/bin/qkv"
: >"$tree/src/old.cpp"
touch -d '2020-01-01' "$tree/src/old.cpp"
chmod 755 "$folder"
chmod -R a-w "$tree"
as_nobody() {  # permissions do not bind root
  if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi
}
out=$(as_nobody "$tree/qkv" info x 2>&1)
[ "$out" = 'built: info x' ] || bad "a built tree that cannot be written: $out"
chmod u+w "$tree/src" && : >"$tree/src/new.cpp" && chmod -R a-w "$tree/src"
touch -d '2030-01-01' "$tree/src/new.cpp"
out=$(as_nobody "$tree/qkv" info x 2>&1)
case $out in *'src/new.cpp is newer'*'built: info x') ;; *) bad "newer sources are not named: $out" ;; esac
chmod -R u+w "$tree"

exit "$failed"

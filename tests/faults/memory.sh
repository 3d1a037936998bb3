#!/bin/sh
# Reading a JSON file takes at most three times its size and 16 MiB beyond what the program itself takes.
# shellcheck source=tests/faults/common.sh
. "$(dirname "$0")/common.sh"
bytes=3000000
[ "$form" = short ] || bytes=40000000

# What the program takes while it waits for its text, in KiB of address space.
mkdir "$folder/small" "$folder/large"
printf '{"model":{"type":"WordLevel","vocab":{"<unk>":0}}}' >"$folder/small/tokenizer.json"
mkfifo "$folder/text"
"$qkv" tokenize "$folder/small" - <"$folder/text" >"$folder/out" 2>&1 &
exec 3>"$folder/text"
sleep 1
base=$(awk '/^VmPeak/ { print $2 }' "/proc/$!/status")
echo a >&3
exec 3>&-
wait $! || bad "the small tokenizer was not read: $(cat "$folder/out")"

limited() {  # limited CODE FILE ARGUMENTS...: qkv ends with the code though it may take no more than the bound
  code=$1 size=$(($(wc -c <"$2") / 1024))
  shift 2
  out=$(
    # shellcheck disable=SC3045  # dash and bash have it
    ulimit -v $((base + 3 * size + 16384))
    "$qkv" "$@" 2>&1 </dev/null
  )
  got=$?
  [ "$got" = "$code" ] || bad "qkv $* with $base KiB for itself and $size KiB to read: exit $got, not $code: $out"
}

list() {  # list FORMAT: FORMAT with a number, again and again to $bytes bytes, with commas between
  awk -v format="$1" -v bytes="$bytes" 'BEGIN {
    for (i = 0; at < bytes; ++i) { one = sprintf((i ? "," : "") format, i, i); printf "%s", one; at += length(one) }
  }'
}

tokenizer() {  # tokenizer CODE BEFORE FORMAT AFTER: a tokenizer.json with a long list in it
  { printf '%s' "$2"; list "$3"; printf '%s' "$4"; } >"$folder/large/tokenizer.json"
  limited "$1" "$folder/large/tokenizer.json" tokenize "$folder/large" w1
}

tokenizer 0 '{"model":{"type":"WordLevel","unk_token":"w0","vocab":{' '"w%d":%d' '}}}'
tokenizer 0 '{"model":{"type":"Unigram","unk_id":0,"vocab":[' '["w%d",-%d.5]' ']}}'
tokenizer 0 '{"model":{"type":"WordLevel","vocab":{"<unk>":0}},"later":[' '%d' ']}'
tokenizer 2 '{"model":{"type":"WordLevel","vocab":{"<unk>":0}},"added_tokens":[' '0' ']}'
for harm in '[ ] 0' '[ ] {}' '{ } "%d":0' '[ ] [%d]'; do
  open=${harm%% *} item=${harm##* } close=${harm#* }
  close=${close%% *}
  tokenizer 2 "{\"normalizer\":$open" "$item" "$close}"
  { printf '%s' "$open"; list "$item"; printf '%s' "$close"; } >"$folder/large/config.json"
  limited 2 "$folder/large/config.json" info "$folder/large"
done
exit "$failed"

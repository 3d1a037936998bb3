#!/bin/sh
# demo_page_test.sh QKV: qkv demo serves its page from the start, with the built-in model where there is one, shows its own
# training on it, ends without a terminal as ever, and on a terminal stays until Ctrl-C.
qkv=$1
command -v curl >/dev/null || { echo 'curl is not installed'; exit 77; }
failed=0
folder=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$folder"' EXIT
bad() {
  printf '%s\n' "$1"
  failed=1
}
wait_for() {  # wait_for COMMAND...: until it succeeds, at most a minute
  for _ in $(seq 600); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.1
  done
  return 1
}
address_in() { sed -n 's/^The page: \(http[^ [:cntrl:]]*\).*$/\1/p' "$1" | head -n 1; }
has_address() { [ -n "$(address_in "$1")" ]; }
page_has() { curl -fs "${1%%#*}" | grep -q "$2"; }  # page_has ADDRESS TEXT

# A model of a moment: as the built-in one, and as what the demo has trained already.
mkdir "$folder/demo"
"$qkv" train demo --watch --out "$folder/demo/run" --threads 1 --set steps=6 --set schedule.warmup=1 --set schedule.decay=2 --set data.stories=300 --set evaluate.every=3 \
  --set model.hidden_size=32 --set model.intermediate_size=64 >/dev/null 2>&1 || bad 'no model to begin with'
mkdir "$folder/models" "$folder/none" "$folder/bin"
"$qkv" models --pack "$folder/demo/run" --out "$folder/models/world" >/dev/null || bad 'it cannot be packed'

# Without a terminal: no page unless a port is asked for.
QKV_MODELS=$folder/none "$qkv" demo --out "$folder/demo" --threads 1 </dev/null >"$folder/plain" 2>&1 || bad "the demo ends with $?"
! grep -q '^The page: ' "$folder/plain" || bad 'a page without a terminal, and no port was asked for'
for models in none models; do
  QKV_MODELS=$folder/$models "$qkv" demo --out "$folder/demo" --threads 1 --port 0 </dev/null >"$folder/out" 2>&1 &
  pid=$!
  wait_for has_address "$folder/out" || bad "no address: $(cat "$folder/out")"
  address=$(address_in "$folder/out")
  case $models,$address in
    none,*'#/training' | models,*'#/') ;;
    *) bad "with $models the address is $address" ;;
  esac
  wait_for page_has "$address" 'id="report"' || bad "$address does not answer"
  [ "$models" = none ] || wait_for page_has "$address" '"answer":"' || bad 'the page comes without an answer'
  [ "$models" = none ] || page_has "$address" '"title":"Anna: cat boat star' || bad 'the example has words that the model does not know'
  wait "$pid" || bad "the demo with a page ends with $?: $(tail -n 3 "$folder/out")"
  pid=
  ! page_has "$address" 'id="report"' || bad 'the page outlives the demo'
  grep -q 'demo.html' "$folder/out" || bad 'the demo was not carried out'
done

# On a terminal: opened where there is a screen, shows training and model, stays until Ctrl-C.
if command -v script >/dev/null; then
  printf '#!/bin/sh\nprintf "%%s" "$1" >%s/opened\n' "$folder" >"$folder/bin/xdg-open"
  chmod +x "$folder/bin/xdg-open"
  printf 'unset CI\nexport QKV_MODELS=%s/models DISPLAY=:99 PATH=%s/bin:$PATH\necho $$ >%s/pid\nexec %s demo --out %s/demo --threads 1 --port 0\n' \
    "$folder" "$folder" "$folder" "$qkv" "$folder" >"$folder/run.sh"
  script -qefc "sh $folder/run.sh" "$folder/tty" </dev/null >/dev/null 2>&1 &
  waiting=$!
  wait_for test -s "$folder/opened" || bad "nothing was opened: $(cat "$folder/tty")"
  pid=$(cat "$folder/pid")
  address=$(cat "$folder/opened")
  wait_for grep -q 'stays until Ctrl-C' "$folder/tty" || bad 'it does not stay'
  curl -fs "${address%%#*}page/jobs" | grep -q '"state":"finished"' || bad 'the page does not show the training'
  wait_for sh -c "curl -fs '${address%%#*}page/models' | grep -q '\"name\":\"demo\"'" || bad 'the page does not show the model'
  kill -INT "$pid"
  wait "$waiting" || bad "Ctrl-C ends it with $?"
  pid=
fi
exit $failed

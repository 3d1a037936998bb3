#!/bin/sh
# What is written: to links, devices and pipes; checked before the work; no temporaries left behind; links not copied.
# shellcheck source=tests/faults/common.sh
. "$(dirname "$0")/common.sh"
case $qkv in /*) ;; *) qkv=$PWD/$qkv ;; esac
cd "$folder" || exit 1

left() {  # left FOLDER: temporaries in it
  find "$1" -maxdepth 1 -name '.qkv-tmp-*' | wc -l
}
none_left() { [ "$(left "$1")" = 0 ] || bad "$2: left behind: $(ls -A "$1")"; }

# --- links, devices, pipes -------------------------------------------------------------------------------------------

# Devices by links or of our own: a program that replaces them must not replace the machine's.
ln -s /dev/full full
ln -s /dev/null null-link
ln -s /proc/self/fd/1 stdout

mkdir there
ln -s there/report link
ln -s link link2
for text in '' new; do  # the target is absent first
  expect 0 '' taps --out link2
  grep -q '"sites"' there/report || bad "link $text: its target is not the report"
  { [ -L link ] && [ -L link2 ]; } || bad "link $text: it is no link any more"
done
ln -s loop-b loop-a
ln -s loop-a loop-b
expect 2 'loop-a' taps --out loop-a
expect 2 'hint' new --preset gpt2 --seed 1 --out loop-a
expect 0 '' taps --out null-link
[ -L null-link ] || bad 'a link to /dev/null was replaced'
if mknod null c 1 3 2>/dev/null && echo x 2>/dev/null >null; then
  expect 0 '' taps --out null
  [ -c null ] || bad 'a device was replaced by a file'
else
  echo 'no device can be made here: only links to devices are tried'
fi
expect 2 'the report is lost: cannot write full (a link to /dev/full)' taps --out full
case $out in *'No space left'*hint*) ;; *) bad "a full device is not explained: $out" ;; esac
[ -L full ] || bad 'a link to a full device was replaced'
expect 2 '"sites"' taps --json --out full  # what goes to standard output is there all the same
"$qkv" taps --json >full 2>err
[ $? = 2 ] || bad 'standard output on a full device: not exit 2'
grep -q 'could not write the output' err || bad "standard output on a full device: $(cat err)"
mkfifo pipe
timeout 20 cat pipe >got &
expect 0 '' taps --out pipe
wait
grep -q '"sites"' got || bad 'a pipe did not get the report'
[ -p pipe ] || bad 'a pipe was replaced by a file'
env --default-signal=INT "$qkv" taps --out pipe >/dev/null 2>&1 &  # nobody reads
sleep 0.5
kill -INT $! 2>/dev/null || bad 'it did not wait for the reader of a pipe'
wait $! 2>/dev/null
[ $? = 130 ] || bad 'waiting for the reader of a pipe does not end with Ctrl-C'
"$qkv" taps --out stdout >got
tail -n 1 got | grep -q '}' || bad 'the report is not last in standard output'
grep -q 'attn.q' got || bad 'the report overwrote what was printed'

ln -s there/model model-link
expect 0 '' new --spec "$golden/llama/config.json" --seed 1 --out model-link
{ [ -L model-link ] && [ -f there/model/config.json ]; } || bad 'a model did not go where the link leads'
expect 2 'exists already' new --spec "$golden/llama/config.json" --seed 1 --out model-link
expect 2 'device' new --spec "$golden/llama/config.json" --seed 1 --out /dev/null
ln -s there/x.gguf gguf-link
expect 0 '' convert "$golden/llama" --format gguf --out gguf-link
{ [ -L gguf-link ] && [ -s there/x.gguf ]; } || bad 'a GGUF did not go where the link leads'
expect 2 'exists already' convert "$golden/llama" --format gguf --out gguf-link
none_left "$folder" links
none_left there links

# --- checked before the work: the model is not even there ------------------------------------------------------------

refused() {  # refused ARGUMENTS...: with a file in a folder that is missing, and with a folder
  expect 2 'none/x: the folder none' "$@" none/x
  expect 2 'hint' "$@" there
  case $out in *there*' is a folder'* | *there*'exists already'*) ;; *) bad "qkv $* there: $out" ;; esac
}
for option in --out --html --npz; do refused look no-model text "$option"; done
for option in --out --html; do refused movie no-run "$option"; done
refused heads no-model --data no-data --out
refused lens no-model --data no-data --out
refused route no-model --data no-data --out
refused twins no-model --data no-data --out
refused attribute no-model text --out
refused align no-model one two --out
refused taps no-model --out
refused lab induction --out
refused quantize no-model --to q8 --out
refused cut no-model --heads L0H0 --out
refused convert no-model --out
refused convert no-model --format gguf --out
refused data pack --tokenizer bytes no-text --out
refused new --preset gpt2 --seed 1 --out
expect 2 'config.json/x.json' tokenizer train --vocab 300 no-text --out there/model/config.json/x.json
[ ! -e none ] || bad 'a folder was made'

# as nobody, in a folder that is not ours
mkdir closed
chmod 755 "$folder"
chmod 555 closed
cp "$qkv" qkv  # the tree may be closed to others
cat >as_nobody <<END
#!/bin/sh
[ "\$(id -u)" != 0 ] || exec setpriv --reuid=65534 --regid=65534 --clear-groups "$folder/qkv" "\$@"
exec "$qkv" "\$@"
END
chmod 755 as_nobody
real=$qkv qkv=$folder/as_nobody
expect 2 'closed/x: the folder closed: Permission denied' look no-model text --out closed/x
expect 2 'closed/x: the folder closed: Permission denied' convert no-model --out closed/x
qkv=$real

# --- tokenizer train -------------------------------------------------------------------------------------------------

expect 2 'no-text' tokenizer train --vocab 300 --out made/deep no-text
[ ! -e made ] || bad 'tokenizer train left a folder behind'
"$qkv" world --lines 20 >text
expect 0 'made/deep/tokenizer.json' tokenizer train --vocab 300 --out made/deep text
[ "$(find made | wc -l)" = 3 ] || bad "tokenizer train made $(find made)"
expect 0 'made/other.json' tokenizer train --vocab 300 --out made/other.json text
expect 0 '' tokenizer train --vocab 300 --out null-link text
[ -L null-link ] || bad 'tokenizer train replaced a link to a device'

# --- temporaries -----------------------------------------------------------------------------------------------------

appear() {  # appear FOLDER: waits for a temporary in it
  tries=0
  until [ "$(left "$1")" != 0 ] || [ "$tries" = 200 ]; do
    tries=$((tries + 1))
    sleep 0.02
  done
  [ "$tries" != 200 ] || bad 'there was no temporary to remove'
}

ended() {  # ended SIGNAL EXIT_CODE ARGUMENTS...: qkv, that writes into the folder work and reads from the pipe input
  signal=$1 code=$2
  shift 2
  rm -rf work
  mkdir work
  env --default-signal=INT,TERM,HUP "$qkv" "$@" <input >/dev/null 2>&1 &
  exec 3>input  # its end is not seen while this is open
  appear work
  kill "-$signal" $!
  wait $! 2>/dev/null
  got=$?
  exec 3>&-
  [ "$got" = "$code" ] || bad "qkv $*: $signal: exit $got, not $code"
  none_left work "qkv $*: $signal"
}

mkfifo input
pack='data pack --tokenizer bytes --split-validation 0 --out work/x -'
for end in 'INT 130' 'TERM 143' 'HUP 129'; do
  # shellcheck disable=SC2086
  ended $end $pack
done
ended TERM 143 new --preset gpt2 --seed 1 --out work/x
if [ "$form" = long ]; then
  "$qkv" new --preset gpt2 --seed 1 --out big >/dev/null || bad 'no large model'
  for end in 'INT 130' 'TERM 143' 'HUP 129'; do
    # shellcheck disable=SC2086
    ended $end new --preset gpt2 --seed 1 --out work/x
    # shellcheck disable=SC2086
    ended $end convert big --dtype bf16 --out work/x
    # shellcheck disable=SC2086
    ended $end convert big --out work/x.gguf
    # shellcheck disable=SC2086
    ended $end quantize big --to q8 --out work/x --threads 1
  done
  rm -rf big
fi

# A training that still writes its stories has nothing to save: it ends at once.
for end in 'INT 130' 'TERM 143'; do
  rm -rf work
  mkdir -p work
  env --default-signal=INT,TERM "$qkv" train world --out work/run --device cpu --threads 1 >/dev/null 2>&1 &
  until [ -d work/run ]; do sleep 0.02; done
  appear work/run
  kill "-${end% *}" $!
  wait $! 2>/dev/null
  got=$?
  [ "$got" = "${end#* }" ] || bad "train, at its stories: ${end% *}: exit $got, not ${end#* }"
  none_left work/run "train: ${end% *}"
done
rm -rf work
mkdir work

# Killed outright: the next one that writes there removes them, but not those of one that still runs.
# shellcheck disable=SC2086
"$qkv" $pack <input >/dev/null 2>&1 &
exec 3>input
appear work
kill -KILL $!
wait $! 2>/dev/null
exec 3>&-
[ "$(left work)" = 1 ] || bad 'a killed process left no temporary'
expect 0 '' taps --out work/report
none_left work 'the next start'
# shellcheck disable=SC2086
"$qkv" $pack <input >/dev/null 2>&1 &
exec 3>input
appear work
expect 0 '' taps --out work/report
[ "$(left work)" = 1 ] || bad 'the temporary of a living process was removed'
cat text >&3
exec 3>&-
wait $! || bad 'a process whose temporary was looked at did not finish'
[ -f work/x/manifest.json ] || bad 'its output is missing'
none_left work 'the end'

# --- links in a model's folder ---------------------------------------------------------------------------------------

cp -r "$golden/llama" model
echo secret >secret
ln -s "$folder/secret" model/vocab.txt
for command in "convert model --out copy" "quantize model --to q8 --out copy"; do
  # shellcheck disable=SC2086
  expect 2 "model/vocab.txt is a link to $(readlink -f secret)" $command
done
[ ! -e copy ] || bad 'something was made of a folder with a link out of it'

# --- what was looked at is shown, though the page is lost ------------------------------------------------------------

small_model run
expect 2 'the report is lost' look run/last 'Anna' --html full --threads 1
case $out in *embed*) ;; *) bad "look printed nothing but: $out" ;; esac
exit "$failed"

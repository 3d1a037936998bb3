#!/bin/sh
# launcher_test.sh SOURCE: what ./qkv asks apt and cmake for, where programs that only write down how they were called
# stand in for them.
# shellcheck disable=SC2016,SC2015
source=$1
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bad() { printf '%s\n' "$1" && failed=1; }

mkdir -p "$folder/tree" "$folder/fakes"
cp -r "$source/qkv" "$source/scripts" "$folder/tree"
fake() { printf '#!/bin/sh\n%s\n' "$2" >"$folder/fakes/$1" && chmod +x "$folder/fakes/$1"; }
calls=$folder/calls have=$folder/have locked=$folder/locked user=$folder/user
export calls have locked user
unset QKV_WERROR
: >"$calls"
# What is installed are the lines of $have; what is installed goes there.
fake dpkg-query 'shift 3
for name in "$@"; do while read -r line; do case $line in $name) echo installed ;; esac; done <"$have"; done'
fake apt-get 'echo "apt-get $*" >>"$calls"
case "$*" in
  *update*)
    read -r times <"$locked"
    [ "$times" = 0 ] && exit
    [ "$times" = broken ] && echo "E: no network" >&2 && exit 100
    echo $((times - 1)) >"$locked"
    echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1" >&2
    exit 100 ;;
  *install*) for word in "$@"; do echo "$word"; done >>"$have" ;;
esac'
fake sleep 'echo "sleep $*" >>"$calls"'
fake id 'cat "$user"'
fake nvidia-smi 'exit 1'
fake cmake 'echo "cmake $*" >>"$calls"
mkdir -p build/release/bin && : >build/release/build.ninja && echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >build/release/CMakeCache.txt
for word in "$@"; do case $word in -D*) echo "${word#-D}" >>build/release/CMakeCache.txt ;; esac; done'
fake ninja 'printf "#!/bin/sh\necho built\n" >"$2/bin/qkv" && chmod +x "$2/bin/qkv"'
PATH=$folder/fakes:$PATH

launch() {  # launch CODE TEXT: from nothing, ./qkv ends with CODE and says TEXT; $out is all that it says
  rm -rf "$folder/tree/build"
  : >"$calls"
  out=$("$folder/tree/qkv" info x 2>&1 </dev/null)
  got=$?
  [ "$got" = "$1" ] || bad "exit $got, not $1: $out"
  case $out in *"$2"*) ;; *) bad "'$2' is not in: $out" ;; esac
}
called() { grep -c -- "$1" "$calls"; }

# Everything is there but g++ and Boost; apt is busy twice.
sed 's/|.*//' "$source/scripts/packages.txt" | grep -v -x -e 'g++' -e libboost-dev >"$have"
cp "$have" "$folder/most"
echo 0 >"$user" && echo 2 >"$locked"
launch 0 built
[ "$(called 'apt-get -q update')" = 3 ] && [ "$(called 'sleep 5')" = 2 ] || bad "lists that were locked twice: $(cat "$calls")"
[ "$(called '^apt-get -o DPkg::Lock::Timeout=300 install .* g++ libboost-dev$')" = 1 ] || bad "asked for: $(cat "$calls")"

# A lock that nobody gives back, and what is no lock, are said; only the first is waited for.
cp "$folder/most" "$have" && echo 1000 >"$locked"
launch 2 'Could not get lock'
[ "$(called 'sleep 5')" = 60 ] || bad "waited $(called 'sleep 5') times for a lock that nobody gives back"
echo broken >"$locked"
launch 2 'no network'
[ "$(called sleep)" = 0 ] || bad 'waited although apt has no lock to wait for'

# Another Boost that is there will do.
{ cat "$folder/most" && echo g++ && echo libboost1.81-dev; } >"$have"
launch 0 built
[ "$(called apt-get)" = 0 ] || bad "installed beside another Boost: $(cat "$calls")"

# Who may not install is told the same command.
cp "$folder/most" "$have" && echo 1000 >"$user"
launch 2 'sudo apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends g++ libboost-dev'

# Nor does anything else here call or advise an apt that gives up at once.
found=$(cd "$source" && grep -rnE 'apt(-get)? ([^|&`]* )?install' --exclude-dir=build --exclude-dir=.git --exclude-dir=node_modules \
  --exclude=launcher_test.sh -I . | grep -v 'DPkg::Lock::Timeout=')
[ -z "$found" ] || bad "apt without a timeout for its lock: $found"

# Warnings are errors where .ci/run says so, and where they were.
sed 's/|.*//' "$source/scripts/packages.txt" >"$have"
launch 0 built
[ "$(called QKV_WERROR)" = 0 ] || bad "warnings are errors for everybody: $(cat "$calls")"
grep -q '^export QKV_WERROR=ON' "$source/.ci/run" || bad '.ci/run does not make errors of warnings'
: >"$calls"
QKV_WERROR=ON "$folder/tree/qkv" info x >/dev/null 2>&1
[ "$(called 'QKV_WERROR:BOOL=ON')" = 1 ] || bad "QKV_WERROR=ON is not passed on: $(cat "$calls")"
: >"$calls"
"$folder/tree/qkv" info x >/dev/null 2>&1
[ "$(called cmake)" = 0 ] || bad "configured again without a reason: $(cat "$calls")"
exit "$failed"

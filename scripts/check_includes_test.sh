#!/bin/sh
# check_includes.sh must pass a tree of right arrows and name each wrong one.
set -eu

check=$(dirname -- "$(readlink -f -- "$0")")/check_includes.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

put() {  # put FILE LINE: one source file with one include, after an ordinary one
  mkdir -p "$tree/$(dirname -- "$1")"
  printf '#include <vector>\n%s\n' "$2" >"$tree/$1"
}

right() {  # right FILE LINE
  put "$1" "$2"
  if ! output=$(sh "$check" "$tree" 2>&1); then
    echo "FAIL: $1 with $2 is a right arrow, but the check said: $output"
    failures=$((failures + 1))
  fi
  rm "$tree/$1"
}

wrong() {  # wrong FILE LINE TEXT: the check fails and says FILE:2: TEXT
  put "$1" "$2"
  if output=$(sh "$check" "$tree" 2>&1); then
    echo "FAIL: $1 with $2 is a wrong arrow, but the check passed"
    failures=$((failures + 1))
  fi
  case $output in
    *"$1:2: $3"*) ;;
    *)
      echo "FAIL: $1 with $2 should say '$1:2: $3', but the check said: $output"
      failures=$((failures + 1))
      ;;
  esac
  rm "$tree/$1"
}

put src/base/error.h '#include <string>'
put tests/ops/add_test.cpp '#include "kernels/ref/table.h"'
put apps/qkv/main.cpp '#include "server/http.h"'

right src/io/a.cpp '#include "base/error.h"'
right src/io/a.cpp '#include "near.h"'
right src/io/a.cpp '// #include "ops/add.h"'
right src/kernels/ref/a.cpp '#include "core/table.h"'
right src/kernels/cpu/a.cpp '#include "kernels/ref/table.h"'
right src/ops/a.cpp '#include "core/tensor.h"'
right src/model/families/a.cpp '#include "nn/block.h"'
right src/labs/a.cpp '#include "train/trainer.h"'
right src/server/a.cpp '#include "labs/a.h"'
right src/io/a.cpp '#include <nlohmann/json.hpp>'
right src/data/a.cpp '#include "text/tokenizer/tokenizer.h"'
right src/verify/a.cpp '#include "inspect/taps/taps.h"'
right src/open/a.cpp '#include "kernels/tables.h"'
right src/labs/a.cpp '#include "open/open_model.h"'

wrong src/base/a.h '#include "io/safetensors.h"' 'wrong arrow base -> io ("io/safetensors.h"); base may include: base'
wrong src/io/a.h '#include "core/tensor.h"' 'wrong arrow io -> core'
wrong src/kernels/ref/a.cpp '#include "ops/add.h"' 'wrong arrow kernels -> ops'
wrong src/kernels/ref/a.cpp '#include "io/safetensors.h"' 'wrong arrow kernels -> io'
wrong src/ops/a.cpp '#include "kernels/ref/table.h"' 'wrong arrow ops -> kernels'
wrong src/ops/a.cpp '  #  include <kernels/ref/table.h>' 'wrong arrow ops -> kernels'
wrong src/train/a.cpp '#include "infer/session.h"' 'wrong arrow train -> infer'
wrong src/inspect/a.cpp '#include "train/trainer.h"' 'wrong arrow inspect -> train'
wrong src/core/a.cpp '#include "text/tokenizer/tokenizer.h"' 'wrong arrow core -> text ("text/tokenizer/tokenizer.h"); core may include: base io core'
wrong src/text/a.cpp '#include "data/dataset.h"' 'wrong arrow text -> data'
wrong src/text/a.cpp '#include "world/world.h"' 'wrong arrow text -> world'
wrong src/model/a.cpp '#include "data/dataset.h"' 'wrong arrow model -> data'
wrong src/open/a.cpp '#include "inspect/taps/taps.h"' 'wrong arrow open -> inspect'
wrong src/infer/a.cpp '#include "open/open_model.h"' 'wrong arrow infer -> open'
wrong src/train/a.cpp '#include "verify/verify_model.h"' 'wrong arrow train -> verify'
wrong src/labs/a.cpp '#include "server/http.h"' 'wrong arrow labs -> server'
wrong src/core/deep/er/a.cu '#include "nn/block.h"' 'wrong arrow core -> nn'
wrong src/ops/a.cpp '#include "../kernels/ref/table.h"' '"../kernels/ref/table.h" walks through folders'
wrong src/ops/a.cpp '#include "support/random.h"' '"support/random.h" is in no room'

put src/attic/a.cpp '#include "base/error.h"'
case $(sh "$check" "$tree" 2>&1 || :) in
  *"src/attic/a.cpp:1: unknown room src/attic"*) ;;
  *) echo "FAIL: an unknown room passed" && failures=$((failures + 1)) ;;
esac

if sh "$check" "$tree/tests" >/dev/null 2>&1; then
  echo "FAIL: a folder without src/ passed" && failures=$((failures + 1))
fi

[ "$failures" = 0 ] || exit 1
echo "check_includes: 14 right and 21 wrong trees judged as they should be"

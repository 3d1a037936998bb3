#!/bin/sh
# run.sh FOLDER QKV NAME: one file of the module's tests, with FOLDER (build/PRESET/python) to import qkv from.
set -eu
folder=$1
program=$2
name=$3
here=$(dirname -- "$(readlink -f -- "$0")")
python=${PYTHON:-/usr/bin/python3}

skip() {
  echo "skipped: the Python module needs $1; ./qkv test --python installs and builds it"
  exit 77
}

command -v "$python" >/dev/null || skip "$python"
"$python" -c 'import numpy' 2>/dev/null || skip NumPy
[ -n "$(find "$folder/qkv" -name '_core.*.so' 2>/dev/null)" ] || skip 'to be built with pybind11'

PYTHONPATH=$folder:$here
PYTHONDONTWRITEBYTECODE=1
QKV_PROGRAM=$program
export PYTHONPATH PYTHONDONTWRITEBYTECODE QKV_PROGRAM
exec "$python" -X faulthandler -W error::ResourceWarning -m unittest -v "test_$name"

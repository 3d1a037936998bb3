#!/bin/sh
# schema_check.sh SAMPLER short|long: texts under random schemas, judged by Python's jsonschema (schema_check.py).
# Exit code 77: it is left out, because there is no jsonschema here.
set -eu
sampler=${1:?usage: schema_check.sh SAMPLER short|long}
form=${2:?usage: schema_check.sh SAMPLER short|long}
here=$(dirname -- "$0")
python=/usr/bin/python3
[ -x "$python" ] || { echo "schema_check: left out, there is no $python"; exit 77; }
case $form in
  short) exec "$python" -W ignore "$here/schema_check.py" "$sampler" "$here/../golden/tokenizers/gpt2" 60 3 ;;
  long) exec "$python" -W ignore "$here/schema_check.py" "$sampler" "$here/../golden/tokenizers/qwen2" 500 20 ;;
  *) echo "schema_check: $form is neither short nor long" >&2; exit 2 ;;
esac

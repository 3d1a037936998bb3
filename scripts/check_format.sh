#!/bin/sh
# check_format.sh ROOT: all sources are as clang-format 14 writes them. Exit 77 where there is none of that version.
set -eu
root=${1:-$(dirname -- "$0")/..}
cd "$root"

format=
for name in clang-format-14 clang-format; do
  case $(command -v "$name" >/dev/null && "$name" --version) in
    *' version 14.'*) format=$name && break ;;
  esac
done
[ -n "$format" ] || { echo 'skipped: clang-format 14 is not here; other versions format otherwise'; exit 77; }

folders=
for folder in apps bench examples include python/native src tests; do
  [ ! -d "$folder" ] || folders="$folders $folder"
done
# shellcheck disable=SC2086
wrong=$(find $folders -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 -r -n 24 -P "$(nproc 2>/dev/null || echo 1)" "$format" --dry-run 2>&1 |
  sed -n 's/^\([^:]*\):\([0-9]*\):[0-9]*: warning: code should be clang-formatted.*/\1:\2/p')
[ -n "$wrong" ] || exit 0
printf '%s\n' "$wrong"
echo "these lines are not as $format writes them; hint: $format -i FILE"
exit 1

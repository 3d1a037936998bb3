#!/bin/sh
# linked_test.sh QKV: the program needs libc, libstdc++ and OpenSSL alone, so it starts on machines without its other
# libraries; OpenSSL is the system's, whose updates the server must follow. MPI is in a module beside it.
failed=0
needed=$(objdump -p "$1" | sed -n 's/^ *NEEDED *//p')
[ -n "$needed" ] || { echo "objdump says nothing about $1"; exit 1; }
for library in $needed; do
  case $library in
    libc.so.* | libm.so.* | libstdc++.so.* | libgcc_s.so.* | ld-linux* | libssl.so.3 | libcrypto.so.3) ;;
    *) echo "$1 needs $library: link its static form (cmake/static.cmake)" && failed=1 ;;
  esac
done

# Ranks without the module are told so; a single process never looks for it.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$1" "$folder/qkv"
out=$(OMPI_COMM_WORLD_SIZE=2 "$folder/qkv" train demo --plan --out "$folder/run" 2>&1 </dev/null)
code=$?
case $code:$out in
  2:*'mpirun started 2 ranks but MPI cannot be used'*libqkv_mpi.so*) ;;
  *) echo "without the module: exit $code: $out" && failed=1 ;;
esac
out=$("$folder/qkv" train demo --plan --set data.stories=200 --out "$folder/run" 2>&1 </dev/null) ||
  { echo "alone: exit $?: $out" && failed=1; }
exit "$failed"

#!/bin/bash
# op.sh - operators against PyTorch on one thread and ScaLAPACK; by hand
#
#   tests/peers/op.sh [BUILD]
#
# First dtensor-bench op: what a decision and a call cost.  Then each operator
# beside PyTorch's, from the same memory, call by call (op_torch.py), for which
# PYTHON, python3 if it is not set, has to have PyTorch.  Then a product of
# matrices that are cut over 2 ranks, beside ScaLAPACK's psgemm
# (matmul_mpi.c).  What is not there is said, and left out.  CALLS, SHAPE
# ("ROWS COLUMNS") and SIZES in the environment choose less or more.
# shellcheck disable=SC2086 # options are words
set -u
src=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$src/build}" && pwd) || exit 1
calls=${CALLS:-20}
python=${PYTHON:-python3}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
unset "${!DTN_@}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), \
$(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg)"
"$build/dtensor-bench" op infer-hit infer-miss call-into call matmul linear

if "$python" -c 'import torch' 2>/dev/null; then
    "$python" "$src/tests/peers/op_torch.py" "$build/.libs/libdtensor.so" \
        ${SHAPE:-1024 1024} "$calls"
else
    echo "PyTorch: skipped: $python has none (set PYTHON)"
fi

if command -v mpicc.openmpi >/dev/null && mpicc.openmpi -std=c11 -D_GNU_SOURCE \
    -O2 -I"$src/lib" -o "$dir/matmul" "$src/tests/peers/matmul_mpi.c" \
    "$build/.libs/libdtensor.so" -Wl,-rpath,"$build/.libs" \
    -lscalapack-openmpi -lm 2>"$dir/errors"; then
    bind="--bind-to core"
    [ "$(nproc)" -ge 2 ] || bind="--oversubscribe --bind-to none"
    OPENBLAS_NUM_THREADS=1 timeout 300 mpirun.openmpi -np 2 $bind \
        --mca pml ob1 --mca btl self,vader "$dir/matmul" "$calls" \
        ${SIZES:-1024 2048}
else
    echo "ScaLAPACK: skipped: no libscalapack-openmpi (apt-get install \
libopenmpi-dev libscalapack-openmpi-dev)"
fi

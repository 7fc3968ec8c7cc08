#!/bin/bash
# solver.sh - a step of conjugate gradients beside Open MPI; by hand
#
#   tests/peers/solver.sh [BUILD]
#
# 8 x 8 and 64 x 64 points on two ranks bound to cores, with messages that
# overlap the inner points (solver_mpi.c).  ROUNDS jobs; each prints the median
# of a step in us of each contestant, which take turns.
set -u
src=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$src/build}" && pwd) || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
unset "${!DTN_@}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

mpicc.openmpi -std=c11 -D_GNU_SOURCE -O2 -I"$src/lib" -o "$dir/solver" \
    "$src/tests/peers/solver_mpi.c" "$build/.libs/libdtensor.so" \
    -Wl,-rpath,"$build/.libs" || {
    echo "solver: no Open MPI (apt-get install openmpi-bin libopenmpi-dev)"
    exit 1
}
for ((round = 0; round < ${ROUNDS:-5}; round++)); do
    for n in 8 64; do
        timeout 100 mpirun.openmpi -np 2 --bind-to core --mca pml ob1 \
            --mca btl self,vader "$dir/solver" $n "${CALLS:-1000}" |
            awk -v n=$n '{ line = line " " $1 " " $3 } END { print n line }'
    done
done

#!/bin/bash
# host.sh - our collectives on one host against Open MPI and MPICH, and against
# the machine; make bench-peers
#
#   tests/peers/host.sh [BUILD]
#
# Open MPI moves bytes by its own shared memory (ob1) or by UCX.  Each peer and
# round is a job of its own, in which theirs, ours and the bound take turns call
# by call (see host_mpi.c): 2 ranks bound to cores, then 4 ranks on however many
# CPUs there are.  Of a figure the median over the rounds is shown; a ratio is of
# ours to the peer's in the same job, again the median: below 1 we are faster.
# After the table a line for each target: met, or missed by how much.
#
# ROUNDS, CALLS, TESTS, SIZES and PEERS in the environment choose less or more,
# such as TESTS=exchange_started: a started group beside MPI_Isend() and Irecv();
# or TESTS=exchange_parts: 16 messages each way.  RAW names a file that keeps the
# lines of all jobs.
# shellcheck disable=SC2086 # options are words
set -u
src=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$src/build}" && pwd) || exit 1
rounds=${ROUNDS:-4}
calls=${CALLS:-200}
tests=${TESTS:-allreduce allgather reduce_scatter all_to_all broadcast exchange}
sizes=${SIZES:-8 64 512 2048 4096 8192 32768 65536 131072 524288 2097152 8388608}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
unset "${!DTN_@}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# make_peer MPI: build the program with its compiler; false: it is not there.  The
# sums of the bound are made with the widest vectors of this machine, as ours are.
make_peer() {
    local wide="-O3 -march=native"
    [ "$(uname -m)" != x86_64 ] || wide="$wide -mprefer-vector-width=512"
    command -v "mpicc.$1" >/dev/null && "mpicc.$1" -std=c11 -D_GNU_SOURCE $wide \
        -I"$src/lib" -o "$dir/$1" "$src/tests/peers/host_mpi.c" \
        "$build/.libs/libdtensor.so" -Wl,-rpath,"$build/.libs"
}

# run PEER RANKS TESTS CALLS SIZES: the lines of one job
run() {
    local peer=$1 n=$2 list=${3// /,} count=$4 sizes=$5 ompi mpich
    ompi="--bind-to core" mpich="-bind-to core"
    if [ "$n" -gt "$(nproc)" ]; then
        ompi="--oversubscribe --bind-to none" mpich=
    fi
    case $peer in
    ob1) ompi="$ompi --mca pml ob1 --mca btl self,vader" ;;
    ucx) ompi="$ompi --mca pml ucx --mca opal_common_ucx_tls any --mca \
opal_common_ucx_devices any -x UCX_TLS=posix,sysv,cma,self" ;;
    mpich)
        timeout 100 mpirun.mpich -n "$n" $mpich "$dir/mpich" "$list" "$count" \
            $sizes
        return ;;
    esac
    timeout 100 mpirun.openmpi -np "$n" $ompi "$dir/openmpi" "$list" "$count" \
        $sizes
}

peers=
make_peer openmpi && peers="ob1 ucx"
make_peer mpich && peers="$peers mpich"
peers=${PEERS:-$peers}
[ -n "$peers" ] || {
    echo "bench-peers: skipped: no MPI compiler (apt-get install openmpi-bin \
libopenmpi-dev mpich libmpich-dev)"
    exit 0
}

for ((round = 0; round < rounds; round++)); do
    for peer in $peers; do
        run "$peer" 2 "$tests" "$calls" "$sizes" 2>"$dir/errors" |
            sed "s/^/$peer 2 /" || cat "$dir/errors" >&2
        # MPICH takes 24 ms a call where ranks share CPUs: a few will do.
        [ "$peer" = mpich ] && few=10 || few=$calls
        run "$peer" 4 allreduce $few 8 2>"$dir/errors" |
            sed "s/^/$peer 4 /" || cat "$dir/errors" >&2
    done
done >"$dir/times"
[ -z "${RAW:-}" ] || cp "$dir/times" "$RAW"

echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), \
$(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg); $rounds rounds of $calls \
calls; microseconds, the slowest rank of each call, medians"
awk -v peers="$peers" -f "$src/tests/peers/median.awk" \
    -f "$src/tests/peers/host.awk" "$dir/times"

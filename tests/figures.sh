#!/bin/bash
# figures.sh - the figures of this machine, a line each; not part of make check
#
#   tests/figures.sh [BUILD]        start-up, growth, the copy bound, the peers
#
# Start-up is from dtensor-run's fork to the end of the first allreduce, median
# of 20.  Growth is that of 10,000 redistributes.  The bound is the best time
# of a plain copy of the bytes that must come in, taken in the same loop.
#
# Peers are Open MPI (as installed; with UCX) and MPICH, as far as installed,
# bound to cores like our ranks, each measured by peers/collectives_mpi.c as
# dtensor-bench measures: buffers written and read between calls, a barrier
# before, the slowest rank.  Rounds are interleaved, so that all see the same
# machine; the figure is the median over rounds of the medians, and the ratio
# that of ours to the peer in the same round, again the median.
# shellcheck disable=SC2086 # sizes and options are words
set -u
src=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$src/build}" && pwd) || exit 1
bench=$build/dtensor-bench
run=$build/dtensor-run
rounds=${ROUNDS:-4}
iters=${ITERATIONS:-300}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
unset "${!DTN_@}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# The middle of the numbers on stdin.
median() {
    sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

startup() {
    local i
    for ((i = 0; i < 20; i++)); do
        "$bench" --local 4 --startup |
            sed -n 's/^# start-up: 4 ranks, \([0-9.]*\) ms.*/\1/p'
    done | median
}

growth() {
    "$bench" --local 2 --loop 10000 redistribute -b 64K -e 64K |
        sed -n 's/^# 10000 redistributes: //p'
}

# "BYTES MEDIAN" of every size of our ranks, bound to CPUs if "$2" is.
ours() {
    local n=$1 bind=$2 sizes=$3 b
    for b in $sizes; do
        BIND=$bind "$run" -n "$n" bash -c \
            '[ -z "$BIND" ] || taskset -cp $DTN_LOCAL_RANK $$ >/dev/null
             exec "$@"' - "$bench" -q allreduce -b "$b" -e "$b" \
            -n "$iters" -w $((iters / 10)) | awk '{ print $3, $8 }'
    done
}

ompi() {
    local n=$1 bind="--bind-to core" sizes=$3
    [ -n "$2" ] || bind="--oversubscribe --bind-to none"
    timeout 100 mpirun.openmpi -np "$n" $bind --mca btl self,vader \
        --mca pml ob1 "$dir/ompi" allreduce "$iters" $sizes |
        awk '{ print $2, $4 }'
}

ucx() {
    local n=$1 bind="--bind-to core" sizes=$3
    [ -n "$2" ] || bind="--oversubscribe --bind-to none"
    timeout 100 mpirun.openmpi -np "$n" $bind --mca pml ucx \
        --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any \
        -x UCX_TLS=posix,sysv,cma,self "$dir/ompi" allreduce "$iters" $sizes |
        awk '{ print $2, $4 }'
}

# More ranks than CPUs cost it tens of milliseconds a call: a few will do.
mpich() {
    local n=$1 bind="-bind-to core" sizes=$3 some=$iters
    [ -n "$2" ] || { bind=; some=20; }
    timeout 100 mpirun.mpich -n "$n" $bind "$dir/mpich" allreduce "$some" \
        $sizes | awk '{ print $2, $4 }'
}

# compare RANKS BOUND SIZES: rounds of everyone, then a line for each size
compare() {
    local n=$1 bind=$2 sizes=$3 round who b
    rm -f "$dir"/times.*
    for ((round = 0; round < rounds; round++)); do
        for who in ours $peers; do
            $who "$n" "$bind" "$sizes" 2>/dev/null \
                >"$dir/out.$who" || : >"$dir/out.$who"
            while read -r b us; do
                echo "$round $us" >>"$dir/times.$who.$b"
            done <"$dir/out.$who"
        done
    done
    for b in $sizes; do
        printf 'allreduce %s B, %d ranks: ours %s us' "$b" "$n" \
            "$(cut -d' ' -f2 "$dir/times.ours.$b" | median)"
        for who in $peers; do
            [ -s "$dir/times.$who.$b" ] || continue
            printf '; %s %s us, ratio %.2f' "$who" \
                "$(cut -d' ' -f2 "$dir/times.$who.$b" | median)" \
                "$(join "$dir/times.ours.$b" "$dir/times.$who.$b" |
                    awk '{ print $2 / $3 }' | median)"
        done
        echo
    done
}

echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), \
$(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg)"
echo "start-up of 4 ranks to the first allreduce done: $(startup) ms (median \
of 20; target 50)"
echo "10000 redistributes of 64 KiB on 2 ranks: $(growth)"
"$bench" --local 2 -q allreduce -b 8 -e 8M -n 200 | awk '
    { printf "allreduce %d B, 2 ranks, unbound: min %s p50 %s p99 %s us; " \
      "%s of %s GB/s, the copy bound\n", $3, $7, $8, $9, $12, $13 }'
peers=
if command -v mpicc.openmpi >/dev/null &&
    mpicc.openmpi -O2 -o "$dir/ompi" "$src/tests/peers/collectives_mpi.c"; then
    peers="$peers ompi ucx"
fi
if command -v mpicc.mpich >/dev/null &&
    mpicc.mpich -O2 -o "$dir/mpich" "$src/tests/peers/collectives_mpi.c"; then
    peers="$peers mpich"
fi
[ -n "$peers" ] || echo "peers: none (apt-get install openmpi-bin \
libopenmpi-dev mpich libmpich-dev)"
compare 2 bound "8 512 8192 131072 2097152"
compare 4 "" "8"

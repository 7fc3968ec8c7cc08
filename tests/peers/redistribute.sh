#!/bin/bash
# redistribute.sh - S(0) -> S(1) against Open MPI and ScaLAPACK; by hand
#
#   tests/peers/redistribute.sh [BUILD]
#
# 256^2 and 1024^2 doubles on 2 and 4 ranks: dtensor_redistribute_into(),
# MPI_Alltoallw with subarrays, pdgemr2d, and the bare copies that are the bound;
# a call each in turn in one loop (see redistribute_mpi.c).  Each round is a job
# of its own; of a figure the median over the rounds is shown.  Open MPI moves the
# bytes by its own shared memory (ob1) or by UCX.  Ranks are bound to cores where
# there are enough.
# shellcheck disable=SC2086 # options are words
set -u
src=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$src/build}" && pwd) || exit 1
rounds=${ROUNDS:-5}
calls=${CALLS:-200}
sizes=${SIZES:-256 1024}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
unset "${!DTN_@}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

mpicc.openmpi -std=c11 -D_GNU_SOURCE -O2 -I"$src/lib" -o "$dir/peers" \
    "$src/tests/peers/redistribute_mpi.c" "$build/.libs/libdtensor.so" \
    -Wl,-rpath,"$build/.libs" -lscalapack-openmpi || {
    echo "peers: none (apt-get install libopenmpi-dev libscalapack-openmpi-dev)"
    exit 1
}

# run RANKS WAY: the lines of one job
run() {
    local n=$1 how="--bind-to core" way="--mca pml ob1 --mca btl self,vader"
    [ "$n" -le "$(nproc)" ] || how="--oversubscribe --bind-to none"
    [ "$2" = ob1 ] || way="--mca pml ucx --mca opal_common_ucx_tls any --mca \
opal_common_ucx_devices any -x UCX_TLS=posix,sysv,cma,self"
    timeout 100 mpirun.openmpi -np "$n" $how $way "$dir/peers" "$calls" $sizes
}

echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), \
$(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg); $rounds rounds of $calls \
calls; microseconds, the slowest rank of each call; \
times: as long as dtensor takes; at most: pdgemr2d by the bound"
for ((round = 0; round < rounds; round++)); do
    for n in 2 4; do
        for way in ob1 ucx; do
            run "$n" "$way" 2>"$dir/errors" | sed "s/^/$way /" ||
                cat "$dir/errors" >&2
        done
    done
done | awk '
    function middle(list, v, n) {
        n = split(list, v, " ")
        for (i = 2; i <= n; i++)
            for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) {
                t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
            }
        return v[int((n + 1) / 2)]
    }
    {
        at = $2 " " $3 " " $1
        if (!(at in seen)) { seen[at] = 1; order[++cases] = at }
        least[at, $4] = least[at, $4] " " $5
        half[at, $4] = half[at, $4] " " $6
        if ($4 == "dtensor") ours = $6
        if ($4 == "bound") bound = $6
        ratio[at, $4] = ratio[at, $4] " " $6 / ours
        most[at, $4] = most[at, $4] " " $6 / bound
    }
    END {
        n = split("dtensor bound copied alltoallw pdgemr2d", names, " ")
        printf "%-5s %-6s %-4s", "ranks", "size", "via"
        for (l = 1; l <= n; l++)
            printf (l > 1 ? " | %9s %8s %6s" : " | %9s %8s"), names[l],
                "min", "times"
        print " at most"
        for (c = 1; c <= cases; c++) {
            split(order[c], key, " ")
            printf "%-5s %-6s %-4s", key[1], key[2] "^2", key[3]
            for (l = 1; l <= n; l++) {
                printf " | %9.1f %8.1f", middle(half[order[c], names[l]]),
                    middle(least[order[c], names[l]])
                if (l > 1)
                    printf " %6.2f", middle(ratio[order[c], names[l]])
            }
            printf " %7.2f\n", middle(most[order[c], names[n]])
        }
    }'

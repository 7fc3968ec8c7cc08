#!/bin/bash
# footprint.sh - in one guest: the queue pairs and the memory of a rank, measured
# for 2 to 16 ranks, beside the formulas of dtensor-rdma(7); and that its table,
# which goes on to 100,000 ranks, is what the formulas say
. "$top_srcdir/tests/rdma/inside.sh"
page=$top_srcdir/man/dtensor-rdma.7
base=$(((1 << 20) + (32 << 10)))           # stage, datagrams
lane=$(((34 << 12) + (128 << 10)))         # for one peer: lane, boxes

# The peers of the busiest of n ranks.
log2() { local k=0; while [ $((1 << k)) -lt "$1" ]; do k=$((k + 1)); done; echo $k; }
peers_of_ring() { echo $(($1 < 3 ? $1 - 1 : 2)); }
peers_of_doubling() { log2 "$1"; }
peers_of_direct() { echo $(($1 - 1)); }
peers_of_bruck() {
    local n=$1 d=$1 peers=0
    while [ "$d" -gt 1 ]; do
        d=$(((d + 1) / 2))
        peers=$((peers + 1 + (2 * d != n)))
    done
    echo $peers
}

# measure RANKS: of each algorithm, lines in `measured`
measure() {
    cluster ring.ini "$1" '[tuning]' 'allreduce = 0-inf:ring'
    cluster doubling.ini "$1" '[tuning]' 'allreduce = 0-inf:doubling'
    cluster bruck.ini "$1" '[tuning]' 'allgather = 0-inf:bruck'
    cluster direct.ini "$1" '[tuning]' 'allgather = 0-inf:direct'
    timeout 100 "$top_builddir/dtensor-run" -n "$1" \
        "$top_builddir/tests/rdma/footprint" ring=ring.ini:allreduce \
        doubling=doubling.ini:allreduce bruck=bruck.ini:allgather \
        direct=direct.ini:allgather >measured 2>&1 || sed 's/^/# /' measured
}

# most NAME FIELD: of all ranks
most() {
    sed -n "s/^$1 .* $2=\([0-9]*\).*/\1/p" measured | sort -n | tail -n 1
}

# near GOT WANT: within 2 %
near() { [ "${1:-0}" -ge $(($2 * 98 / 100)) ] && [ "${1:-0}" -le $(($2 * 102 / 100)) ]; }

echo "# ranks algorithm: queue pairs measured, by formula; bytes locked measured, by formula"
for n in ${1:-2 3 4 6 8 12 16}; do
    measure "$n"
    good=0
    for algorithm in ring doubling bruck direct; do
        qps=$(most $algorithm qps) locked=$(most $algorithm locked)
        want=$(peers_of_$algorithm "$n")
        bytes=$((base + want * lane))
        echo "# $n $algorithm: $qps $want; $locked $bytes"
        [ "${qps:-0}" -eq "$want" ] && near "$locked" $bytes || good=1
    done
    ok $good "$n ranks: queue pairs and locked memory are what the formulas say"
    heap[n]=$(most ring heap)
done
done_testing

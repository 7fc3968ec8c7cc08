#!/bin/bash
# footprint.sh - in one guest: the queue pairs and the memory of a rank
#
# They are measured for 2 to 16 ranks and compared with the formulas of
# dtensor-rdma(7); its table, which goes on to 100,000 ranks, must follow from
# the formulas.
#
# Without this test, a job of many ranks could need more queue pairs than the
# manual says.
. "$top_srcdir/tests/rdma/inside.sh"
page=$top_srcdir/man/dtensor-rdma.7
base=$(((1 << 20) + (20 << 10)))           # stage, datagrams
lane=137600                                # for one peer

per_rank=2500                              # of the heap, at most

# The number of peers of the busiest of n ranks.
log2() { local k=0; while [ $((1 << k)) -lt "$1" ]; do k=$((k + 1)); done; echo $k; }
peers_of_ring() { echo $(($1 < 3 ? $1 - 1 : 2)); }
peers_of_doubling() { log2 "$1"; }
peers_of_direct() { echo $(($1 - 1)); }
peers_of_bruck() {
    local d=$1
    local -A distance=()
    while [ "$d" -gt 1 ]; do
        d=$(((d + 1) / 2))
        distance[$d]=1
        distance[$(($1 - d))]=1
    done
    echo ${#distance[@]}
}

# measure RANKS: of each algorithm, lines in `measured`
measure() {
    cluster ring.ini "$1" '[tuning]' 'allreduce = 0-inf:ring'
    cluster doubling.ini "$1" '[tuning]' 'allreduce = 0-inf:doubling'
    cluster bruck.ini "$1" '[tuning]' 'allgather = 0-inf:bruck'
    timeout 100 "$top_builddir/dtensor-run" -n "$1" \
        "$top_builddir/tests/rdma/footprint" ring=ring.ini:allreduce \
        doubling=doubling.ini:allreduce bruck=bruck.ini:allgather \
        >measured 2>&1 || sed 's/^/# /' measured
}

# most NAME FIELD: the largest value of all ranks
most() {
    sed -n "s/^$1 .* $2=\([0-9]*\).*/\1/p" measured | sort -n | tail -n 1
}

# near GOT WANT PERCENT: do they differ by at most so much?
near() {
    [ "${1:-0}" -ge $(($2 * (100 - $3) / 100)) ] &&
        [ "${1:-0}" -le $(($2 * (100 + $3) / 100)) ]
}

echo "# ranks algorithm: queue pairs measured, by formula; bytes locked measured, by formula"
for n in 2 3 8 16; do
    measure "$n"
    good=0
    for algorithm in ring doubling bruck; do
        qps=$(most $algorithm qps) locked=$(most $algorithm locked)
        want=$(peers_of_$algorithm "$n")
        bytes=$((base + want * lane))
        echo "# $n $algorithm: $qps $want; $locked $bytes"
        [ "${qps:-0}" -eq "$want" ] && near "$locked" $bytes 2 || good=1
    done
    ok $good "$n ranks: queue pairs and locked memory are what the formulas say"
    heap[n]=$(most ring heap)
done

# Of the heap, so many bytes for each rank of a small job, whose arrays are
# dense; those of a large one take memory for the ranks that are met.
slope=$(((heap[16] - heap[2]) / 14))
echo "# heap: ${heap[2]} for 2 ranks, ${heap[16]} for 16: $slope for each"
[ "$slope" -gt 0 ] && [ "$slope" -le $per_rank ]
ok $? "the heap grows by what the page says for each rank, $per_rank bytes"

# mib BYTES: with one decimal
mib() { awk -v b="$1" 'BEGIN { printf "%.1f MiB", b / 1048576 }'; }

# The page has a row for each of these, and the formulas' numbers in it.
bad=0
for n in 2 3 4 6 8 12 16 1024 100000; do
    start=$((base + $(peers_of_ring $n) * lane))
    row=$(printf '%s\t' $n "$(peers_of_ring $n)" "$(peers_of_doubling $n)" \
        "$(peers_of_bruck $n)" "$(peers_of_direct $n)" "$(mib $start)")
    grep -qF "$row" "$page" || { echo "# no row $row" && bad=1; }
done
ok $bad "the table of dtensor-rdma(7) is what the formulas say, to 100,000 ranks"
done_testing

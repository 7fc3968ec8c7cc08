#!/bin/bash
# figures.sh writes | turns | peer RANKS - in one guest: other programs and ours on
# the same device; `make bench-rdma` prints the tables
#
# writes: perftest only moves bytes, so the ratio says what the transport and a
# collective add: matching, flow control, the path of a call.  A second table has
# the bound of this device and these processors when both ranks send at once, by
# libibverbs alone (bound.c).  The programs are measured one after the other, so
# if other programs use the processors, only the best figures mean something.
#
# turns: ours and libibverbs alone doing the same, in turns call by call (turns.c).
# peer: Open MPI over UCX (see its options below) and ours in turns call by call
# (peers/host_mpi.c).  There a ratio is of the same run, so it holds under load.
# After each table a line for each target: met, or missed by how much.
#
# Each program gives its best and its median; the tables have the best of all and
# the median of the medians, over DTN_RDMA_TIMES runs (3), and of ratios the
# median.
. "$top_srcdir/tests/rdma/inside.sh"
times=${DTN_RDMA_TIMES:-3}
MiB=1048576

# median FILE: of its second column
median() {
    sort -g -k 2,2 "$1" | awk '{ x[NR] = $2 }
        END { print x[int((NR + 1) / 2)] + 0 }'
}

# best UNIT FILE: of its first column the least, of MB/s the greatest
best() {
    sort -g -k 1,1 "$2" | awk -v unit="$1" '
        NR == 1 || unit == "MB/s" { x = $1 } END { print x + 0 }'
}

# ours RANKS ITERATIONS ARGUMENT...: dtensor-bench, one line for each result
ours() {
    local n=$1 iterations=$2
    shift 2
    timeout 100 "$top_builddir/dtensor-run" -n "$n" -C ours.ini \
        "$top_builddir/dtensor-bench" -q -n "$iterations" "$@" 2>&1 |
        grep -E '^[a-z_]+ +[a-z]'
}

# ---------------------------------------------------------------- perftest ---

# perftest BEST MEDIAN SCALE PROGRAM ARGUMENT...: columns of its one row
perftest() {
    local best=$1 median=$2 scale=$3 server
    shift 3
    timeout 60 "$@" -x 1 -F >server 2>&1 &
    server=$!
    sleep 1
    timeout 60 "$@" -x 1 -F localhost 2>&1 |
        awk -v s="$scale" -v b="$best" -v m="$median" \
            '$1 ~ /^[0-9]+$/ && NF >= 4 { print $b * s, $m * s }'
    wait $server
}

# collective TEST BYTES ITERATIONS MOVED ARGUMENT...: microseconds, or, where
# MOVED is not 0, those bytes in MB/s
collective() {
    local test=$1 size=$2 n=$3 moved=$4
    shift 4
    ours 2 "$n" -b "$size" -e "$size" "$@" "$test" |
        awk -v moved="$moved" '!moved { print $7, $8 }
                               moved { print moved / $7, moved / $8 }'
}

# row THEIRS OURS UNIT SENSE TARGET WHAT
row() {
    awk -v a="$(best "$3" "theirs.$1")" -v b="$(median "theirs.$1")" \
        -v c="$(best "$3" "ours.$2")" -v d="$(median "ours.$2")" \
        -v unit="$3" -v sense="$4" -v target="$5" -v what="$6" 'BEGIN {
            printf "%-31s %-4s %9.1f %9.1f %9.1f %9.1f %6.2f %6.2f", what,
                unit, a, b, c, d, (a > 0 ? c / a : 0), (b > 0 ? d / b : 0)
            print target == "-" ? "" : "  " sense " " target
        }'
}

# bounds TIME: each of what bound.c says to its file, 2 MiB and 1 MiB in MB/s
bounds() {
    local bound=$top_builddir/tests/rdma/bound other
    timeout 60 "$bound" "bound.$1" 2 &
    other=$!
    timeout 60 "$bound" "bound.$1" 1 | while read -r what best median; do
        case $what in
        bound_moves | bound_reduces) echo $((4 * MiB)) ;;
        bound_rows | bound_gathers | bound_packs) echo $((2 * MiB)) ;;
        *) echo 0 ;;
        esac | awk -v best="$best" -v median="$median" \
            '!$1 { print best, median } $1 { print $1 / best, $1 / median }' \
            >>"theirs.$what"
    done
    wait $other
}

writes() {
    local i
    cluster ours.ini 2
    for ((i = 0; i < times; i++)); do
        perftest 3 5 1 ib_write_lat -s 8 -n 2000 >>theirs.lat
        perftest 3 4 1.048576 ib_write_bw -s $MiB -n 100 >>theirs.bw
        perftest 3 4 1.048576 ib_write_bw -b -s $MiB -n 100 >>theirs.both
        bounds "$i"
        "$top_builddir/tests/rdma/puts" | while read -r what best median; do
            echo "$best $median" >>"ours.$what"
        done
        collective allreduce 8 500 0 >>ours.allreduce8
        collective barrier 8 500 0 >>ours.barrier
        collective allreduce $((2 * MiB)) 40 $((4 * MiB)) >>ours.allreduce
        collective broadcast $MiB 40 $MiB >>ours.broadcast
        collective allgather $((2 * MiB)) 40 $((2 * MiB)) >>ours.allgather
        collective all_to_all $((2 * MiB)) 40 $((2 * MiB)) >>ours.all_to_all
        collective redistribute 8 40 $((2 * MiB)) --shape 1024x1024 \
            >>ours.redistribute
    done
    echo "two processes; best, and median of medians, of $times runs"
    printf '%-36s %19s %19s %13s\n' '' 'perftest best/median' \
        'dtensor best/median' ratios
    row lat put_lat us '<=' 1.25 '8 B one way, put'
    row lat signal_lat us - - '8 B one way, in a signal'
    row lat allreduce8 us '<=' 1.5 '8 B one way, allreduce'
    row lat barrier us - - '8 B one way, barrier'
    row bw put_bw MB/s '>=' 0.9 '1 MiB one way, put'
    row bw broadcast MB/s - - '1 MiB one way, broadcast'
    row both put_both MB/s '>=' 0.9 '1 MiB both ways, put'
    row both allreduce MB/s '>=' 0.8 '1 MiB both ways, allreduce 2 MiB'
    row both allgather MB/s - - '1 MiB both ways, allgather'
    row both all_to_all MB/s - - '1 MiB both ways, all_to_all'
    row both redistribute MB/s - - '1 MiB both ways, S(0) to S(1)'
    echo
    printf '%-36s %19s %19s %13s\n' '' 'bare verbs best/median' \
        'dtensor best/median' ratios
    row bound_turn put_lat us - - '8 B one way, in turn'
    row bound_post8 allreduce8 us - - '8 B, only posted: allreduce'
    row bound_both8 barrier us - - '8 B both ways: barrier'
    row bound_both8 signal_both us - - '8 B both ways: signal'
    row bound_both8 allreduce8 us - - '8 B both ways: allreduce'
    row bound_moves allreduce MB/s - - '1 MiB, 1 MiB: allreduce'
    row bound_reduces allreduce MB/s - - '1 MiB, sum, 1 MiB: allreduce'
    row bound_rows redistribute MB/s - - '512 rows: S(0) to S(1)'
    row bound_gathers redistribute MB/s - - '16 rows gathered: S(0) to S(1)'
    row bound_packs redistribute MB/s - - 'rows packed: S(0) to S(1)'
}

# ---------------------------------------------------------------- Open MPI ---

# pml_ucx_tls and _devices: Open MPI refuses to run UCX on a device like this.
# GID 0: UCX 1.13 loses its own datagrams on RoCE over IPv4 by rxe.
open_mpi() {
    local n=$1
    shift
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    UCX_TLS=rc_v,ud_v,self UCX_NET_DEVICES=rxe0:1 UCX_IB_GID_INDEX=0 \
        timeout 200 mpirun.openmpi --mca oob_tcp_if_include lo \
        --oversubscribe --bind-to none -n "$n" --mca mpi_yield_when_idle 1 \
        --mca pml ucx --mca btl ^openib --mca pml_ucx_tls any \
        --mca pml_ucx_devices any "$top_builddir/tests/rdma/peer" "$@"
}

# beside RANKS CALLS SIZE...: a line for each test, size and contestant
beside() {
    local n=$1 calls=$2
    shift 2
    DTN_CLUSTER=$work/ours.ini open_mpi "$n" \
        allreduce,allgather,reduce_scatter,all_to_all,broadcast "$calls" "$@"
}

peer() {
    local n=$1 calls=100 i
    [ "$n" -le "$(nproc)" ] || calls=40  # each waits for time slices
    cluster ours.ini "$n"
    for ((i = 0; i < times; i++)); do
        beside "$n" "$calls" 8 64 512 4096
        beside "$n" 12 32768 262144 2097152
    done >>times.all
    echo "$n processes, microseconds, call by call in turns; best, and median of \
medians, of $times runs"
    awk -v ranks="$n" -f "$top_srcdir/tests/peers/median.awk" \
        -f "$top_srcdir/tests/rdma/peer.awk" times.all
}

# ------------------------------------------------------------------- turns ---

turns() {
    local i
    cluster ours.ini 2
    for ((i = 0; i < times; i++)); do
        timeout 100 "$top_builddir/dtensor-run" -n 2 -C ours.ini \
            "$top_builddir/tests/rdma/turns" "turns.$i" || echo failed
    done >>times.all
    echo "two processes, microseconds, call by call in turns; best, and median \
of medians, of $times runs"
    awk -f "$top_srcdir/tests/peers/median.awk" \
        -f "$top_srcdir/tests/rdma/turns.awk" times.all
}

echo "load of the guest $(cut -d' ' -f1-3 /proc/loadavg)"
"$@"

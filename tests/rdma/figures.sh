#!/bin/bash
# figures.sh [TIMES] - in one guest: perftest's writes beside our collectives,
# two processes each, measured in turn; `make bench-rdma` prints the table
#
# perftest moves bytes and nothing else, so a ratio says what a collective
# adds: matching, flow control, the way of a call.  Each program gives its best
# and its median; the table has the median of each over TIMES runs.  On a busy
# machine only the best ones mean something.
. "$top_srcdir/tests/rdma/inside.sh"
times=${1:-3}
cluster two.ini 2

# perftest SCALE BEST MEDIAN PROGRAM ARGUMENT...: columns of its one row
perftest() {
    local scale=$1 best=$2 median=$3 server
    shift 3
    timeout 60 "$@" -x 1 -F >server 2>&1 &
    server=$!
    sleep 1
    timeout 60 "$@" -x 1 -F localhost 2>&1 |
        awk -v s="$scale" -v b="$best" -v m="$median" \
            '$1 ~ /^[0-9]+$/ && NF >= 4 { print $b * s, $m * s }'
    wait $server
}

# ours TEST BYTES ITERATIONS MOVED ARGUMENT...: microseconds, or, where MOVED
# is not 0, those bytes in MB/s
ours() {
    local test=$1 size=$2 n=$3 moved=$4
    shift 4
    timeout 60 "$top_builddir/dtensor-run" -n 2 -C two.ini \
        "$top_builddir/dtensor-bench" -q -b "$size" -e "$size" -n "$n" \
        "$@" "$test" 2>&1 |
        awk -v test="$test" -v moved="$moved" '
            $1 == test && !moved { print $7, $8 }
            $1 == test && moved { print moved / $7, moved / $8 }'
}

# median COLUMN FILE
median() {
    sort -g -k "$1,$1" "$2" |
        awk -v c="$1" '{ x[NR] = $c } END { print x[int((NR + 1) / 2)] + 0 }'
}

rows="
1 1 us    8 B one way, allreduce
1 2 us    8 B one way, barrier
2 3 MB/s  1 MiB one way, broadcast
3 4 MB/s  1 MiB both ways, allgather
3 5 MB/s  1 MiB both ways, all_to_all
3 6 MB/s  1 MiB both ways, S(0) to S(1)
"
MiB=1048576
for ((i = 0; i < times; i++)); do
    perftest 1 3 5 ib_write_lat -s 8 -n 2000 >>theirs.1
    perftest 1.048576 3 4 ib_write_bw -s $MiB -n 100 >>theirs.2
    perftest 1.048576 3 4 ib_write_bw -b -s $MiB -n 100 >>theirs.3
    ours allreduce 8 500 0 >>ours.1
    ours barrier 8 500 0 >>ours.2
    ours broadcast $MiB 50 $MiB >>ours.3
    ours allgather $((2 * MiB)) 50 $((2 * MiB)) >>ours.4
    ours all_to_all $((2 * MiB)) 50 $((2 * MiB)) >>ours.5
    ours redistribute 8 50 $((2 * MiB)) --shape 1024x1024 >>ours.6
done

echo "medians of $times runs; load of the guest $(cut -d' ' -f1-3 /proc/loadavg)"
printf '%-31s %-4s %21s %21s %15s\n' '' '' 'perftest best/median' \
    'dtensor best/median' ratios
while read -r their our unit what; do
    [ -n "$what" ] || continue
    awk -v what="$what" -v unit="$unit" \
        -v a="$(median 1 "theirs.$their")" -v b="$(median 2 "theirs.$their")" \
        -v c="$(median 1 "ours.$our")" -v d="$(median 2 "ours.$our")" 'BEGIN {
            printf "%-31s %-4s %10.1f %10.1f %10.1f %10.1f %7.2f %7.2f\n",
                what, unit, a, b, c, d,
                (a > 0 ? c / a : 0), (b > 0 ? d / b : 0)
        }'
done <<<"$rows"

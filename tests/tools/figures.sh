#!/bin/bash
# figures.sh - the figures of this machine, a line each; not part of make check
#
#   tests/tools/figures.sh [BUILD]        start-up, growth, the copy bound
#
# Start-up is from dtensor-run's fork to the end of the first allreduce, median
# of 20.  Growth is that of 10,000 redistributes.  The bound is the best time
# of a plain copy of the bytes that must come in, taken in the same loop.
#
# How it compares with MPIs is told by make bench-peers.
set -u
src=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$src/build}" && pwd) || exit 1
bench=$build/dtensor-bench
unset "${!DTN_@}"

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

echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), \
$(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg)"
echo "start-up of 4 ranks to the first allreduce done: $(startup) ms (median \
of 20; target 50)"
echo "10000 redistributes of 64 KiB on 2 ranks: $(growth)"
"$bench" --local 2 -q allreduce -b 8 -e 8M -n 200 | awk '
    { printf "allreduce %d B, 2 ranks, unbound: min %s p50 %s p99 %s us; " \
      "%s of %s GB/s, the copy bound\n", $3, $7, $8, $9, $12, $13 }'

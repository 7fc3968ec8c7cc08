#!/bin/bash
# make_loggopsim.sh - what LogGOPSim says of algorithms, as
# tests/sched/test_play reads it
#
#   tests/golden/make_loggopsim.sh LOGGOPSIM >tests/golden/loggopsim.txt
#
# LOGGOPSIM is its program (github.com/spcl/LogGOPSim); txt2bin is beside it.
# Each row is a schedule in GOAL that sends the messages of an algorithm.  Its
# times are whole numbers: here picoseconds.  doc/decisions/sched.md says where
# the two models differ, and how these schedules and constants avoid that.
set -eu
loggopsim=$(realpath "$1")
txt2bin=$(dirname "$loggopsim")/txt2bin
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# goal PATTERN RANKS BYTES: the schedule.  An operation of a rank follows the
# one before it; a send is over at once.
goal() {
    awk -v pattern="$1" -v n="$2" -v bytes="$3" '
    function op(what, size, way, peer, tag, cpu) {
        k++
        printf "l%d: %s %db %s %d tag %d cpu %d\n", k, what, size, way, peer,
            tag, cpu
        if (k > 1) printf "l%d requires l%d\n", k, k - 1
    }
    function post(peer, size, tag, cpu) {
        op("send", size, "to", peer, tag, cpu)
    }
    function expect(peer, size, tag, cpu) {
        op("recv", size, "from", peer, tag, cpu)
    }
    function shift(ahead, size) {       # all send so many ranks on
        tag++
        post((me + n + ahead) % n, size, tag, 0)
        expect((me + n - ahead) % n, size, tag, 0)
    }
    function lowest(v, bit) {           # the bit in which its parent differs
        for (bit = 1; bit < n && int(v / bit) % 2 == 0; bit *= 2);
        return bit
    }
    function broadcast(bit) {           # to the largest subtree first
        bit = lowest(me)
        if (me > 0) expect(me - bit, bytes, 0, 0)
        for (bit /= 2; bit >= 1; bit /= 2) post(me + bit, bytes, 0, 0)
    }
    function reduce(bit, most) {        # from the smallest subtree first
        most = lowest(me)
        for (bit = 1; bit < most; bit *= 2) expect(me + bit, bytes, 0, 0)
        if (me > 0) post(me - most, bytes, 0, 0)
    }
    function doubling(bit, peer) {
        for (bit = 1; bit < n; bit *= 2) {
            peer = int(me / bit) % 2 ? me - bit : me + bit
            post(peer, bytes, bit, 0)
            expect(peer, bytes, bit, 0)
        }
    }
    function halving(s) { for (s = n / 2; s >= 1; s /= 2) shift(-s, s * bytes) }
    function bruck(s) { for (s = 1; s < n; s *= 2) shift(s, s * bytes) }
    function spread(alone, s) {         # alone: on a CPU for each peer
        for (s = 1; s < n; s++)
            post((me + s) % n, bytes, s, alone ? s : 0)
        for (s = 1; s < n; s++)
            expect((me + n - s) % n, bytes, s, alone ? s : 0)
    }
    function gather(alone, s) {         # to rank 0
        for (s = 1; me == 0 && s < n; s++)
            expect(s, bytes, s, alone ? s : 0)
        if (me > 0) post(0, bytes, me, alone ? me : 0)
    }
    function rank(s) {
        if (pattern == "broadcast") broadcast()
        if (pattern == "reduce") reduce()
        if (pattern == "doubling") doubling()
        if (pattern == "barrier") for (s = 1; s < n; s *= 2) shift(s, 1)
        if (pattern == "ring") for (s = 1; s < n; s++) shift(1, bytes)
        if (pattern == "rings") for (s = 2; s < 2 * n; s++) shift(1, bytes / n)
        if (pattern == "pairwise") for (s = 1; s < n; s++) shift(s, bytes)
        if (pattern ~ /^halving/) halving()
        if (pattern ~ /bruck$/) bruck()
        if (pattern ~ /^spread/) spread(pattern == "spread-long")
        if (pattern ~ /^gather/) gather(pattern == "gather-long")
    }
    BEGIN {
        if (pattern == "halving-bruck") bytes /= n
        print "num_ranks", n
        for (me = 0; me < n; me++) {
            k = tag = 0
            print "rank", me, "{"
            rank()
            print "}"
        }
    }'
}

# row PATTERN COLLECTIVE ALGORITHM RANKS BYTES: with the constants L o g G in
# ns, with three digits.  No message is long enough for a rendezvous (S).
row() {
    goal "$1" "$4" "$5" >goal.txt
    "$txt2bin" -i goal.txt -o goal.bin >said.txt 2>&1 ||
        { cat said.txt >&2; exit 1; }
    "$loggopsim" -f goal.bin -b -L $((10#${L/./})) -o $((10#${o/./})) \
        -g $((10#${g/./})) -G $((10#${G/./})) -O 0 -S 2000000000 >said.txt
    awk -v row="$2 $3 $4 $5 $L $o $g $G" '/^Maximum finishing time/ {
        printf "%s %.3f\n", row, $7 / 1e6 }' said.txt
}

echo "# LogGOPSim, by make_loggopsim.sh: collective algorithm ranks bytes"
echo "# L o g G (ns) us"
while read -r L o g G; do
    for n in 64 1024 4096; do
        row broadcast broadcast tree $n 8
        row reduce reduce tree $n 8
        row doubling allreduce doubling $n 8
        row barrier barrier tree $n 0
    done
    row spread allreduce eager 64 8
    row bruck allgather bruck 64 8
done <<'END'
1000.000 100.000 0.000 0.100
1300.000 150.000 400.000 0.020
12000.000 2000.000 500.000 0.800
END
L=1000.000 o=100.000 g=0.000 G=0.100
row gather reduce eager 512 8
L=1300.000 o=10.000 g=400.000 G=0.020
row gather reduce eager 512 8
L=1000.000 o=100.000 g=0.000 G=1.000
row broadcast broadcast tree 64 32000
row broadcast broadcast tree 1024 32000
row reduce reduce tree 64 32000
row doubling allreduce doubling 64 100000
L=1000.000 o=100.000 g=0.000 G=0.100
row ring allgather ring 64 100000
row ring reduce_scatter ring 64 100000
row rings allreduce ring 64 6400000
row bruck allgather bruck 64 100000
row halving reduce_scatter halving 64 100000
row halving-bruck allreduce halving 64 6400000
row pairwise all_to_all pairwise 64 100000
row spread-long all_to_all put 64 100000
row spread-long allgather put 64 100000
row gather-long gather put 64 100000
row pairwise all_to_all pairwise 256 20000

#!/bin/bash
# examples.sh - the examples give one loss, on any number of ranks
#
# Each program is run on 1, 2, 4 and 8 ranks, and has to print the losses of one
# rank, to 6 digits, of which the last is below the first.
#
# Without this test, an example could be wrong in a way that a reader copies,
# and a plan could change what a model computes.
. "$top_srcdir/tests/tap.sh"
run=$top_builddir/dtensor-run

# example NAME [WORD]: on 1, 2, 4 and 8 ranks
example() {
    local first out n
    first=$("$run" -n 1 "$top_builddir/tests/examples/$1" "${@:2}" 2>&1)
    awk '$3 != "loss" { bad = 1 } NR == 1 { high = $4 } { low = $4 }
         END { exit bad || NR < 3 || !(low < high) }' <<<"$first"
    ok $? "$*: the loss falls on 1 rank"
    for n in 2 4 8; do
        out=$("$run" -n $n "$top_builddir/tests/examples/$1" "${@:2}" 2>&1)
        is "$*: on $n ranks it is the same" "$out" "$first"
    done
}

example mlp
example attention
example layer
example layer sequence
is "with the sequence cut a layer computes the same" \
    "$("$run" -n 2 "$top_builddir/tests/examples/layer" sequence)" \
    "$("$run" -n 2 "$top_builddir/tests/examples/layer")"
example language
done_testing

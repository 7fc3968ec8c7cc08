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
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

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

# stages RANKS: a cluster file of two stages; one rank is both
stages() {
    local pp=$(($1 > 1 ? 2 : 1))

    printf '[cluster]\nversion = 1\nname = pipeline\n'
    printf '[nodes "here"]\nhosts = localhost\nranks = %s\n' "$1"
    printf '[mesh "world"]\ndims = pp=%s, dp=%s\n' $pp $(($1 / pp))
    printf '[mesh "first"]\nparent = world\nselect = pp=0\n'
    printf '[mesh "last"]\nparent = world\nselect = pp=%s\n' $((pp - 1))
    printf '[seed]\nbase = 7\nmesh = world\ndistinct = pp\n'
}

# piped RANKS: the pipeline over two stages
piped() {
    stages "$1" >"$dir/stages.ini"
    "$run" -n "$1" -C "$dir/stages.ini" \
        "$top_builddir/tests/examples/pipeline" 2>&1
}

is "each program has under 200 lines" \
    "$(wc -l "$top_srcdir"/tests/examples/*.c | awk '$2 != "total" && $1 >= 200')" ""
example mlp
example sgd
example attention
example layer
example layer sequence
is "with sharded sequences a layer computes the same" \
    "$("$run" -n 2 "$top_builddir/tests/examples/layer" sequence)" \
    "$("$run" -n 2 "$top_builddir/tests/examples/layer")"
# A text that people have written.
cat "$top_srcdir/README.md" "$top_srcdir/doc/words.md" >"$dir/text"
example language "$dir/text"
example ring
example own
for name in heat plate parameters; do
    first=$("$run" -n 1 "$top_builddir/tests/examples/$name" 2>&1)
    for n in 2 3 8; do
        is "$name: on $n ranks as on one" \
            "$("$run" -n $n "$top_builddir/tests/examples/$name" 2>&1)" "$first"
    done
    [ $name = parameters ] || is "$name: the sine has shrunk as it should" \
        "$(grep -vc 'as computed by hand$' <<<"$first")" 0
done
is "parameters: one line, four times" "$(sort <<<"$first" | uniq -c | awk '{ print $1 }')" 4
first=$(piped 1)
awk '$3 != "loss" || (NR > 1 && !($4 < last)) { bad = 1 } { last = $4 }
     END { exit bad || NR < 3 }' <<<"$first"
ok $? "pipeline: the loss falls on 1 rank"

for n in 2 4 8; do
    is "pipeline: on $n ranks it is the same" "$(piped $n)" "$first"
done
# A rank is killed at the 100th signal that it sends, after about 25 steps.
state=$dir/state.npy
is "restart: a rank is killed on the way" "$(
    "$run" -n 3 sh -c '[ $DTN_RANK != 1 ] || export DTN_FAULT=kill_signal=100
        exec "$0" "$@"' "$top_builddir/tests/examples/restart" "$state" 40 \
        2>/dev/null
    echo $?)" 137
out=$("$run" -n 2 "$top_builddir/tests/examples/restart" "$state" 40 2>&1)
[[ $out == "rank 0: went on from step "[123]0$'\n'"rank 0: step 40" ]]
ok $? "restart: two others go on from what it saved"
is "each is under 200 lines" "$(wc -l "$top_srcdir"/tests/examples/*.[ch] |
    awk '$2 != "total" && $1 >= 200')" ""
done_testing

#!/bin/bash
# bits.sh - under repro a layer has the same bits on any number of ranks
#
# A transformer layer is trained for two steps on 1 rank, then on 2, 4 and 8,
# cut by heads, with the sequence cut too, and on a mesh of data x tensor
# parallel.  Outputs of modules, gradients and parameters: all bits are equal.
#
# Without this test, each operator could keep its bits and a model of them, with
# the messages that styles put between, could lose them.
. "$top_srcdir/tests/tap.sh"
bits() {
    "$top_builddir/dtensor-run" -n "$1" \
        "$top_builddir/tests/module/bits" "$2" 2>&1
}

first=$(bits 1 heads)
is "1 rank: a line for each tensor" \
    "$(cut -d' ' -f1 <<<"$first" | sort | uniq -c | xargs)" \
    "32 gradient 24 output 32 parameter"
# A softmax does not change if all keys move by one vector, so the gradient of
# their bias is 0 but for rounding.
[ "$(grep ^param <<<"$first" | grep -v attn.k.bias | sort -u | wc -l)" = 30 ]
ok $? "both steps change every parameter but the bias of the keys"
for way in heads sequence mesh; do
    for n in 2 4 8; do
        is "$way, $n ranks: the bits of 1 rank" "$(bits $n $way)" "$first"
    done
done
done_testing

#!/bin/bash
# staged.sh - suites of suites.sh with a driver that launches no kernel
#
# Those that reach every operation of the kind: folds, boxes, scale, neutral,
# formulas, equal.
#
# Without this test, a job with a driver before CUDA 12, where the CPU does all
# operations on copies, could be wrong without anybody seeing it.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/device/each_suite.sh"

[ -n "$(sed -n 's/^NVCC = //p' Makefile)" ] ||
    skip_all "built without nvcc: suites.sh launches no kernel either"
export DTN_STANDIN_WITHOUT=cuLibraryLoadData
for name in average blocks compare partial_ranks parts random redistribute redops
do
    suite $name "without kernels" '^not ok|^# rank|^standin'
done
done_testing

#!/bin/bash
# staged.sh - the suites of suites.sh with a driver that launches no kernel
#
# Without this test, a job with a driver before CUDA 12, where the CPU does all
# operations on copies, could be wrong without anybody seeing it.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/device/each_suite.sh"

[ -n "$(sed -n 's/^NVCC = //p' Makefile)" ] ||
    skip_all "built without nvcc: suites.sh launches no kernel either"
export DTN_STANDIN_WITHOUT=cuLibraryLoadData
each_suite "without kernels"
done_testing

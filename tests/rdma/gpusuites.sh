#!/bin/bash
# gpusuites.sh MODULE - in one guest with Linux 6.12: suites on GPU memory, over rc
#
# Programs of tests/device that run with tensors and allocations on the driver of
# tests/standin, over a soft RDMA device that writes into that memory.  A tenth of
# their cases, and two ranks for the two longest: each rank has threads for its
# streams, and the guest has two processors.  The log has no word of memory that
# could not be registered.
#
# Without this test, requests, batches, tensors and random numbers in memory of a
# GPU would meet a card on a user's machine first.
. "$top_srcdir/tests/rdma/inside.sh"
[ -e /dev/udmabuf ] || skip_all "this kernel has no /dev/udmabuf"
insmod "$1" || exit
export LD_LIBRARY_PATH=$top_builddir/tests/standin/.libs DTN_TEST_DEVICE=cuda
export DTN_CUBLAS=none DTN_TEST_WIRE=rc DTN_TEST_ROUNDS=${DTN_TEST_ROUNDS:-10}

# suite NAME [ARGUMENT...]: all claims of that program hold, and none is staged
suite() {
    local got
    LD_PRELOAD=$top_builddir/tests/rdma/.libs/rxe_verbs.so DTN_LOG=warn \
        "$top_builddir/tests/device/pretend_$1" "${@:2}" >out 2>log
    got="$?|$(grep -cE '^not ok|^# rank' out)|$(grep -c 'through host' log)"
    is "$1 on GPU memory over rc: how it ends, what fails, what is staged" "$got" "0|0|0"
    [ "$got" = "0|0|0" ] || sed 's/^/# /' out log | tail -n 40
    is "$1: it makes claims" "$(grep -c -m 1 '^ok' out)" 1
}
suite redistribute
suite compare
suite parts
suite random
suite requests
suite coll rc 2
suite tensor rc 2
done_testing

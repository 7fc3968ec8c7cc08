#!/bin/bash
# gpudirect.sh MODULE - in one guest with Linux 6.12: memory that no CPU touches
#
# First without the module that lets soft RDMA devices register dma-bufs, as on
# a machine whose card cannot, then with it; of the transport alone, and of jobs
# on the driver in tests/standin.
#
# Without this test, nothing would register memory that the CPU may not touch.
. "$top_srcdir/tests/rdma/inside.sh"
[ -e /dev/udmabuf ] || skip_all "this kernel has no /dev/udmabuf"
export LD_LIBRARY_PATH=$top_builddir/tests/standin/.libs
job=$top_builddir/tests/rdma/gpujob

# staged WHAT WORDS [VARIABLE=VALUE...]: a job is right, and the log has WORDS
staged() (
    what=$1 words=$2
    shift 2
    env "$@" DTN_LOG=info timeout 100 "$job" staged >out 2>log
    is "$what: staged and right, and the log says why" \
        "$?|$(grep -c '^ok' out)|$(grep -c -m 1 "$words" log)" "0|1|1" ||
        sed 's/^/# /' out log
    done_testing
)
timeout 60 "$top_builddir/tests/rdma/gpudirect" refused || exit
staged "a card without dma-bufs" "as dma-buf: Operation not supported" || exit
timeout 100 "$job" required || exit
insmod "$1" || exit
timeout 100 "$top_builddir/tests/rdma/gpudirect" direct || exit
timeout 300 "$job" direct || exit
timeout 300 "$job" faults || exit
timeout 300 "$top_builddir/tests/rdma/gpulate" || exit
staged "a driver of CUDA 11.4" "has no cuMemGetHandleForAddressRange" \
    DTN_STANDIN_VERSION=11040 || exit
staged "an export that fails" "cuMemGetHandleForAddressRange: .*NOT_SUPPORTED" \
    DTN_STANDIN_FAIL=cuMemGetHandleForAddressRange:0=801 || exit
[ "$(dmesg | grep -cE 'WARNING:|BUG:|Oops')" -eq 0 ] || dmesg | tail -40

#!/bin/bash
# transport.sh - in one guest: the transport conformance suite over rc, what its
# work takes of the device, and what is said when the device fails; the arena, of
# huge pages, and so the suite's
. "$top_srcdir/tests/rdma/inside.sh"
export DTN_TEST_ROUNDS=${1:-20}
timeout 60 "$top_builddir/tests/rdma/doorbells" || exit
timeout 60 "$top_builddir/tests/rdma/mishaps" || exit
echo 200 >/proc/sys/vm/nr_hugepages
timeout 60 "$top_builddir/tests/test_arena" || exit
exec timeout 100 "$top_builddir/tests/test_transport" rc 3

#!/bin/bash
# transport.sh - in one guest: the transport suite over rc
#
# Also the attributes that the device is asked for, the number of requests, the
# errors in words, and an arena of huge pages.
#
# Without this test, the verbs transport could break the contract of
# transport.h.
. "$top_srcdir/tests/rdma/inside.sh"
export DTN_TEST_ROUNDS=${1:-20}
timeout 60 "$top_builddir/tests/rdma/attributes" || exit
timeout 60 "$top_builddir/tests/rdma/doorbells" || exit
timeout 60 "$top_builddir/tests/rdma/mishaps" || exit
echo 200 >/proc/sys/vm/nr_hugepages
timeout 60 "$top_builddir/tests/transport/test_arena_pages" || exit
exec timeout 140 "$top_builddir/tests/transport/test_transport" rc 3

#!/bin/bash
# transport.sh - in one guest: the transport conformance suite over rc, what the
# device is asked for and what its work takes of it, and what is said when it
# fails; the arena, of huge pages, and so the suite's
. "$top_srcdir/tests/rdma/inside.sh"
export DTN_TEST_ROUNDS=${1:-20}
timeout 60 "$top_builddir/tests/rdma/attributes" || exit
timeout 60 "$top_builddir/tests/rdma/doorbells" || exit
timeout 60 "$top_builddir/tests/rdma/mishaps" || exit
echo 200 >/proc/sys/vm/nr_hugepages
timeout 60 "$top_builddir/tests/transport/test_arena" || exit
exec timeout 140 "$top_builddir/tests/transport/test_transport" rc 3

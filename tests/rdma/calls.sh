#!/bin/bash
# calls.sh - in one guest: mismatched calls are caught over rc
#
# Whatever their counts; and no started call waits for a peer.
#
# Without this test, a mismatch over rc could write into memory before it is
# noticed.
. "$top_srcdir/tests/rdma/inside.sh"
timeout 120 "$top_builddir/tests/sched/test_fingerprints" rc || exit
DTN_TEST_MISMATCHES=60 timeout 120 "$top_builddir/tests/job/test_mismatch_random" rc || exit
exec timeout 200 "$top_builddir/tests/coll/test_nonblocking_start" rc

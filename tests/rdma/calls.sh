#!/bin/bash
# calls.sh - in one guest: calls that differ are caught over rc, whatever their
# counts, and no started call waits for a peer
. "$top_srcdir/tests/rdma/inside.sh"
timeout 120 "$top_builddir/tests/sched/test_collide" rc || exit
DTN_TEST_MISMATCHES=60 timeout 120 "$top_builddir/tests/job/test_mismatches" rc || exit
exec timeout 200 "$top_builddir/tests/coll/test_start" rc

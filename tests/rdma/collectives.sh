#!/bin/bash
# collectives.sh - in one guest: collectives over rc, and their failures; a
# tenth of the types and reductions for each count
. "$top_srcdir/tests/rdma/inside.sh"
export DTN_TEST_ROUNDS=${1:-10}
exec timeout 100 "$top_builddir/tests/test_coll" rc 3

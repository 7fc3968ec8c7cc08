#!/bin/bash
# transport.sh - in one guest: the transport conformance suite over rc, and what
# its work takes of the device
. "$top_srcdir/tests/rdma/inside.sh"
export DTN_TEST_ROUNDS=${1:-20}
timeout 60 "$top_builddir/tests/rdma/doorbells"
exec timeout 100 "$top_builddir/tests/test_transport" rc 3

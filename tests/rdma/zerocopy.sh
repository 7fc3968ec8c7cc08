#!/bin/bash
# zerocopy.sh - in one guest: what the processor copies over rc
#
# It must not copy memory that the device knows.
#
# Without this test, a registered buffer could be staged, and only the
# bandwidth would tell.
. "$top_srcdir/tests/rdma/inside.sh"
exec timeout 100 "$top_builddir/tests/coll/test_zerocopy" rc

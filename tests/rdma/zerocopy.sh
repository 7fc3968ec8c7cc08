#!/bin/bash
# zerocopy.sh - in one guest: what the processor copies over rc, and that it is
# nothing for memory that the device knows
. "$top_srcdir/tests/rdma/inside.sh"
exec timeout 100 "$top_builddir/tests/coll/test_zerocopy" rc

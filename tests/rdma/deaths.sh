#!/bin/bash
# deaths.sh - in one guest: ranks die, stop and fall silent over rc
. "$top_srcdir/tests/rdma/inside.sh"
exec timeout 100 "$top_builddir/tests/test_transport_death" rc

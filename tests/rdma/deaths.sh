#!/bin/bash
# deaths.sh - in one guest: ranks die, stop and fall silent over rc, and before
# they are met
. "$top_srcdir/tests/rdma/inside.sh"
timeout 60 "$top_builddir/tests/job/test_faults" rc || exit
exec timeout 100 "$top_builddir/tests/transport/test_transport_death" rc

#!/bin/bash
# deaths.sh - in one guest: ranks die, stop and fall silent over rc
#
# Also ranks that this rank has never met, and a device that fails.
#
# Without this test, a dead peer over rc could hang the others, since a queue
# pair does not notice a death by itself.
. "$top_srcdir/tests/rdma/inside.sh"
timeout 120 "$top_builddir/tests/job/test_injected_faults" rc || exit
timeout 60 "$top_builddir/tests/rdma/broken_device" || exit
exec timeout 100 "$top_builddir/tests/transport/test_transport_death" rc

#!/bin/bash
# collectives.sh - in one guest: collectives over rc, and their failures
#
# Each count is tried with a tenth of the types and reductions.  No message may
# arrive where no receive is posted: the device counts those.
#
# Without this test, collectives over rc could depend on retries, which cost
# milliseconds on a real device.
. "$top_srcdir/tests/rdma/inside.sh"
export DTN_TEST_ROUNDS=${1:-10}
timeout 180 "$top_builddir/tests/coll/test_coll" rc 3 || exit
timeout 60 "$top_builddir/tests/coll/test_coll_failures" rc || exit
counters=/sys/class/infiniband/rxe0/ports/1/hw_counters
[ "$(cat $counters/sent_pkts)" -gt 10000 ]
ok $? "$(cat $counters/sent_pkts) packets were sent"
is "none was answered by \"receiver not ready\"" \
    "$(cat $counters/{rcvd,send}_rnr_err | paste -sd ' ')" "0 0"
done_testing

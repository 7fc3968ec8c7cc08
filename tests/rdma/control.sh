#!/bin/bash
# control.sh - in each of two guests: the control network dies, that of the data
# does not
#
# The ranks joined over eth0 and beat there; their queue pairs are on eth1.  In
# mid-run no packet passes eth0 any more.  Without heartbeats a job cannot tell a
# stopped rank from one that computes, so it ends: all ranks have an error within
# dead_after and some, although every queue pair still works.
#
# Without this test, such a job could go on without being watched, and hang at
# the next fault.
. "$top_srcdir/tests/rdma/inside.sh"
hca=rxe1
pair_cluster pair.ini 2 'op_timeout = 60s' 'dead_after = 3s'

# fact NAME FILE
fact() { sed -n "s/^$1 //p" "$2"; }

meet start
ok $? "both guests are there"
ranks 2 pair.ini 80 "$top_builddir/tests/rdma/survivor" running 4096 &
job=$!
wait_for running && meet running
ok $? "both hosts are in mid-run"
before=$(cat /sys/class/net/eth1/statistics/tx_bytes)
sleep 1
[ $(($(cat /sys/class/net/eth1/statistics/tx_bytes) - before)) -gt 10000 ]
ok $? "their bytes take the other wire"
[ "$GUEST_ID" = 1 ] || tc qdisc replace dev eth0 root netem loss 100%
wait $job
ok $? "node$GUEST_ID: the control network is dead: every rank comes back"
for k in 0 1; do
    sed 's/^/# /' rank.$k
    cp rank.$k "/guest-out/said.$(((GUEST_ID - 1) * 2 + k))"
    is "rank $k of node$GUEST_ID: EPEER" "$(fact code rank.$k)" EPEER
    after=$(fact after_ms rank.$k)
    [ "${after:-99999}" -lt 8000 ]
    ok $? "after ${after:-no} ms, 3000 and some expected"
done
meet over
is "all ranks name the same" \
    "$(sed -n 's/^rank //p' /guest-out/said.[0-3] | sort -u | wc -l)" 1
done_testing

#!/bin/bash
# twowires.sh - in each of two guests: two rails between hosts
#
# First both are good, then one loses some packets, then one loses all packets
# during a run.
#
# The wire is cut by netem: `ip link set eth1 down` under traffic leaves processes
# in Linux 6.1 that no signal ends.
#
# Without this test, a bad rail could corrupt or reorder what the good one
# carries.
. "$top_srcdir/tests/rdma/inside.sh"
export DTN_TEST_ROUNDS=4
hca=rxe0+rxe1
pair_cluster pair.ini 1 'op_timeout = 40s' 'timeout = 16'
pair_cluster short.ini 1 'op_timeout = 60s' 'timeout = 14' 'retry_count = 3'

# sent N: bytes that this host has sent on wire N
sent() { cat "/sys/class/net/eth$1/statistics/tx_bytes"; }

# everything NAME: all collectives, all placements; how much each wire carried
everything() {
    local before0 before1
    before0=$(sent 0) before1=$(sent 1)
    meet "$1" && ranks 1 pair.ini 60 "$top_builddir/tests/coll/test_coll" member &&
        meet "$1.tensors" &&
        ranks 1 pair.ini 60 "$top_builddir/tests/tensor/test_tensor" member
    ok $? "$1: every collective and placement is exact"
    carried0=$(($(sent 0) - before0)) carried1=$(($(sent 1) - before1))
}

everything "two good rails"
[ "$carried0" -gt 300000 ] && [ "$carried1" -gt 300000 ]
ok $? "both carried bytes ($carried0, $carried1)"
tc qdisc replace dev eth1 root netem loss 1%
everything "one rail loses 1 %"
lost=$(tc -s qdisc show dev eth1 | sed -n 's/.*dropped \([0-9]*\).*/\1/p')
[ "${lost:-0}" -gt 0 ] && [ "$carried1" -gt 300000 ]
ok $? "and did ($lost packets of $carried1 bytes)"
tc qdisc del dev eth1 root

meet start
ranks 1 short.ini 80 "$top_builddir/tests/rdma/survivor" running 2097152 &
job=$!
wait_for running && meet running
ok $? "both hosts are in mid-run"
[ "$GUEST_ID" = 1 ] || tc qdisc replace dev eth1 root netem loss 100%
wait $job
ok $? "one rail is cut: the rank comes back"
sed 's/^/# /' rank.0
grep -qx 'code EPEER' rank.0 && grep -qx 'rank 1' rank.0 &&
    grep -qF 'the link between node1 and node2 is lost, and both hosts run' rank.0
ok $? "EPEER, both hosts name rank 1, and that the link is lost"
grep '^text' rank.0 | grep 'rail 1 of 2, rxe1' | grep -F 10.78.0.1 |
    grep -qF 10.78.0.2
ok $? "the rail, its device and its GIDs are named"
done_testing

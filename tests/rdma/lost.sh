#!/bin/bash
# lost.sh - in each of two guests, two ranks each: a host is lost
#
# During a run all packets that node2 sends are lost (packets), or node2 is
# switched off (power); the first argument says which.  All name a rank of node2.
# If its packets are lost, node2 receives those of node1 that are sent again, so
# it knows that the link is lost; of the two hosts it is farther from rank 0.
#
# Without this test, the loss of a host over rc could hang the other, or name
# the wrong rank.
. "$top_srcdir/tests/rdma/inside.sh"
pair_cluster pair.ini 2 'timeout = 16' 'retry_count = 3' 'op_timeout = 60s'
given_up=1074                     # ms: (3 + 1) * 4.096 us * 2^16
slack=4000                        # emulated, on a busy machine

# fact NAME FILE
fact() { sed -n "s/^$1 //p" "$2"; }

# judge K: what rank K of this host said; node2 has world ranks 2 and 3
judge() {
    local said=rank.$1 me=$(((GUEST_ID - 1) * 2 + $1)) after who
    after=$(fact after_ms "$said")
    who=$(fact rank "$said")
    sed 's/^/# /' "$said"
    is "rank $me: EPEER" "$(fact code "$said")" EPEER
    is "rank $me: and again, at once, when asked again" \
        "$(fact again "$said")" EPEER
    [ "${who:--1}" -ge 2 ] && fact text "$said" | grep -q "rank $who on node2"
    ok $? "rank $me: it names the rank and node2"
    [ "${after:-0}" -ge $((given_up * 2 / 3)) ] &&
        [ "${after:-0}" -le $((given_up + slack)) ]
    ok $? "rank $me: after ${after:-no} ms, $given_up and some expected"
    [ "$(fact fini_ms "$said")" -le $slack ]
    ok $? "rank $me: dtensor_fini() does not wait for the dead"
}

# named: one of the ranks here saw the error of its device, and names the path
named() {
    cat rank.? | grep -E '^text ' | grep -F rxe0 | grep -F 10.77.0.1 |
        grep -qF 10.77.0.2
    ok $? "node$GUEST_ID: device and both GIDs are named"
}

if ! meet start; then
    ok 1 "both guests are there"
    done_testing
fi
ranks 2 pair.ini 80 "$top_builddir/tests/rdma/survivor" running 4096 &
job=$!
wait_for running && meet running
ok $? "both hosts are in mid-run"
sleep 1
if [ "$1" = packets ]; then
    [ "$GUEST_ID" = 1 ] || tc qdisc replace dev eth0 root netem loss 100%
elif [ "$GUEST_ID" = 1 ]; then
    touch /guest-out/kill.2
fi
wait $job
ok $? "node$GUEST_ID: every rank comes back"
judge 0
judge 1
if [ "$GUEST_ID" = 2 ]; then
    said=$(grep -cF 'the link between node1 and node2 is lost' rank.0 rank.1 |
        grep -c ':1')
    is "node2: both ranks say that the link is lost" "$said" 2
fi
named
done_testing

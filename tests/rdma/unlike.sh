#!/bin/bash
# unlike.sh - in each of two guests: ends that are not alike
#
# Ports with different MTUs; a switch whose MTU is smaller than both; an address
# that changes during a run.
#
# Without this test, a path that drops large packets could only be seen as a
# timeout.
. "$top_srcdir/tests/rdma/inside.sh"
export DTN_TEST_ROUNDS=4
pair_cluster pair.ini 1 'op_timeout = 40s' 'timeout = 17'
pair_cluster short.ini 1 'op_timeout = 60s' 'timeout = 14' 'retry_count = 3'

# packets N: bytes and packets that have left by wire N
packets() { cat "/sys/class/net/eth$1/statistics/tx_"{bytes,packets}; }

# steady NAME SECONDS LEVEL: allreduces of up to 2 MiB, each element checked, with
# a log of that level; sets mean, the bytes of the mean packet
steady() {
    local before after
    meet "$1" || return
    mapfile -t before <<<"$(packets 0)"
    DTN_LOG=$3 ranks 1 pair.ini 60 "$top_builddir/tests/rdma/steady" "$2" ||
        return
    mapfile -t after <<<"$(packets 0)"
    mean=$(((after[0] - before[0]) / (after[1] - before[1])))
    grep -E 'MTU|^calls' rank.0 | cut -c -160 | sed 's/^/# /'
}

# said WHAT CLAIM: claim that rank.0 has such a line
said() {
    grep -qE "$1" rank.0
    ok $? "node$GUEST_ID: $2"
}

# ------------------------------------------------------------------- MTUs ---

steady alike 1 debug
ok $? "node$GUEST_ID: MTU 9000 at both ends: exact"
said 'MTU 4096 over rxe0, which has 4096 here and rxe0 4096 there$' \
    "4096 is used, and no warning"
[ "${mean:-0}" -gt 1300 ]
ok $? "node$GUEST_ID: the mean packet has ${mean:-no} bytes"
[ "$GUEST_ID" = 1 ] || ip link set eth0 mtu 1500
steady unlike 1 warn
ok $? "node$GUEST_ID: MTU 9000 and 1500: exact"
if [ "$GUEST_ID" = 1 ]; then
    said 'MTU 1024 over rxe0, which has 4096 here and rxe0 1024 there \(an Ethernet MTU of 4192' \
        "1024 is used, and a warning says what to do"
else
    said 'MTU 1024 over rxe0, which has 1024 here and rxe0 4096 there' \
        "1024 is used, and a warning says so"
fi
[ "${mean:-9999}" -lt 1100 ]
ok $? "node$GUEST_ID: the mean packet has ${mean:-no} bytes"
ip link set eth0 mtu 9000

# A switch with an MTU of 1500 between two hosts with 9000: packets of node1 of
# more than 2000 bytes are lost, because the token bucket holds no longer one.
# netem stands in front of it, because the device would repeat for ever what its
# own host refuses.
if [ "$GUEST_ID" = 1 ]; then
    tc qdisc replace dev eth0 root handle 1: netem limit 1000
    tc qdisc add dev eth0 parent 1: tbf rate 1gbit burst 2000 latency 1s
fi
meet narrow
status=0
ranks 1 short.ini 60 "$top_builddir/dtensor-bench" -b 8 -e 8 -n 1 allreduce \
    >/dev/null || status=$?
[ "$status" -ne 0 ] && [ "$(wc -l <rank.0)" -lt 6 ]
ok $? "node$GUEST_ID: a path with a smaller MTU: the job ends"
sed 's/^/# /' rank.0
if [ "$GUEST_ID" = 1 ]; then
    said 'rank 1 on node2.* it answers, but not packets of 4096 bytes, over rxe0 GID 10\.77\.0\.1 -> rxe0 GID 10\.77\.0\.2 \(is the MTU of a switch smaller\? its Ethernet MTU must be 4192 or more; or set \[transport\] mtu = 1024\)' \
        "and says why, and what to do"
else
    [ ! -s rank.0 ]
    ok $? "node$GUEST_ID: and leaves the words to rank 0"
fi
meet wide
tc qdisc del dev eth0 root 2>/dev/null

# -------------------------------------------------------------- addresses ---

# interrupted NAME FILE: a job in mid-run, $job
interrupted() {
    rm -f running
    meet "$1"
    DTN_LOG=warn ranks 1 "$2" 80 "$top_builddir/tests/rdma/survivor" running \
        4096 >/dev/null &
    job=$!
    wait_for running && meet "$1.running"
    ok $? "$1: both hosts are in mid-run"
}

interrupted address short.ini
if [ "$GUEST_ID" = 2 ]; then
    ip addr add 10.99.0.2/24 dev eth0
    sleep 1
    ip addr del 10.99.0.2/24 dev eth0
    sleep 1
    touch /guest-out/at.kept
fi
wait_for /guest-out/at.kept && kill -0 $job && ! grep -q 'rxe0 says' rank.0
ok $? "node$GUEST_ID: another address comes and goes: the job goes on, unmoved"
if [ "$GUEST_ID" = 2 ]; then
    ip addr del 10.77.0.2/24 dev eth0
    ip addr add 10.77.0.9/24 dev eth0
fi
wait $job
sed 's/^/# /' rank.0
said "^(code EPEER|code ENODEV)$" "the device's own goes: the job ends"
[ "$(sed -n 's/^after_ms //p' rank.0)" -lt 8000 ]
ok $? "node$GUEST_ID: in a second or two, not by dead_after"
said '^text .*over rxe0 GID 10\.77\.0\.[12] -> rxe0 GID 10\.77\.0\.[12]' \
    "the addresses that they had are named"
if [ "$GUEST_ID" = 2 ]; then
    said 'verbs: rxe0 says: GID table change' "the event is logged"
    said '^text .*GID 10\.77\.0\.2 is no longer row 1 of port 1 of rxe0 \(' \
        "and in the words of the failure"
else
    is "node1: it names the peer" "$(grep '^rank' rank.0)" 'rank 1'
    is "node1: no event there" "$(grep -c 'rxe0 says' rank.0)" 0
fi
done_testing

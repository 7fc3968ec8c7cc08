#!/bin/bash
# weather.sh - in each of two guests: packets are lost, delayed or reordered
#
# Collectives and redistributes must be right all the same.  How the device alone
# treats lost packets is measured too (bare.c).  Where every fifth packet is lost
# a job may end, but not hang, and both hosts must name the same rank.
#
# Without this test, retransmissions could show an error that no quiet wire
# shows.
. "$top_srcdir/tests/rdma/inside.sh"
export DTN_TEST_ROUNDS=4
pair_cluster pair.ini 1 'op_timeout = 30s' 'timeout = 15'
pair_cluster long.ini 1 'op_timeout = 30s' 'timeout = 12' 'retry_count = 7'
counters=/sys/class/infiniband/rxe0/ports/1/hw_counters

# weather NAME NETEM-ARGUMENT...
weather() {
    local name=$1
    shift
    tc qdisc replace dev eth0 root netem "$@" || return
    meet "$name" || return
    ranks 1 pair.ini 60 "$top_builddir/tests/coll/test_coll" member || return
    meet "$name.tensors" &&
        ranks 1 pair.ini 60 "$top_builddir/tests/tensor/test_tensor" member
}

# long NAME NETEM-ARGUMENT...: allreduces of 8 bytes to 2 MiB
long() {
    local name=$1
    shift
    tc qdisc replace dev eth0 root netem "$@" || return
    meet "$name" || return
    ranks 1 long.ini 60 "$top_builddir/tests/rdma/steady" 5 || return
    said=$(tail -n 1 rank.0 | cut -d ' ' -f -2)
}

# bare REQUEST: messages of 1 MiB without this library
bare() {
    meet "bare.$1" || return
    timeout -s KILL 15 "$top_builddir/tests/rdma/bare" "/guest-out/bare.$1" \
        "$GUEST_ID" 1048576 "$1" 4
}

# storm NAME NETEM-ARGUMENT...: all calls work and are exact, or both hosts say in
# words that the same rank is out of reach
storm() {
    local name=$1
    shift
    tc qdisc replace dev eth0 root netem "$@" || return
    meet "$name" || return
    ranks 1 pair.ini 100 "$top_builddir/tests/rdma/steady" 5 65536
    tc qdisc del dev eth0 root
    said=$(tail -n 1 rank.0)
    echo "$said" >"/guest-out/$name.$GUEST_ID"
    meet "$name.over" || return
    grep -q '^calls=[0-9]* gap=[0-9]* code=0 ' <<<"$said" ||
        { grep -qE ' code=EPEER .*: rank 1 on node2 .*(out of reach|died or left)' \
            <<<"$said" &&
            [ "$(grep -c ' code=EPEER rank=1 ' "/guest-out/$name".? |
                cut -d: -f2 | xargs)" = "1 1" ]; }
}

dropped() { tc -s qdisc show dev eth0 | sed -n 's/.*dropped \([0-9]*\).*/\1/p'; }
overtaken() { awk '{ n += $1 } END { print n }' "$counters"/{out_of_seq_request,rcvd_seq_err}; }

weather loss loss 1%
ok $? "1 % of packets lost: every result is exact"
count=$(dropped)
[ "${count:-0}" -gt 0 ]
ok $? "packets were lost indeed (${count:-0})"
for percent in 1 3; do
    long "long.$percent" loss $percent%
    ok $? "$percent % lost: messages of up to 2 MiB are exact ($said)"
done
echo "# the device by itself, requests of 16 packets: $(bare 65536)"
said=$(bare 4096)
grep -q ' status=0 ' <<<"$said"
ok $? "and of one: it repeats them as it should ($said)"
weather delay delay 1ms
ok $? "1 ms of delay: every result is exact"
trip=$(busybox ping -c 3 "10.77.0.$((3 - GUEST_ID))" |
    sed -n 's|^round-trip.* = \([0-9]*\)\..*|\1|p')
[ "${trip:-0}" -ge 2 ]
ok $? "a round trip takes 2 ms indeed (${trip:-no answer})"
before=$(overtaken)
weather reorder delay 2ms reorder 20% 50%
ok $? "packets overtake each other: every result is exact"
[ "$(overtaken)" -gt "$before" ]
ok $? "they did indeed ($(($(overtaken) - before)))"
storm flood loss 20%
ok $? "20 % of packets lost: exact, or both name the same rank (${said:0:240})"
done_testing

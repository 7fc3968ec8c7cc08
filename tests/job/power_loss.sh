#!/bin/bash
# power_loss.sh - a host of three loses its power: every other rank names it
#
# The hosts are network namespaces with a cable each to one bridge, over tcp;
# once a cable is taken out, no packet tells that anything has ended.  Four
# ranks, two of them on node1, are in the middle of their allreduces when
# node3, with rank 3, goes; and again when they have only joined.  Needs root.
#
# Without this test, a host that disappears without a packet could hang the
# others until TCP gives up, 15 minutes later.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/job/hosts.sh"
dead_after_ms=3000 heartbeat_ms=100
slack_ms=20000                    # a busy machine; op_timeout is 60 s
# A quarter of dead_after for the other side of a silence, two heartbeats for
# another loss, one for the look at which it is found.
bound_ms=$((dead_after_ms * 5 / 4 + 3 * heartbeat_ms + slack_ms))
first=(0 0 2 3) count=(0 2 1 1)   # ranks of node1, 2, 3

hosts_begin "$@"
host 1; host 2; host 3
printf '%s\n' '[cluster]' 'version = 1' '[nodes "one"]' 'hosts = node1' \
    'ranks = 2' '[nodes "two"]' 'hosts = node[2-3]' 'ranks = 1' '[transport]' \
    'intra_node = shm' 'inter_node = tcp' "dead_after = ${dead_after_ms}ms" \
    "heartbeat = ${heartbeat_ms}ms" 'op_timeout = 60s' >job.ini

# start NAME [GO]: the four ranks
start() {
    local k l
    for k in 1 2 3; do
        for ((l = 0; l < count[k]; l++)); do
            start_rank $((first[k] + l)) "$k" "$l" "${count[k]}" 4 "$@"
        done
    done
    all_run "$1" 4
    ok $? "three hosts are $1"
}

judge() {
    local r after
    for r in 0 1 2 3; do
        wait "${rank[r]}"
        ok $? "rank $r comes back"
    done
    for r in 0 1 2; do
        sed 's/^/# /' "rank.$r"
        is "rank $r: EPEER" "$(fact code $r)" EPEER
        is "rank $r: of rank 3" "$(fact rank $r)" 3
        fact text $r | grep -q 'rank 3 on node3'
        ok $? "rank $r: which is on node3"
        after=$(fact after_ms $r)
        [ "${after:-999999}" -le $bound_ms ]
        ok $? "rank $r: after ${after:-no} ms, dead_after, a quarter and three heartbeats expected"
    done
    sed 's/^/# /' rank.3
    is "rank 3, which is cut off: EPEER" "$(fact code 3)" EPEER
    after=$(fact after_ms 3)
    [ "${after:-999999}" -le $bound_ms ]
    ok $? "rank 3: after ${after:-no} ms, it gives up too"
}

start mid-run
unplug 3
judge
plug 3
# Before any two ranks have met: only the tree knows the others.
start unmet go
unplug 3
touch go
judge
kill "${host[@]}"
done_testing

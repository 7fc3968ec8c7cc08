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
export PATH=$PATH:/usr/sbin:/sbin
dead_after_ms=3000 heartbeat_ms=1000
slack_ms=3000                     # the tree's news, a busy machine
first=(0 0 2 3) count=(0 2 1 1)   # ranks of node1, 2, 3

if [ -z "${LOST_HOST_INSIDE-}" ]; then
    [ "$(id -u)" = 0 ] || skip_all "network namespaces need root"
    "$top_srcdir/tests/in-ns" true 2>/dev/null ||
        skip_all "no network namespaces here"
    LOST_HOST_INSIDE=1 exec "$top_srcdir/tests/in-ns" bash "$0"
fi

dir=$(mktemp -d) && cd "$dir" || exit 99
trap 'rm -rf "$dir"' EXIT
unset "${!DTN_@}" "${!SLURM@}"

# host K: a namespace with an address, on the bridge; its process in host[K]
host() {
    local k=$1 tick
    unshare --net sleep 300 &
    host[k]=$!
    for ((tick = 0; tick < 100; tick++)); do
        [ "$(readlink "/proc/${host[k]}/ns/net")" = "$own" ] || break
        sleep 0.05
    done
    ip link add "cable$k" type veth peer name eth0 netns "${host[k]}" &&
        ip link set "cable$k" master bridge up &&
        at "$k" ip link set lo up && at "$k" ip link set eth0 up &&
        at "$k" ip addr add "10.99.0.$k/24" dev eth0 &&
        echo "10.99.0.$k node$k" >>hosts
}

# at K COMMAND...: on that host
at() {
    local k=$1
    shift
    nsenter -t "${host[k]}" -n "$@"
}

# fact NAME RANK: of what it said in the end
fact() { sed -n "s/^$1 //p" "rank.$2"; }

grep -q '^#define HAVE_SODIUM' "$top_builddir/config.h" ||
    skip_all "no libsodium in this build"
own=$(readlink /proc/self/ns/net)
host=()
echo '127.0.0.1 localhost' >hosts
if ! { ip link add bridge type bridge 2>/dev/null && ip link set bridge up &&
    host 1 && host 2 && host 3; }; then
    skip_all "no bridge, or no veth, here"
fi
mount --bind hosts /etc/hosts || skip_all "no mounts here"
printf '%s\n' '[cluster]' 'version = 1' '[nodes "one"]' 'hosts = node1' \
    'ranks = 2' '[nodes "two"]' 'hosts = node[2-3]' 'ranks = 1' '[transport]' \
    'intra_node = shm' 'inter_node = tcp' "dead_after = ${dead_after_ms}ms" \
    "heartbeat = ${heartbeat_ms}ms" 'op_timeout = 60s' >job.ini

# start NAME [GO]: the four ranks, which make running.NAME.K
start() {
    local k l
    for k in 1 2 3; do
        for ((l = 0; l < count[k]; l++)); do
            DTN_RANK=$((first[k] + l)) DTN_WORLD_SIZE=4 DTN_LOCAL_RANK=$l \
                DTN_LOCAL_SIZE=${count[k]} DTN_JOB=$1 DTN_CLUSTER=job.ini \
                DTN_KEY=$test_key DTN_HOST=node$k at "$k" timeout -k 1 60 \
                "$top_builddir/tests/rdma/survivor" "running.$1.$k" 4096 \
                ${2:+"$2"} >"rank.$((first[k] + l))" 2>&1 &
            rank[first[k] + l]=$!
        done
    done
    for ((tick = 0; tick < 100; tick++)); do
        [ ! -e "running.$1.1" ] || [ ! -e "running.$1.2" ] ||
            [ ! -e "running.$1.3" ] || break
        sleep 0.1
    done
    [ "$tick" -lt 100 ]
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
        [ "${after:-999999}" -le $((dead_after_ms + heartbeat_ms + slack_ms)) ]
        ok $? "rank $r: after ${after:-no} ms, dead_after and a heartbeat expected"
    done
    sed 's/^/# /' rank.3
    is "rank 3, which is cut off: EPEER" "$(fact code 3)" EPEER
    after=$(fact after_ms 3)
    [ "${after:-999999}" -le $((dead_after_ms + heartbeat_ms + slack_ms)) ]
    ok $? "rank 3: after ${after:-no} ms, it gives up too"
}

start mid-run
ip link set cable3 nomaster
judge
ip link set cable3 master bridge
# Before any two ranks have met: only the tree knows the others.
start unmet go
ip link set cable3 nomaster
touch go
judge
kill "${host[@]}"
done_testing

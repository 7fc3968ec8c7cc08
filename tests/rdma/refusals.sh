#!/bin/bash
# refusals.sh - in one guest: what keeps rc from working is said in one line,
# by every rank, with what to do about it
. "$top_srcdir/tests/rdma/inside.sh"

# refused CLAIM PATTERN COMMAND...: a job of two ranks ends soon, and its first
# line matches
refused() {
    local claim=$1 pattern=$2 said status
    shift 2
    said=$(timeout 30 "$@" "$top_builddir/dtensor-run" -n 2 -C one.ini \
        "$top_builddir/dtensor-bench" -b 8 -e 8 -n 1 allreduce 2>&1)
    status=$?
    # shellcheck disable=SC2001 # each line
    sed 's/^/# /' <<<"$said"
    [ "$status" -ne 0 ] && [ "$status" -ne 124 ] &&
        grep -v '^dtensor-run' <<<"$said" | head -n 1 | grep -qE "$pattern"
    ok $? "$claim"
}

# nodes KEY = VALUE: the cluster file with one more line in its [nodes]
nodes() {
    cluster plain.ini 2
    sed "s/^ranks.*/&\n$1/" plain.ini >one.ini
}

nodes 'hca = mlx5_9'
refused "no device of the name in hca" 'mlx5_9.*\(.*\)' env
nodes 'hca = rxe0:2'
refused "no such port" 'port rxe0:2.*\(.*\)' env
nodes 'gid_index = 7'
refused "nothing at the GID index" 'GID.*7.*\(.*\)' env
cluster plain.ini 2
sed '/^pkey/d; s/^\[transport\].*/&\npkey = 0x8001/' plain.ini >one.ini
refused "no such partition" 'partition 0x8001, its keys are 0xffff \(.*\)' env
nodes ''
refused "not enough memory may be locked" 'ulimit -l|memlock' \
    setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock \
    bash -c 'ulimit -l 64 && exec "$@"' sh
ip link set eth0 down
refused "the port is down" 'rxe0|port' env
ip link set eth0 up
rdma link delete rxe0
refused "no device at all" 'RDMA device.*\(.*\)' env
done_testing

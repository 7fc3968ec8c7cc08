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
        grep -v -e '^dtensor-run' -e '^#' <<<"$said" | head -n 1 |
        grep -qE "$pattern"
    ok $? "$claim"
}

# nodes KEY = VALUE: the cluster file with one more line in its [nodes]
nodes() {
    cluster plain.ini 2
    sed "/^hca/d; s/^ranks.*/&\n$1/" plain.ini >one.ini
}

nodes 'hca = mlx5_9'
refused "no device of the name in hca" 'mlx5_9.*\(.*\)' env
nodes 'hca = rxe0+rxw1'
refused "no device of the name of a rail" \
    'no RDMA device rxw1 here; did you mean rxe1\?.*\(.*\)' env
nodes 'hca = rxe0+rxe0:1'
refused "a rail twice" '"rxe0:1" is twice in "rxe0\+rxe0:1"' env
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
refused "a tensor larger than what may be locked" \
    'refused to register memory of this call, 32.0 MiB in .*\(.*ulimit -l' \
    setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock \
    bash -c 'ulimit -l 8192 && exec "${@/8/32M}"' sh

# warned CLAIM PATTERN LINE: a job with that line in [transport] goes on, and
# says so
warned() {
    local said
    cluster one.ini 2 "$3"
    said=$(DTN_LOG=warn timeout 30 "$top_builddir/dtensor-run" -n 2 -C one.ini \
        "$top_builddir/dtensor-bench" -b 8 -e 8 -n 1 allreduce 2>&1) &&
        grep '^dtensor\[' <<<"$said" | head -n 1 | grep -qE "$2"
    ok $? "$1"
    grep '^dtensor\[' <<<"$said" | sed 's/^/# /'
}

warned "7 retries, which are for ever here, are explained" \
    'retry_count = 7: some devices try for ever.*\(expected .*\)' \
    'retry_count = 7'
warned "so is timeout 0" 'timeout = 0: .*\(expected .*\)' 'timeout = 0'
ip link set eth0 mtu 1500
warned "an MTU that the network has not" \
    'mtu = 4096, but rxe0 port 1 has 1024: .*\(an Ethernet MTU of 4192' \
    'mtu = 4096'
ip link set eth0 mtu 9000
nodes 'gid_index = 0'
said=$(DTN_LOG=warn timeout 30 "$top_builddir/dtensor-run" -n 2 -C one.ini \
    "$top_builddir/dtensor-bench" -b 8 -e 8 -n 1 allreduce 2>&1)
ok $? "a link-local GID is used"
grep -q 'GID 0 of rxe0.*link-local: no router will carry it' <<<"$said"
ok $? "with a warning"

ip link set eth1 down
nodes 'hca = rxe0+rxe1'
refused "the port of a rail is down" 'rxe1:1 is DOWN.*\(.*\)' env
rdma link delete rxe1
nodes ''
ip link set eth0 down
refused "the port is down" 'rxe0|port' env
ip link set eth0 up
rdma link delete rxe0
refused "no device at all" 'RDMA device.*\(.*\)' env
done_testing

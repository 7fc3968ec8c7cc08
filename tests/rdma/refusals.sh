#!/bin/bash
# refusals.sh - in one guest: what keeps rc from working
#
# Every rank names the reason in one line, with the remedy.
#
# Without this test, a missing device, port or permission could end in an error
# of libibverbs that helps nobody.
. "$top_srcdir/tests/rdma/inside.sh"

# refused CLAIM PATTERN COMMAND...: claim that a job of two ranks ends soon, and
# that its first line matches
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
nodes 'hca = rxe[0-1]'
sed -i 's/^\[transport\].*/&\nop_timeout = 3s\nstall_after = 500ms/' one.ini
refused "devices on two networks, which both ranks wait for" \
    'same call; it has not answered over rxe. GID 10.* -> rxe. GID 10.*hca' env
nodes 'gid_index = 7'
refused "nothing at the GID index" \
    'GID 7 of rxe0:1 is empty \(leave gid_index out .* 1 v2 10\.77\.0\.1' env
cluster plain.ini 2
sed '/^pkey/d; s/^\[transport\].*/&\npkey = 0x8001/' plain.ini >one.ini
refused "no such partition" 'partition 0x8001, its keys are 0xffff \(.*\)' env
nodes ''
refused "not enough memory may be locked: how much is, how much must be" \
    '64\.0 KiB of memory may be locked, rxe0 uses 1\.[0-9] MiB for 2 ranks .*\(.*ulimit -l' \
    setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock \
    bash -c 'ulimit -l 64 && exec "$@"' sh
refused "a tensor larger than what may be locked" \
    'refused to register memory of this call, 32.0 MiB in .*\(.*ulimit -l' \
    setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock \
    bash -c 'ulimit -l 8192 && exec "${@/#8/32M}"' sh

# warned CLAIM PATTERN LINE: claim that a job with that line in [transport] runs
# and logs a warning that matches
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

# logged CLAIM PATTERN: claim that a line of $said matches
logged() {
    grep -qE "$2" <<<"$said"
    ok $? "$1"
}

nodes ''
said=$(DTN_LOG=debug timeout 30 "$top_builddir/dtensor-run" -n 2 -C one.ini \
    "$top_builddir/dtensor-bench" -b 8 -e 8 -n 1 allreduce 2>&1)
ok $? "a job that logs all"
grep 'verbs: ' <<<"$said" | sed 's/^/# /'
logged "device and port, and why" \
    'verbs: device rxe0 port 1, RoCE, .*, MTU 4096: the first active one$'
logged "the GID, and why" 'verbs: GID 1 of rxe0, 10\.77\.0\.1: a routable address$'
logged "what fork() does" \
    'verbs: fork: the kernel copies what the device knows for a child made by'
logged "what may be locked, and what is needed" \
    'verbs: memory that may be locked: unlimited, of which 1\.[0-9]+ MiB are'
logged "when a silent peer is given up" \
    'a silent peer is given up after at least 1\.88 s = 7 x 4\.096 us x 2\^16'
logged "the MTU between two ranks" 'rank 1: MTU 4096 over rxe0, which has 4096'

# doctored: what the doctor says of the RDMA devices and the network
doctored() {
    said=$("$top_builddir/dtensor-conf" --doctor one.ini 2>&1 |
        grep -E '^[a-z]+ +(devices|mtu)')
    # shellcheck disable=SC2001 # each line
    sed 's/^/# /' <<<"$said"
}

doctored
logged "the doctor: the device is active" '^ok +devices +rxe0:1.* is active, MTU 4096'
logged "the doctor: large frames" '^ok +mtu +eth0 has MTU 9000'
ip link set eth0 mtu 1500
doctored
logged "the doctor: a device whose network has a small MTU" \
    '^note +devices +rxe0:1.* has MTU 1024 of 4096.*raise the MTU'
ip link set eth0 mtu 9000
nodes 'hca = rxe1:1\ngid_index = 1'
said=$(DTN_LOG=info timeout 30 "$top_builddir/dtensor-run" -n 2 -C one.ini \
    "$top_builddir/dtensor-bench" -b 8 -e 8 -n 1 allreduce 2>&1)
logged "a device that the file names" \
    'verbs: device rxe1 port 1, .*: by the cluster file$'
logged "and a GID" \
    'GID 1 of rxe1, 10\.78\.0\.1: by the cluster file, a routable address$'

# two WIRE [SECOND-DEVICE]: a job of two hosts, which are addresses of this one;
# what both said is in $said
two() {
    local k pids=()
    printf '%s\n' '[cluster]' 'version = 1' '[nodes "a"]' 'hosts = a' \
        'addresses = 127.0.0.2' 'ranks = 1' '[nodes "b"]' 'hosts = b' \
        'addresses = 127.0.0.3' 'ranks = 1' ${2:+"hca = $2"} '[transport]' \
        "inter_node = $1" 'connect_timeout = 20s' >two.ini
    for k in 0 1; do
        DTN_HOST=$(tr 01 ab <<<"$k") DTN_RANK=$k DTN_WORLD_SIZE=2 \
            DTN_LOCAL_RANK=0 DTN_LOCAL_SIZE=1 DTN_JOB=two DTN_CLUSTER=two.ini \
            DTN_LOG=info timeout 30 "$top_builddir/dtensor-bench" -b 8 -e 8 \
            -n 1 allreduce >"said.$k" 2>&1 &
        pids+=($!)
    done
    wait "${pids[0]}" && wait "${pids[1]}"
    status=$?
    said=$(cat said.0 said.1)
    grep -E 'inter_node|^# plan allreduce|verbs: [^dG]' <<<"$said" | sed 's/^/# /'
}

# goes CLAIM WIRE: the last job of two hosts went well, and by that wire
goes() {
    [ "$status" -eq 0 ] && grep -qE "^# plan allreduce .*/$2(\(|\$)" <<<"$said"
    ok $? "$1"
}

two auto
goes "auto: rc, where all ranks can use it" rc
logged "which is logged" 'init: inter_node = auto: rc, which all ranks can use$'
two auto mlx5_9
goes "auto: tcp, where one rank cannot" tcp
logged "and why is logged" \
    'inter_node = auto: tcp, for rank 1 on b cannot use rc: verbs: no RDMA device mlx5_9 here'
is "by one rank" "$(grep -c 'inter_node = auto' <<<"$said")" 1

ip link set eth1 down
nodes 'hca = rxe0+rxe1'
refused "the port of a rail is down" 'rxe1:1 is DOWN.*\(.*\)' env
rdma link delete rxe1
nodes ''
ip link set eth0 down
refused "the port is down" \
    'rxe0:1 is DOWN, its link Disabled \(.*ip link set dev eth0 up\)' env
two auto
goes "auto: tcp, where the port is down" tcp
logged "and that it is down is logged" \
    'auto: tcp, for rank 0 on a cannot use rc: verbs: rxe0:1 is DOWN'
doctored
logged "the doctor: the port is down" '^note +devices +rxe0:1.*is not active'
ip link set eth0 up
rdma link delete rxe0
doctored
logged "the doctor: no device for a file that asks for rc" \
    '^bad +devices +.*no RDMA device'
refused "no device at all" 'no RDMA device \(.*inter_node = tcp' env
two rc
[ "$status" -ne 0 ] && grep -qE \
    'no RDMA device \(is its driver loaded\? .* inter_node = tcp, or auto\)' said.0
ok $? "rc between hosts, without a device: one line, with the remedy"
two auto
goes "auto: tcp, where there is no device" tcp
two tcp
goes "tcp: nobody asks for a device" tcp
done_testing

#!/bin/bash
# pair.sh IMAGE OUT SECONDS SCRIPT [ARGUMENT...] - run a script in two guests
#
# As guest.sh, but with two guests and two wires between them.  On one wire node1
# is 10.77.0.1 and node2 is 10.77.0.2, on the other 10.78.0.1 and 10.78.0.2.
# Both run the script and meet through files in /guest-out, which is OUT for
# both.  A file OUT/kill.2 kills node2 like a power cut.  The exit status is that
# of node1 or, if it is 0 and node2 was not killed, that of node2.
set -u
. "$(dirname "$0")/qemu.sh"
image=$1 out=$2 limit=$3
guest_prepare "$out" "${@:4}"

# A wire is two datagram sockets: when one end is gone the other keeps its link,
# as if there were a switch between them.
nics() {
    local n
    for n in 0 1; do
        printf '%s\n' -netdev \
            "dgram,id=n$n,local.type=unix,local.path=net.$1.$n,remote.type=unix,remote.path=net.$2.$n" \
            -device "virtio-net-pci,netdev=n$n,host_mtu=9000,mac=52:54:00:7$((7 + n)):00:0$1"
    done
}

mapfile -t nics1 < <(nics 1 2)
mapfile -t nics2 < <(nics 2 1)
guest_start "$image" "$out" 1 "${nics1[@]}"
pid1=$!
guest_start "$image" "$out" 2 "${nics2[@]}"
pid2=$!
killed=0
trap 'kill -9 $pid1 $pid2 2>/dev/null' EXIT
for ((tick = limit * 10; tick > 0; tick--)); do
    kill -0 $pid1 2>/dev/null || kill -0 $pid2 2>/dev/null || break
    if [ -e "$out/kill.2" ] && [ "$killed" -eq 0 ]; then
        kill -9 $pid2
        killed=1
    fi
    sleep 0.1
done
kill -9 $pid1 $pid2 2>/dev/null && [ "$tick" -le 0 ] &&
    echo "pair: killed after $limit s" >&2
wait $pid1 $pid2 2>/dev/null
guest_finish "$out" 1
status=$?
if [ "$killed" -eq 0 ]; then
    guest_finish "$out" 2
    second=$?
    [ "$status" -ne 0 ] || status=$second
fi
[ "$tick" -gt 0 ] || status=124
exit "$status"

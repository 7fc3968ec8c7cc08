#!/bin/bash
# guest.sh IMAGE OUT SECONDS SCRIPT [ARGUMENT...] - run a script in one guest
#
# Boots QEMU with the kernel of image.sh.  The guest sees this machine's files
# and keeps what it writes in its memory; /guest-out is OUT.  It has soft RDMA
# devices rxe0 and rxe1 on dummy links and starts in this directory.  The output
# of the script goes to OUT/log.1 and stdout.  Its exit status is ours; 124 means
# that the time was up.
set -u
. "$(dirname "$0")/qemu.sh"
image=$1 out=$2 limit=$3
guest_prepare "$out" "${@:4}"
guest_start "$image" "$out" 1
pid=$!
trap 'kill -9 $pid 2>/dev/null' EXIT
for ((tick = limit * 10; tick > 0; tick--)); do
    kill -0 $pid 2>/dev/null || break
    sleep 0.1
done
kill -9 $pid 2>/dev/null && echo "guest: killed after $limit s" >&2
wait $pid 2>/dev/null
guest_finish "$out" 1
status=$?
[ "$tick" -gt 0 ] || status=124
exit "$status"

#!/bin/bash
# check-uml.sh - RDMA between two hosts: User Mode Linux guests, soft-RoCE
#
# Two guests have one CPU, one rank and rxe0 each.  The cable between them can
# lose, delay, reorder, duplicate and corrupt packets.  The guests run at the
# speed of this machine, without virtualisation and without root.  `make
# check-rdma-uml` runs it, with a kernel that is built once: DTN_UML_BUILD=1, see
# uml-kernel.sh.
#   DTN_UML_SCENES  what to do instead of all: exact weather faults lost_host;
#                   or speed, which only measures
#   DTN_UML_KEEP    a folder in which to leave everything the guests wrote
#
# Without this test, RDMA between hosts could be tried only at the speed of an
# emulated processor.
. "$top_srcdir/tests/tap.sh"
rdma=$top_srcdir/tests/rdma

for tool in python3 setpriv unshare ip tc rdma ibv_devices; do
    command -v "$tool" >/dev/null || PATH=$PATH:/usr/sbin:/sbin
    command -v "$tool" >/dev/null || skip_all "no $tool here"
done
reason=$(mktemp)
kernel=$("$rdma/uml-kernel.sh" 2>"$reason")
status=$?
why=$(tail -n 1 "$reason")
rm -f "$reason"
[ $status -eq 0 ] || skip_all "$why"

# scenes WORD...: start one pair of guests, which plays these scenes
scenes() {
    local out seconds=240
    out=$(mktemp -d "${TMPDIR:-/tmp}/dtensor-uml.XXXXXX")
    cp "$rdma/uml-init.sh" "$out/init"
    cp "$rdma/uml-guest.sh" "$out/job"
    printf '%s=%q\n' scenes "$*" top_srcdir "$top_srcdir" \
        top_builddir "$top_builddir" >"$out/env"
    setpriv --pdeathsig KILL \
        "$rdma/uml-pair.py" "$kernel" "$out" $seconds
    ok $? "two guests ran $* to the end"
    relate "$out"
    [ -z "${DTN_UML_KEEP-}" ] || cp -r "$out" "$DTN_UML_KEEP/"
    rm -rf "$out"
}

# relate OUT: take over the claims of guest 1, with our numbers
relate() {
    local line
    while IFS= read -r line; do
        case $line in
        'ok '* | 'not ok '*)
            [ "${line%% *}" = ok ]
            ok $? "${line#*- }"
            ;;
        'count '*) ;;
        *) echo "# ${line#\# }" ;;
        esac
    done <"$1/job.out.1"
    if ! grep -q '^count ' "$1/job.out.1"; then
        ok 1 "guest 1 got through $(tr '\n' ' ' <"$1/env")"
        tail -n 20 "$1"/console.* "$1/job.out.2" | sed 's/^/# /'
    fi
}

if [ -n "${DTN_UML_SCENES-}" ]; then
    # shellcheck disable=SC2086 # words
    scenes $DTN_UML_SCENES
else
    scenes exact weather faults
    scenes lost_host
fi
done_testing

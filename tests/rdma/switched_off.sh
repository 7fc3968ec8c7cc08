#!/bin/bash
# switched_off.sh - in each of two guests, two ranks each: how soon it is known
# that node2 is switched off, with the settings of conf/two-nodes.ini
#
# Prints "after_ms N" for each rank of node1.  The times count, so it is a part of
# `make bench-liveness`; that the right rank is named is shown by lost.sh.
#
# Without this test, the times that the shipped file promises would be known
# for hosts that only lost their link.
. "$top_srcdir/tests/rdma/inside.sh"
sed -e '/^gid_index\|^cpus\|^port/d; /^\[mesh/,$d' -e 's/^world_size.*/world_size = 4/' \
    -e 's/^hosts .*/hosts = node[1-2]/; s/^addresses .*/addresses = 10.77.0.[1-2]/' \
    -e 's/^ranks .*/ranks = 2/; s/^hca .*/hca = rxe0/' \
    "$top_srcdir/conf/two-nodes.ini" >pair.ini
meet start || exit
ranks 2 pair.ini 80 "$top_builddir/tests/rdma/survivor" running 4096 &
wait_for running && meet running || exit
sleep 1
[ "$GUEST_ID" = 2 ] || touch /guest-out/kill.2
wait $!
grep -h '^after_ms\|^text' rank.0 rank.1

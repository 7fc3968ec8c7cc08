#!/bin/bash
# unresolved_neighbour.sh - two hosts do not find each other's address of the link
#
# Four hosts of one rank, over tcp, in network namespaces.  node3 and node4
# answer no ARP; node1 and node2 know them, so all join.  The first allreduce
# connects rank 3 to rank 2.  The kernel gives up after three queries, most
# often: then rank 3 must say what it does not reach and why, and all must name
# it at once.  Else all must name it after op_timeout.  Needs root.
#
# Without this test, a rank that is told of nothing, for those between have
# left, could wait until op_timeout.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/job/hosts.sh"
hosts_begin "$@"
host 1; host 2; host 3; host 4
unresolved 3 4 4
printf '%s\n' '[cluster]' 'version = 1' '[nodes "all"]' 'hosts = node[1-4]' \
    'ranks = 1' '[transport]' 'intra_node = shm' 'inter_node = tcp' \
    'dead_after = 3s' 'op_timeout = 20s' >job.ini
for r in 0 1 2 3; do
    start_rank "$r" $((r + 1)) 0 1 4 neighbours
done
wait "${rank[@]}"
case $(fact code 3) in
ESYS) told=EABORT why="*cannot connect to rank 2 on node3*10.99.0.3:*No route to host*" ;;
*) told=ETIME why="*waited * for rank 2 on node3*" ;;
esac
for r in 0 1 2; do
    is "rank $r names rank 3" "$(fact code $r) $(fact rank $r)" "$told 3"
done
# shellcheck disable=SC2053 # a pattern
[[ $(fact text 3) == $why ]]
ok $? "a neighbour that does not resolve: its rank says $why"
for r in 0 1 2 3; do
    sed "s/^/# $r: /" "rank.$r"
done
kill "${host[@]}"
done_testing

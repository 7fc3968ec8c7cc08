#!/bin/bash
# hosts.sh - in each of two guests: collectives across hosts, with RANKS ranks
# on each
#
# Redistributes and the bench run too.  The first argument is RANKS.
#
# Without this test, rc would only be tried inside one host.
. "$top_srcdir/tests/rdma/inside.sh"
n=$1
export DTN_TEST_ROUNDS=10
# timeout: an emulated host can stand still for longer than the usual 1.9 s
pair_cluster pair.ini "$n" 'op_timeout = 40s' 'timeout = 17'

# across CLAIM COMMAND...: claim that all ranks of the pair run it well
across() {
    local claim=$1
    shift
    meet "${claim// /_}" && ranks "$n" pair.ini 60 "$@"
    ok $? "$n + $n ranks: $claim"
}
across "every collective is exact" "$top_builddir/tests/coll/test_coll" member
across "every placement becomes any other" "$top_builddir/tests/tensor/test_tensor" member
across "the bench measures" "$top_builddir/dtensor-bench" -b 8 -e 256K -f 32 -n 3 -w 1 \
    --shape 300x300 --from 'S(0)' --to 'S(1)' allreduce all_to_all redistribute
if [ "$GUEST_ID" = 1 ]; then
    sed 's/^/# /' rank.0
    grep -q '^# wrong results 0 ' rank.0
    ok $? "$n + $n ranks: and finds no wrong result"
fi
[ "$n" -gt 1 ] || done_testing

# Within a host and between hosts in one call.
pair_cluster pair.ini "$n" 'op_timeout = 40s' 'timeout = 17' '[tuning]' \
    'allreduce = 0-inf:hierarchical' 'broadcast = 0-inf:hierarchical'
across "the bench measures layers" "$top_builddir/dtensor-bench" -b 64 -e 256K -f 64 \
    -n 3 -w 1 allreduce broadcast
if [ "$GUEST_ID" = 1 ]; then
    sed 's/^/# /' rank.0
    is "shared memory inside, rc between: each call by both, none wrong" \
        "$(grep -cE '^# plan (allreduce|broadcast) hierarchical/shm\+net' rank.0) \
$(grep '^# wrong results' rank.0 | cut -d ' ' -f 4)" "2 0"
fi
done_testing

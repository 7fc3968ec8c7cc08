#!/bin/bash
# rails.sh - in one guest: all that runs over rc, over two rails
#
# The transport suite runs with two queue pairs on each rail.  One rail then
# goes down, and the error is compared.
#
# Without this test, a message could be seen before the part that went over the
# other rail.
. "$top_srcdir/tests/rdma/inside.sh"
export DTN_TEST_ROUNDS=${1:-10} DTN_TEST_HCA=rxe0+rxe1
timeout 60 "$top_builddir/tests/rdma/stripes" || exit
DTN_TEST_QPS=2 timeout 100 "$top_builddir/tests/transport/test_transport" rc 2 || exit
timeout 150 "$top_builddir/tests/coll/test_coll" rc 3 || exit
timeout 60 "$top_builddir/tests/coll/test_coll_failures" rc || exit
timeout 100 "$top_builddir/tests/tensor/test_tensor" rc 3 || exit

hca=$DTN_TEST_HCA
cluster one.ini 2 'timeout = 14' 'retry_count = 3' 'op_timeout = 20s'
run() {
    timeout -k 1 40 "$top_builddir/dtensor-run" -n 2 -C one.ini "$@" >said 2>&1
}
run "$top_builddir/dtensor-conf" --fabric
ok $? "dtensor-conf --fabric: both rails of both ranks are fit"
sed 's/^/# /' said
is "and have a row each" \
    "$(grep -cE '^ +[01]  localhost  rxe[01]:1  ACTIVE ' said)" 4
run "$top_builddir/tests/rdma/survivor" running 2097152 &
wait_for running
ok $? "two ranks are in mid-run"
ip link set eth1 down
wait
sed 's/^/# /' said
is "one rail goes down: both have EPEER" "$(grep -c '^code EPEER' said)" 2
grep '^text' said | grep 'over rail 1 of 2, rxe1 GID 10.78.0.1' |
    grep -qE 'port 1 of rxe1 (went down|is DOWN)'
ok $? "which names the rail, its GID, and that its port is down"
is "within a second or two" \
    "$(awk '/^after_ms/ && $2 > 4000' said | wc -l)" 0
done_testing

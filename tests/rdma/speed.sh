#!/bin/bash
# speed.sh - in one guest: the bench over rc, every result checked
#
# Also with two ranks only, for every two ranks.
#
# Without this test, dtensor-bench could fail over rc on the day that somebody
# needs a figure.
. "$top_srcdir/tests/rdma/inside.sh"
cluster one.ini 2
timeout 80 "$top_builddir/dtensor-run" -n 2 -C one.ini \
    "$top_builddir/dtensor-bench" -b 8 -e 1M -f 32 -n 10 --shape 512x512 \
    --from 'S(0)' --to 'S(1)' all >said 2>&1
ok $? "dtensor-bench all: two ranks end well"
sed 's/^/# /' said
grep -q '^# wrong results 0 ' said
ok $? "no result was wrong"
[ "$(grep -cE '^# plan [a-z].*/rc(\(|$)' said)" -ge 8 ]
ok $? "every plan went over rc"
cluster three.ini 3
timeout 60 "$top_builddir/dtensor-run" -n 3 -C three.ini \
    "$top_builddir/dtensor-bench" -q --check-fabric -n 3 -w 1 >said 2>&1
ok $? "dtensor-bench --check-fabric: three ranks end well"
sed 's/^/# /' said
is "two matrices, each two ranks over rc by themselves" \
    "$(grep -cE '^ +[0-2]( +[0-9.]+[ *]| +- ){3}' said)" 6
done_testing

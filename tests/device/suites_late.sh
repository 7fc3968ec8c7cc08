#!/bin/bash
# suites_late.sh - suites of other rooms on a device that is late
#
# Each operation of the driver in tests/standin is late.  Without this test,
# whoever reads the result of an operation before it is done would see old bytes
# on a machine with a GPU only.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/device/each_suite.sh"

export DTN_STANDIN_LATE_US=100
for late in blocks parts redistribute requests; do
    suite $late "on a late device" '^not ok|^# rank'
done
# Does it show?  Here nobody waits.  Streams that wait for each other then may
# wait for ever.
export DTN_STANDIN_LATE_US=5000
for late in parts redistribute; do
    DTN_TEST_MUTANT=settle timeout -k 1 10 tests/device/suite_$late >"$out" 2>&1
    [ $? -ge 124 ] || grep -q '^not ok' "$out"
    ok $? "$late notices a library that does not wait"
done
done_testing

#!/bin/bash
# suites.sh - suites of other rooms on the kind `cuda`
#
# The programs of this folder that run on the pretend device run again with
# their tensors and allocations in the device memory of the driver in
# tests/standin, which no CPU reaches, by the operations of the kind `cuda`.
#
# Without this test, a copy that goes past the driver, or an operation that is
# not waited for, would be seen on a machine with a GPU only.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/device/each_suite.sh"

each_suite "on the kind cuda"
# A device that is late: whoever does not wait for it sees old bytes.
export DTN_STANDIN_LATE_US=100
for late in blocks parts redistribute requests; do
    suite $late "on a late device" '^not ok|^# rank'
done
# Does it show?  Here nobody waits.
export DTN_STANDIN_LATE_US=5000
for late in parts redistribute; do
    DTN_TEST_MUTANT=settle tests/device/pretend_$late >"$out" 2>&1
    grep -q '^not ok' "$out"
    ok $? "$late notices a library that does not wait"
done
done_testing

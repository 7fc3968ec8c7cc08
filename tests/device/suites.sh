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
cd "$top_builddir" || exit 1
driver=$PWD/tests/standin/.libs
export DTN_TEST_DEVICE=cuda LD_LIBRARY_PATH=$driver
# A fifth of the cases, and no claim about times: streams are threads here.
export DTN_TEST_ROUNDS=${DTN_TEST_ROUNDS:-20}

[ -r "$driver/libcuda.so.1" ] ||
    skip_all "the driver of tests/standin is not built (shared libraries are needed)"
for suite in tests/device/pretend_*; do
    case $suite in *.*) continue ;; esac
    "$suite" >suite.out 2>&1
    status=$?
    is "${suite#*pretend_} on the kind cuda" \
        "$status|$(grep -E '^not ok|^# rank|^standin' suite.out | head -20)" "0|"
done
rm -f suite.out
# A device that is late: whoever does not wait for it sees old bytes.
export DTN_STANDIN_LATE_US=100
for suite in blocks parts redistribute requests; do
    tests/device/pretend_$suite >suite.out 2>&1
    status=$?
    is "$suite on a late device" \
        "$status|$(grep -E '^not ok|^# rank' suite.out | head -20)" "0|"
done
rm -f suite.out
done_testing

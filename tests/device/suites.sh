#!/bin/bash
# suites.sh - the suites of tests/coll on the kind `cuda`
#
# Their tensors and allocations are in the device memory of the driver in
# tests/standin, which no CPU reaches, and the operations are those of the kind
# `cuda`.
#
# Without this test, a copy that goes past the driver, or an operation that is
# not waited for, would be seen on a machine with a GPU only.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/device/each_suite.sh"

each_suite "on the kind cuda" coll
done_testing

#!/bin/bash
# suites_tensors.sh - the suites of all rooms but tests/coll on the kind `cuda`
#
# As suites.sh, which has those of tests/coll: two programs can run at the same
# time.  Without this test, a tensor in the memory of a GPU could be read by the
# CPU.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/device/each_suite.sh"

each_suite "on the kind cuda" ^coll
done_testing

#!/bin/bash
# suites_tcp.sh - suites on the kind `cuda` over tcp
#
# The suites of suites.sh that have one wire, shm, over another: tcp, which
# reaches host memory only.
#
# Without this test, what is staged for tcp could be wrong for requests, tensors
# and random numbers, and only collectives would be tried.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/device/each_suite.sh"

export DTN_TEST_WIRE=tcp
for name in compare parts random redistribute redops; do
    suite $name "on the kind cuda, over tcp" '^not ok|^# rank|^standin'
done
done_testing

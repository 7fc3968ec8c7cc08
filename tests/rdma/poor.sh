#!/bin/bash
# poor.sh - in one guest: what the library asks for is refused
#
# Allocations, system calls and calls of libibverbs fail over rc, a sample of them,
# one by one: the rank says why, the other is told, and nothing is left.
# DTN_TEST_ROUNDS=100 fails each allocation, and many more calls; it needs
# DTN_RDMA_PATIENCE=10.
#
# Without this test, a rank that runs out of memory or descriptors while it uses
# verbs could crash, leak, or leave its peers waiting.
. "$top_srcdir/tests/rdma/inside.sh"
export DTN_TEST_ROUNDS=${DTN_TEST_ROUNDS:-5}
export DTN_TEST_HCA=rxe0            # not the other, on another network, instead
"$top_builddir/tests/job/test_out_of_memory" rc || exit
exec "$top_builddir/tests/job/test_syscall_failures" rc

#!/bin/bash
# tensors.sh - in one guest: the redistribute matrix over rc
#
# All pairs of placements of tests/tensor/test_tensor.c.
#
# Without this test, redistributes over rc would be tried by users first.
. "$top_srcdir/tests/rdma/inside.sh"
exec timeout 100 "$top_builddir/tests/tensor/test_tensor" rc 3

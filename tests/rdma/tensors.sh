#!/bin/bash
# tensors.sh - in one guest: the redistribute matrix over rc
. "$top_srcdir/tests/rdma/inside.sh"
exec timeout 100 "$top_builddir/tests/tensor/test_tensor" rc 3

#!/bin/bash
# torch_programs.sh - 1,000 random programs beside PyTorch: torch_programs.py.
# Not part of check: make -C build check-torch, with PYTHON=... that has torch.
# PROGRAMS and SEED in the environment choose more of them, or others.
#
# Without this test, an operator could be right alone, and wrong in placements
# that another operator leaves, or its gradient be.
. "$top_srcdir/tests/tap.sh"
python=${PYTHON:-python3}
"$python" -c 'import torch' 2>/dev/null || skip_all "$python has no torch"
exec "$python" "$top_srcdir/tests/peers/torch_programs.py" \
    "$top_builddir/.libs/libdtensor.so" "${PROGRAMS:-1000}" "${SEED:-20261129}"

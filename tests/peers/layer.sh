#!/bin/bash
# layer.sh - a transformer layer: what is not arithmetic, and PyTorch; by hand
#
#   tests/peers/layer.sh [BUILD]
#
# Width 1024, f32, forward and backward, cut by heads over RANKS ranks.  In
# turn, TURNS times: our program (layer.c) and PyTorch's DTensor over gloo
# (layer_torch.py), for which PYTHON, python3 if it is not set, has to have
# PyTorch.  Without it that part is left out, and said.  Medians count.
set -u
src=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$src/build}" && pwd) || exit 1
ranks=${RANKS:-4} rows=${ROWS:-512} turns=${TURNS:-4} rounds=${ROUNDS:-5}
python=${PYTHON:-python3}
lines=$(mktemp) || exit 1
trap 'rm -f "$lines"' EXIT
unset "${!DTN_@}"

peer=1
"$python" -c 'import torch' 2>/dev/null || peer=0
echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), \
$(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg); $ranks ranks, $rows rows"
for ((i = 0; i < turns; i++)); do
    timeout 120 "$build/dtensor-run" -n "$ranks" \
        "$build/tests/peers/layer" "$rows" "$rounds" >>"$lines" || exit 1
    [ $peer = 0 ] || timeout 120 "$python" "$src/tests/peers/layer_torch.py" \
        "$ranks" "$rows" "$rounds" >>"$lines" || exit 1
done
awk -f "$src/tests/peers/layer.awk" "$lines"
[ $peer = 1 ] || echo "PyTorch: skipped: $python has none (set PYTHON)"

#!/bin/bash
# random_speed.sh - our fills beside memset, Random123's loop and PyTorch's CPU
# fill, one thread each, in one run; not part of check: make -C build
# bench-random.  PYTHON names a python that has torch.  Without Random123 or
# torch their lines are left out.
bytes=${1:-536870912}
top_srcdir=${top_srcdir:-$(dirname "$0")/../..}
top_builddir=${top_builddir:-.}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

"$top_builddir/dtensor-bench" rng --dist uniform --bytes "$bytes" |
    tee "$tmp/uniform" || exit 1
"$top_builddir/dtensor-bench" rng --dist normal --bytes "$bytes" | grep -v '#' |
    tee "$tmp/normal" || exit 1
ours=$(awk '$1 == "uniform" { print $2 }' "$tmp/uniform")
if ${CC:-cc} -O3 -march=native -o "$tmp/random123" \
    "$top_srcdir/tests/peers/random123.c" 2>"$tmp/log"; then
    theirs=$("$tmp/random123" "$bytes")
    awk -v a="$ours" -v b="$theirs" 'BEGIN {
        printf "  Random123, uniform, a plain loop: %.2f GB/s; we %.1f times that\n",
               b, a / b }'
fi
"${PYTHON:-python3}" - "$bytes" "$ours" \
    "$(awk '$1 == "normal" { print $2 }' "$tmp/normal")" 2>/dev/null <<'EOF'
import sys
import time
import torch

torch.set_num_threads(1)
bytes_, ours = int(sys.argv[1]), {"uniform": sys.argv[2], "normal": sys.argv[3]}
x = torch.zeros(bytes_ // 4)
for name, fill in (("uniform", x.uniform_), ("normal", x.normal_)):
    best = min((lambda t: (fill(), time.perf_counter() - t)[1])
               (time.perf_counter()) for _ in range(3))
    rate = bytes_ / best / 1e9
    print(f"  PyTorch {torch.__version__}, {name}, CPU: {rate:.2f} GB/s; "
          f"we {float(ours[name]) / rate:.1f} times that")
EOF
exit 0

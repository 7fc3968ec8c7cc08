#!/bin/bash
# random_torch.sh - whole tensors beside PyTorch's: on its CUDA device, below
# and above the number of threads from which values depend on the device; and
# on its CPU by torch.func._random, the only generator of it there that is a
# Philox (torch.rand on a CPU is a Mersenne twister).  Not part of check: make
# -C build check-torch, with PYTHON=... that has torch.
#
# Without this test, the claim that tensors equal PyTorch's would rest on
# reading its source.
. "$top_srcdir/tests/tap.sh"
python=${PYTHON:-python3}
bench=$top_builddir/dtensor-bench
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
"$python" -c 'import torch' 2>/dev/null || skip_all "$python has no torch"

# of N SEED DIST ARGUMENT...: our values, without the heading
of() {
    local n=$1 seed=$2 dist=$3
    shift 3
    "$bench" rng --print "$n" --seed "$seed" --dist "$dist" "$@" | grep -v '^#'
}

# torch's CPU, words: its offset counts blocks of four, and of an integer of 64
# bits the first word is the upper half.  From a block below 2^33 on, too.
n=100000
for seed in 0 42 18446744073709551615; do
    for block in 0 8589934500; do
        for type in u8 u16 u32 u64; do
            of $n $seed bits --dtype $type --offset $((4 * block)) >"$tmp/$type"
        done
        got=$("$python" - $n $seed $block "$tmp" <<'PY'
import sys
import torch

try:
    from torch.func._random import bits
except ImportError:
    sys.exit(print("none"))
n, seed, block, tmp = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
key = torch.tensor([seed, block], dtype=torch.uint64)
for size in 8, 16, 32, 64:
    ours = [int(line) for line in open(f"{tmp}/u{size}")]
    if size == 64:
        ours = [x >> 32 | (x & 0xffffffff) << 32 for x in ours]
    theirs = bits(key, (n,), dtype=getattr(torch, f"uint{size}")).tolist()
    print(sum(a != b for a, b in zip(ours, theirs)) + abs(len(ours) - n), end=" ")
PY
        )
        if [ "$got" = none ]; then
            skip_test "words on a CPU" "this torch has no torch.func._random.bits"
            break 2
        fi
        is "seed $seed, block $block: $n integers of 8, 16, 32, 64 bits are PyTorch's on a CPU" \
            "$got" "0 0 0 0 "
    done
done

# torch's CPU: of a word its lower 24 bits make a uniform value; normals are
# ours, cosine first, but for the rounding of its angles to a float.
for seed in 0 42 9223372036854775850; do
    words=$(of $n $seed bits --dtype u32)
    normals=$(of $n $seed normal)
    got=$("$python" - $n $seed 3<<<"$words" 4<<<"$normals" <<'PY'
import os
import sys
import torch

try:
    from torch.func._random import key, normal, uniform
except ImportError:
    sys.exit(print("none"))
n, seed = int(sys.argv[1]), int(sys.argv[2])
ours = lambda fd, kind: torch.tensor([float(x) for x in os.fdopen(fd)], dtype=kind)
bits = (ours(3, torch.float64).long() & 0xffffff).float() * 2.0 ** -24
print(int((uniform(key(seed), (n,)) != bits).sum()), end=" ")
z = normal(key(seed), (n,)).double()
swapped = ours(4, torch.float32).view(-1, 2).flip(1).reshape(-1).double()
print(float((z - swapped).abs().max()))
PY
    )
    if [ "$got" = none ]; then
        skip_test "PyTorch on a CPU" "this torch has no torch.func._random"
        break
    fi
    is "seed $seed: $n uniform values are PyTorch's on a CPU" "${got% *}" 0
    awk -v e="${got#* }" 'BEGIN { exit !(e < 3e-6) }'
    ok $? "seed $seed: and normals, ${got#* } apart, less than 3e-6"
done

gpu=$("$python" -c 'import torch
p = torch.cuda.get_device_properties(0)
print(p.multi_processor_count, p.max_threads_per_multi_processor)' 2>/dev/null) || {
    skip_test "tensors of a CUDA device" "torch finds no CUDA device"
    done_testing
}
read -r sms threads <<<"$gpu"
most=$((sms * threads))
for n in 1 255 1000 $((most - 1)) "$most" $((most + 1)) $((4 * most + 3)) 10000019; do
    for dist in uniform normal integers:0,1000; do
        got=$(of "$n" 42 "$dist" --fill cuda --sms "$sms" --threads "$threads" |
            "$python" -c '
import sys
import torch

n, dist = int(sys.argv[1]), sys.argv[2]
torch.manual_seed(42)
x = torch.empty(n, device="cuda")
x = {"u": x.uniform_, "n": x.normal_}.get(dist[0], lambda: x.random_(0, 1000))()
x = x.cpu().double()
y = torch.tensor([float(line) for line in sys.stdin]).double()
_, exponent = torch.frexp(y)
print(round(float(((x - y).abs() / 2.0 ** (exponent - 24)).max()), 2))' "$n" "$dist")
        allowed=0
        [ "$dist" != normal ] || allowed=2
        awk -v e="$got" -v m=$allowed 'BEGIN { exit !(e <= m) }'
        ok $? "$n x $dist on $sms x $threads: $got ulp apart, at most $allowed"
    done
done
done_testing

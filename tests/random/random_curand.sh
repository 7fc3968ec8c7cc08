#!/bin/bash
# random_curand.sh - fill cuda beside NVIDIA's own cuRAND
#
# The device code of cuRAND is built for the CPU and called thread by thread,
# as PyTorch's kernels do.  Whole tensors are compared, below and above the
# number of threads from which values depend on the device.
#
# Without this test, fill cuda could differ from the numbers that PyTorch makes
# on a GPU.
. "$top_srcdir/tests/tap.sh"
tools_find
bench=$tools/dtensor-bench
include=${CUDA_HOME:-/usr/local/cuda}/include
[ -r "$include/curand_kernel.h" ] || skip_all "no curand_kernel.h in $include"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset DTN_CLUSTER

# As on a GPU a product and a sum are rounded once.
"${CXX:-g++}" -O2 -march=native -ffp-contract=fast -isystem "$include" \
    -o "$tmp/curand" "$top_srcdir/tests/peers/curand.cpp" 2>"$tmp/log" ||
    skip_all "$include does not compile: $(head -n 1 "$tmp/log")"

# compare N SEED OFFSET SMS THREADS THEIRS DTYPE DIST: ours and theirs in two columns
compare() {
    "$tmp/curand" "$6" "$1" "$2" "$3" "$4" "$5" >"$tmp/theirs"
    "$bench" rng --print "$1" --seed "$2" --offset "$3" --fill cuda --sms "$4" \
        --threads "$5" --dtype "$7" --dist "$8" | grep -v '^#' >"$tmp/ours"
    paste "$tmp/ours" "$tmp/theirs"
}

# different ...: how many are not the same text
different() { compare "$@" | awk '$1 "" != $2 ""' | wc -l; }

# apart ...: by how much at most, absolute, and in units of an f32's last place
apart() {
    compare "$@" | awk '
        NF == 2 { d = $1 - $2; d = d < 0 ? -d : d; a = $1 < 0 ? -$1 : $1
            if (d > most) most = d
            for (e = 2 ^ -24; a >= 1; a /= 2) e *= 2
            for (; a < 0.5 && a > 0; a *= 2) e /= 2
            if (d / e > units) units = d / e; n++ }
        END { if (n == '"$1"') print most + 0, units + 0; else print 9, 9 }'
}

for grid in "1 256" "28 1536"; do
    read -r sms threads <<<"$grid"
    most=$((sms * (threads / 256) * 256))
    for n in 1 255 257 $((most - 1)) $((most + 1)) $((4 * most + 3)) $((9 * most + 5)); do
        seed=$((n * 7919 + 42)) offset=$((n % 1000 * 4))
        same=$(for kind in "u32 u32 bits" "f32 f32 uniform" "f64 f64 uniform" \
            "i32 i32 integers:0,1000" "i64 i64 integers:0,1000000000039"; do
            # shellcheck disable=SC2086 # three words
            different $n $seed $offset $sms $threads $kind
        done | paste -sd' ')
        is "$n elements on $sms x $threads threads: words, uniform values and integers are cuRAND's" \
            "$same" "0 0 0 0 0"
        read -r _ far < <(apart "$n" "$seed" "$offset" "$sms" "$threads" n32 f32 normal)
        ok "$(awk -v d="$far" 'BEGIN { print !(d <= 3) }')" \
            "and normals of f32, $far units of the last place apart, at most 3"
        read -r far _ < <(apart "$n" "$seed" "$offset" "$sms" "$threads" n64 f64 normal)
        ok "$(awk -v d="$far" 'BEGIN { print !(d <= 1e-14) }')" \
            "and of f64, $far apart, at most 1e-14"
    done
done
done_testing

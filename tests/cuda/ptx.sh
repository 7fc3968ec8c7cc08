#!/bin/bash
# ptx.sh - what the translator of PTX refuses, and what the image is built with
#
# Without this test, a build without -fmad=false, or with a rounding that is not
# to nearest, could pass every comparison on the CPU and give other bits on a
# GPU, where products and sums would be fused.
. "$top_srcdir/tests/tap.sh"
cd "$top_srcdir" || exit 1
python3 -c '' || { skip_all "no python3"; exit; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# kernel LINE...: a kernel of these statements, named $entry or k
kernel() {
    printf '.visible .entry %s(\n' "${entry:-k}"
    printf '.param .align 8 .b8 k_param_0[8]\n)\n{\n'
    printf '.reg .f32 %%f<9>;\n.reg .f64 %%d<9>;\n.reg .b32 %%r<9>;\n'
    printf '%s;\n' "$@"
    printf 'ret;\n\n}\n'
}

# refused WHY LINE: the translator ends, and says why
refused() {
    kernel "$2" >"$dir/k.ptx"
    python3 tests/cuda/ptx2c.py "$dir/k.ptx" >"$dir/k.c" 2>"$dir/said"
    is "\"$2\" is refused" "$? $(cat "$dir/said")" "1 ptx2c: $2: $1"
}

kernel 'add.rn.f32 %f1, %f2, %f3' 'shl.b32 %r1, %r2, 3' >"$dir/k.ptx"
is "a sum that is rounded to nearest is translated" \
    "$(python3 tests/cuda/ptx2c.py "$dir/k.ptx" | grep -c 'f32_nan')" 1

rounding="not rounded to nearest"
refused "$rounding" 'add.f32 %f1, %f2, %f3'
refused "$rounding" 'mul.f64 %d1, %d2, %d3'
refused "$rounding" 'add.rz.f32 %f1, %f2, %f3'
refused "$rounding" 'add.rn.ftz.f32 %f1, %f2, %f3'
refused "$rounding" 'div.full.f32 %f1, %f2, %f3'
refused "$rounding" 'sqrt.approx.f32 %f1, %f2'
refused "$rounding" 'cvt.rz.f32.f64 %f1, %d1'
refused "not known" 'sin.rn.f32 %f1, %f2'
refused "not known" 'atom.global.add.u32 %r1, [%r2], %r3'
refused "not known" 'bar.sync 0'
refused "its space or its order" 'ld.volatile.global.u32 %r1, [%r2]'

# What is approximate on a GPU has a place where it is allowed.
for op in sin cos lg2 ex2; do
    refused "approximate, in k" "$op.approx.f32 %f1, %f2"
    entry=dtn_fill_cuda_normal_f32 kernel "$op.approx.f32 %f1, %f2" >"$dir/k.ptx"
    is "$op.approx is translated in a kernel of fill = cuda" \
        "$(python3 tests/cuda/ptx2c.py "$dir/k.ptx" | grep -c "ptx_$op(")" 1
done
refused "approximate, in k" 'rcp.approx.ftz.f64 %d1, %d2'
entry=dtn_fill_cuda_normal_f64 kernel 'rcp.approx.ftz.f64 %d1, %d2' >"$dir/k.ptx"
is "so is rcp.approx.ftz of f64" \
    "$(python3 tests/cuda/ptx2c.py "$dir/k.ptx" | grep -c 'ptx_rcp(')" 1
entry=dtn_fill_cuda_normal_f32 refused "$rounding" 'sin.approx.ftz.f32 %f1, %f2'
entry=dtn_fill_cuda_normal_f32 refused "$rounding" 'sqrt.approx.f32 %f1, %f2'

# fused LINE...: what the translator says to code of -fmad=true
fused() {
    kernel "$@" >"$dir/k.ptx"
    python3 tests/cuda/ptx2c.py --fused "$dir/k.ptx" 2>&1 >"$dir/k.c" |
        grep '^ptx2c'
}
is "--fused: a product that nothing adds up is translated" \
    "$(fused 'mul.f32 %f1, %f2, %f3' 'add.f32 %f4, %f2, %f3')" ""
is "--fused: a product in a sum is refused" \
    "$(fused 'mul.f32 %f1, %f2, %f3' 'add.f32 %f4, %f2, %f1')" \
    "ptx2c: add.f32 %f4, %f2, %f1: ptxas may fuse it with a product"
is "--fused: so is its opposite" \
    "$(fused 'mul.f32 %f1, %f2, %f3' 'neg.f32 %f5, %f1' 'add.f32 %f4, %f2, %f5')" \
    "ptx2c: add.f32 %f4, %f2, %f5: ptxas may fuse it with a product"

nvcc=$(sed -n 's/^NVCC = //p' "$top_builddir/Makefile")
if [ -z "$nvcc" ]; then
    skip_test "a build without -fmad=false is refused" "built without nvcc"
    done_testing
    exit
fi
cat >"$dir/k.c" <<'END'
struct args { float *x; float y; };
extern "C" __global__ void k(const __grid_constant__ struct args args)
{
    args.x[threadIdx.x] = args.x[threadIdx.x] + args.y;
}
END
for fuse in false true; do
    "$nvcc" -x cu -fmad=$fuse -ptx -arch=compute_90 -o "$dir/k.ptx" "$dir/k.c"
    said=$(python3 tests/cuda/ptx2c.py "$dir/k.ptx" 2>&1 >/dev/null)
    is "-fmad=$fuse: is the sum refused?" "$(grep -c "$rounding" <<<"$said")" \
        "$([ $fuse = true ] && echo 1 || echo 0)"
done
done_testing

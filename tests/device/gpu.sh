#!/bin/bash
# gpu.sh - make check-gpu and make bench-gpu, where there is no GPU
#
# Both run on the driver in tests/standin, in place of a real one, with small
# arrays, and on a driver that is too old.
#
# Without this test, what is to run once somebody has a GPU for an hour would
# not start, print figures of the stand-in as those of a GPU, or call a machine
# without a GPU a failure.
. "$top_srcdir/tests/tap.sh"
driver=$top_builddir/tests/standin/.libs
[ -r "$driver/libcuda.so.1" ] ||
    skip_all "the driver of tests/standin is not built (shared libraries are needed)"
grep -q 'cuda kernels yes' "$top_builddir/config.h" ||
    skip_all "built without nvcc: no kernels"
[ -z "$SANITIZER_CFLAGS" ] ||
    skip_all "a sanitizer has memory elsewhere than on the heap"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# goal GOAL FOLDER: sets status, writes out
goal() {
    (
        unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
        export LD_LIBRARY_PATH=$2 DTN_TEST_ARRAY=1003 DTN_TEST_ELEMENTS=5000
        export DTN_TEST_SUITES=tests/device/suite_redops
        make -s -C "$top_builddir" "$1"
    ) >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
}

# lines PATTERN: how many
lines() { grep -cE -- "$1" "$dir/out"; }

goal check-gpu "$driver"
is "check-gpu runs, and all passes" "$status|$(grep -E '^not ok|Bail' "$dir/out")" "0|"
is "each suite ran its kernels on what stands for the GPU" \
    "$(lines '^# kernels run on GPU 0 .Stand-in 0. .the stand-in, not a GPU.')|$(lines 'PTX|SKIP')" \
    "6|0"
is "a suite touches the memory of the GPU between its calls" \
    "$(lines '^# tests/device/suite_redops')|$(($(lines '^ok .*EMISMATCH') > 0))" "1|1"
goal bench-gpu "$driver"
is "bench-gpu prints its table" "$status|$(lines '^not ok')" "0|0"
for row in write copy 'an operation and a wait' 'a kernel of a hundred' \
    'an event and its query' 'a word written, waited for' \
    'sum of two f32 .* of copy; expected 0.85' \
    'sum of two bf16 .* of copy; expected 0.85' \
    'pack every second row .* of copy; expected 0.85' \
    'uniform f32 .* of write; expected 0.85' \
    'normal f32 .* of write; expected 0.45' \
    'allreduce bf16, 2 processes' \
    'allreduce bf16, 2 threads .* of the copy .2 r S.; expected 0.60'; do
    is "a line: $row" "$(lines "^# $row")" 1
done
is "no figure is called one of a GPU" \
    "$(grep -E '[0-9] (us|GB/s)|reached|MISSED|GPU and' "$dir/out" |
        grep -vE 'of the stand-in, not of a GPU|^# (processes|threads): ')" ""
if command -v python3 >/dev/null; then
    is "fills on the GPU have the bits of the host" "$(lines ': GPU and host: bit for bit')" 5
else
    skip_test "fills on the GPU have the bits of the host" "no python3"
fi

for goal in check-gpu bench-gpu; do
    goal "$goal" "$top_builddir/tests/standin/ancient/.libs"
    is "$goal without a GPU: not measured, and why, and status 0" \
        "$status|$(lines '^not ok')|$(($(lines 'not measured: no GPU .CUDA: the driver can do CUDA 10.1') > 1))|$(lines '[0-9] (us|GB/s)')" \
        "0|0|1|0"
done
done_testing

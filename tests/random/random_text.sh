#!/bin/bash
# random_text.sh - seeds, offsets and distributions as users write them
#
# In dtensor-bench rng and in [seed] of a cluster file: what is accepted, and
# what is refused with which words.
#
# Without this test, a seed above 2^63 or a negative offset could be read as
# another number.
. "$top_srcdir/tests/tap.sh"
tools_find
bench=$tools/dtensor-bench conf=$tools/dtensor-conf
[ -x "$bench" ] || skip_all "dtensor-bench is not built"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset DTN_CLUSTER DTN_FAULT DTN_LAUNCH_NS

# run ARG...: exit code in $code, output in $tmp/out and $tmp/err
run() {
    timeout -k 5 60 "$bench" rng "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    code=$?
}

# refuses WORDS ARG...: exit 2, nothing printed, the words once
refuses() {
    local words=$1
    shift
    run --print 4 "$@"
    is "refuses: $* ($words)" "$code $(grep -cF -- "$words" "$tmp/err") $(wc -c <"$tmp/out")" \
        "2 1 0"
}

# values ARG...: of --print, on a line
values() {
    run --print 8 "$@"
    grep -v '^#' "$tmp/out" | paste -sd' '
}

# ------------------------------------------------------ numbers of a command ---
for seed in -1 18446744073709551616 0x10000000000000000 1.5 1e3 0x "" ten; do
    refuses "--seed \"$seed\": expected S, 0 to 2^64 - 1" --seed "$seed"
done
for offset in -4 9223372036854775808 1.5 ""; do
    refuses "--offset \"$offset\": expected O, a multiple of 4" --offset "$offset"
done
for offset in 1 2 3 9223372036854775807; do
    refuses "--offset $offset: expected a multiple of 4" --offset $offset
done
refuses "offset 9223372036854775804 of the generator has no room for 4 more" \
    --offset 9223372036854775804
for dist in normal:1 normal:1,2,3 normal: "normal," gauss uniform:0,x \
    integers:0.5,3 integers:0,99999999999999999999 integers:0,1e300 integers:0,nan; do
    refuses "--dist \"$dist\": expected D" --dtype i64 --dist "$dist"
done
refuses "uniform: from 1 to 1 is empty" --dist uniform:1,1
refuses "uniform: from 2 to 1 is empty" --dist uniform:2,1
refuses "uniform: from 0 to inf cannot be represented in f32" --dist uniform:0,inf
refuses "bernoulli: probability 1.5; expected 0 to 1" --dist bernoulli:1.5
refuses "bernoulli: probability nan; expected 0 to 1" --dist bernoulli:nan
refuses "normal: mean 0 and std -1" --dist normal:0,-1
refuses "exponential: rate 0; expected more than 0" --dist exponential:0
refuses "integers: from 5 to 5 is empty" --dist integers:5,5 --dtype i32
refuses "no placement may be Partial" --placements P
refuses "--rank 4: the mesh has 4 ranks" --mesh 2x2 --rank 4
refuses "--rank \"-1\"" --rank -1
refuses '--tracker "globl": expected T, global, offset, megatron or local' --tracker globl
refuses '--fill "gpu": expected F, sequential or cuda' --fill gpu
refuses '--threads "255"' --threads 255
refuses '--sms "0"' --sms 0

is "both ends of the seeds, decimal or not" "$(values --seed 18446744073709551615)" \
    "$(values --seed 0xffffffffffffffff)"
is "no number is octal" \
    "$(values --seed 010 --dist integers:010,020 --dtype i64)" \
    "$(values --seed 10 --dist integers:10,20 --dtype i64)"
# More than a buffer of names has; the next name would be behind it.
refuses '--mesh "aaa' --mesh "$(printf 'a%.0s' {1..300})=1,b=1"
is "the last offset that has room" \
    "$(run --print 4 --offset 9223372036854775800
        echo "$code $(grep -c ', then 9223372036854775804$' "$tmp/out")")" "0 1"
is "whole numbers may be written as 1e6" "$(values --dist integers:0,1e6 --dtype i64)" \
    "$(values --dist integers:0,1000000 --dtype i64)"
is "an offset of 4 is four numbers further on" "$(values --offset 4 | cut -d' ' -f1-4)" \
    "$(values | cut -d' ' -f5-8)"

# What PyTorch's users have published of CUDA devices, to four digits.
rounded() { values --fill cuda "$@" | xargs printf '%.4f '; }
is "seed 0 on a GPU: torch.rand(8)" "$(rounded)" \
    "0.3990 0.5167 0.0249 0.9401 0.9459 0.7967 0.4150 0.8203 "
is "and the four after them" "$(rounded --offset 4 --shape 4)" \
    "0.9722 0.7910 0.4690 0.3300 "
is "torch.randn(8)" "$(rounded --dist normal)" \
    "-0.9247 -0.4253 -2.6438 0.1452 -0.1209 -0.5797 -0.6229 -0.3284 "
is "and of seed 42" "$(rounded --dist normal --seed 42)" \
    "0.1940 2.1614 -0.1721 0.8491 -1.9244 0.6530 -0.6494 -0.8175 "

# ------------------------------------------------------------- cluster files ---
# seeds LINE...: what dtensor-conf says of a file with these lines in [seed]
seeds() {
    cat >"$tmp/x.ini" <<'INI'
[cluster]
version = 1
[nodes "n"]
hosts = localhost
ranks = 4
[mesh "grid"]
dims = pp=2, tp=2
[seed]
INI
    printf '%s\n' "$@" >>"$tmp/x.ini"
    "$conf" --show seeds "$tmp/x.ini" >"$tmp/out" 2>&1
    echo "$? $(sed "s|^$tmp/||" "$tmp/out" | tr -s ' ' | sed 's|^ ||' | paste -sd'|')"
}
whole='is not a whole number; expected 0 to 18446744073709551615, or 0x and hexadecimal digits'
for base in -1 18446744073709551616 0x10000000000000000 1.5 0x; do
    is "base = $base" "$(seeds "base = $base")" "2 x.ini:9: error: base: \"$base\" $whole"
    is "stride = $base" "$(seeds "base = 1" "stride = $base")" \
        "2 x.ini:10: error: stride: \"$base\" $whole"
done
is "distinct twice" "$(seeds "base = 1" "mesh = grid" "distinct = pp, pp")" \
    '2 x.ini:11: error: distinct: dim "pp" is listed twice'
is "compat = torch" "$(seeds "base = 1" "compat = torch")" \
    '2 x.ini:10: error: compat: "torch"; torch is pytorch here'
is "fill = gpu" "$(seeds "base = 1" "fill = gpu")" \
    '2 x.ini:10: error: fill: "gpu"; expected sequential or cuda'
is "--show seeds: all the same" "$(seeds "base = 0xffffffffffffffff")" \
    "0 rank seed|0 18446744073709551615|1 18446744073709551615|2 18446744073709551615|3 18446744073709551615"
is "a seed for each stage" "$(seeds "base = 123" "mesh = grid" "distinct = pp")" \
    "0 rank seed|0 123|1 123|2 124|3 124"
is "the first dim listed is the fastest" \
    "$(seeds "base = 7" "stride = 100" "mesh = grid" "distinct = pp, tp")" \
    "0 rank seed|0 7|1 207|2 107|3 307"
is "beyond 2^64 they go on from 0" \
    "$(seeds "base = 18446744073709551614" "stride = 3" "mesh = grid" "distinct = tp, pp")" \
    "0 rank seed|0 18446744073709551614|1 1|2 4|3 7"
is "distinct = none" "$(seeds "base = 7" "mesh = grid" "distinct = none")" \
    "0 rank seed|0 7|1 7|2 7|3 7"
done_testing

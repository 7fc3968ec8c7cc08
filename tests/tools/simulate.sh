#!/bin/bash
# simulate.sh - dtensor-plan --simulate: table, critical path, trace, refusals
#
# Without this test, the tool could show predictions as if they were simulated,
# write a trace that no viewer reads, or take options that act on nothing.
. "$top_srcdir/tests/tap.sh"
tools_find
plan=$tools/dtensor-plan
[ -x "$plan" ] || skip_all "dtensor-plan is not built"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# run ARGUMENT...: sets err and status; the output is in a file
run() {
    timeout -k 5 60 "$plan" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
    err=$(<"$dir/err")
}

# refuses WORDS ARGUMENT...: exit 2, one line with the words on stderr
refuses() {
    local words=$1
    shift
    run "$@"
    is "refuses: $* ($words)" \
        "$status $(grep -cF -- "$words" "$dir/err") $(wc -c <"$dir/out")" "2 1 0"
}

case_=(allreduce --simulate --size 1M --mesh 32 --per-host 8)
run "${case_[@]}" --topology fat-tree:2/1x2
is "every algorithm that can run it is simulated" \
    "$status|$err|$(grep -cE '^  [a-z-]+ +[0-9.]+ [um]s +[0-9.]+ [um]s +[0-9.]+ +[0-9]+' "$dir/out")" \
    "0||$("$plan" allreduce --size 1M --mesh 32 --per-host 8 | grep -cE '^[a-z-]+ +[0-9.]+ [um]s')"
grep -q '^allreduce of 1.00 MiB over 32 ranks, 8 on each host, fat-tree:2/1x2$' "$dir/out"
ok $? "the first line says what is simulated"
grep -qE '^fastest [a-z-]+; taken [a-z-]+, [0-9.]+ times as long$' "$dir/out"
ok $? "the last one which is the fastest, and which is taken"

run "${case_[@]}" --algorithm ring --trace "$dir/trace"
is "one algorithm: critical path and links" \
    "$status|$(grep -c '^critical path:$' "$dir/out")|$(grep -cE '^  (memory|out|in):[0-9]+  [0-9.]+ %$' "$dir/out")" "0|1|3"
if command -v python3 >/dev/null; then
    python3 - "$dir/trace" <<'CHECK'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
spans = [e for e in events if e["ph"] == "X"]
assert {e["pid"] for e in spans} == set(range(32))
assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in spans)
assert sum(e["args"]["bytes"] for e in spans if e["name"] == "put") == 62 << 20
CHECK
    ok $? "the trace is JSON with the work and the messages of all 32 ranks"
fi

plan_=(--simulate --mesh 32 --per-host 8 --shape 256x256 --from "S(0)" --to "S(1)")
run "${plan_[@]}" --topology fat-tree:2/1x2
is "every route of a redistribute is simulated" \
    "$status|$err|$(head -n 1 "$dir/out")|$(grep -cE '^  (direct|merged|min-cost|greedy) +[0-9.]+ [um]s ' "$dir/out")|$(grep -c '^fastest .*; taken direct' "$dir/out")" \
    "0||S(0) to S(1) of 256x256 over 32 ranks, 8 on each host, fat-tree:2/1x2|4|1"
run "${plan_[@]}" --route direct --trace "$dir/trace"
is "one route: critical path" \
    "$status|$(grep -c '^critical path:$' "$dir/out")|$(grep -c '"name":"put"' "$dir/trace")" \
    "0|1|$((32 * 24))"
if command -v python3 >/dev/null && "$plan" "${case_[@]}" --json >"$dir/ways" 2>/dev/null; then
    "$plan" "${plan_[@]}" --route direct --json >"$dir/one"
    python3 - "$dir/ways" "$dir/one" <<'CHECK'
import json, sys
ways, one = (json.load(open(f)) for f in sys.argv[1:])
assert ways["collective"] == "allreduce" and ways["bytes"] == 1 << 20
assert [w["name"] for w in ways["ways"] if w["taken"]] and "links" not in ways["ways"][0]
assert one["from"] == "S(0)" and one["ranks"] == 32 and len(one["ways"]) == 1
path = one["ways"][0]["critical_path"]
assert abs(path[-1]["end_us"] - one["ways"][0]["simulated_us"]) < 1e-6
assert one["ways"][0]["links"][0]["busy_us"] > 0
CHECK
    ok $? "--json has the table, and of one way its path and links"
fi

# ring_ms WORD...: the time of the ring beside them
ring_ms() {
    run "${case_[@]}" --algorithm ring --beside "$*"
    sed -nE 's/^  call 0 done at ([0-9.]+) ms$/\1/p' "$dir/out"
}
alone=$("$plan" "${case_[@]}" --algorithm ring | sed -nE 's/^([0-9.]+) ms, .*/\1/p')
beside=$(ring_ms "allreduce:1M:ring")
is "a ring beside another one takes longer than alone, and both end" \
    "$status|$(awk -v a="$alone" -v b="$beside" 'BEGIN { print (a > 0 && b > 1.4 * a) }')|$(grep -c '^  call [01] done at' "$dir/out")" "0|1|2"
beside=$(ring_ms "allreduce:1M:ring@5000000 S(0)>R:8x8@6000000 barrier@7000000")
is "what begins seconds later does not disturb" \
    "$beside|$(grep -c '^  call [0-3] done at' "$dir/out")|$(head -n 2 "$dir/out" | tail -n 1)" \
    "$alone|4|beside allreduce:1M:ring@5000000 S(0)>R:8x8@6000000 barrier@7000000"
run "${plan_[@]}" --beside "S(1)>S(0):256x256"
is "the routes of a redistribute beside another one" \
    "$status|$(grep -cE '^  (direct|merged|min-cost|greedy) +[0-9.]+ [um]s ' "$dir/out")" "0|4"
refuses "expected COLLECTIVE:SIZE" "${case_[@]}" --beside "turtle:1M"
refuses "expected COLLECTIVE:SIZE" "${case_[@]}" --beside "allreduce"
refuses "expected FROM>TO:SHAPE" "${case_[@]}" --beside "S(0)>R"
refuses "expected a number of us" "${case_[@]}" --beside "allreduce:1M@soon"
refuses "expected a size" "${case_[@]}" --beside "allreduce:much"
refuses "more than 16" "${case_[@]}" --beside "$(printf 'barrier %.0s' {1..17})"
refuses 'no algorithm "turtle"' "${case_[@]}" --beside "allreduce:1M:turtle"
refuses "go with --simulate" allreduce --size 1M --mesh 32 --beside barrier

refuses "holds 2 hosts, the cluster has 4" "${case_[@]}" --topology fat-tree:2/1x1
refuses "a bandwidth of 0" "${case_[@]}" --topology fat-tree:2/1x2,bandwidth=0
printf '10 5\n' >"$dir/short"
refuses "the trace was cut off" "${case_[@]}" --noise "file:$dir/short"
printf '10 5\nend 100\n' >"$dir/short"
refuses "record a longer trace" "${case_[@]}" --noise "file:$dir/short"
refuses "no such kind" "${case_[@]}" --topology torus:4x4
refuses "ranks from 0 to 31" "${case_[@]}" --slow 32:2
refuses "no such kind of link" "${case_[@]}" --failed up1:0
refuses "2147483648" allreduce --simulate --size 1M --mesh 2147483648
refuses "go with --simulate" allreduce --size 1M --mesh 32 --topology flat
refuses "--simulate goes with a collective" --simulate --mesh 4 --draw
refuses "of which --algorithm" "${case_[@]}" --trace "$dir/x"
refuses "of which --route" "${plan_[@]}" --trace "$dir/x"
refuses "--svg do not go together" "${case_[@]}" --svg
refuses "cannot write" "${case_[@]}" --algorithm ring --trace "$dir/no/where"
done_testing

#!/bin/bash
# plan.sh - dtensor-plan as its users see it: words, JSON, pictures, exit codes
#
# Redistributes and collectives are explained and the output is compared.
#
# Without this test, the tool could explain another plan than the library runs.
. "$top_srcdir/tests/tap.sh"
tools_find
plan=$tools/dtensor-plan
[ -x "$plan" ] || skip_all "dtensor-plan is not built"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# run ARGUMENT...: sets out, err and status
run() {
    timeout -k 5 60 "$plan" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
    out=$(<"$dir/out") err=$(<"$dir/err")
}

# refuses WORDS ARGUMENT...: exit 2, one line with the words on stderr
refuses() {
    local words=$1
    shift
    run "$@"
    is "refuses: $* ($words)" \
        "$status $(grep -cF -- "$words" "$dir/err") $(grep -vc "^Try " "$dir/err") $(wc -c <"$dir/out")" \
        "2 1 1 0"
}

case_=(--mesh 2x4 --from 'S(0),R' --to 'R,S(1)' --shape 8192x8192)
run "${case_[@]}" --dtype f32
is "a plan is one plain sentence first" "$status|$err|$(head -1 "$dir/out")" \
    "0||An all-gather moves 256 MiB between 8 ranks in about 4.02 ms: route direct; merged would take 4.69 ms."
for words in "1     all-gather        256 MiB      8    4.02 ms  R,S(1)" "direct        1    4.02 ms  taken" \
    "greedy        2    4.69 ms" "moves 256 MiB, the least that is possible" \
    "each rank sends 32.0 MiB" "from each rank (rows) to each rank"; do
    grep -qF -- "$words" "$dir/out"
    ok $? "it says: $words"
done

# sentence WORDS ARGUMENT...: the first line has the words
sentence() {
    local words=$1
    shift
    run "$@"
    is "the first line says: $words" "$status|$(head -1 "$dir/out" | grep -cF -- "$words")" "0|1"
}
sentence "in about 4.69 ms: route greedy, which was asked for; direct would take 4.02 ms." "${case_[@]}" --route greedy
sentence "Nothing moves between ranks: nothing changes." --mesh 4 --from R --to R --shape 8
sentence "each holds what it needs" --mesh 4 --from R --to 'S(0)' --shape 8
sentence "no other is faster" --mesh 4 --from 'P(max)' --to 'P(min)' --shape 4
is "a bound that is not known is not said" "$(grep '^moves' "$dir/out")" "moves 192 B"
run "${case_[@]}" --route greedy --per-host 4
is "a route can be asked for" "$status|$(grep -cE '^[12]  .* (S\(0\),S\(1\)|R,S\(1\))$' "$dir/out")|$(grep -c 'taken$' "$dir/out")" \
    "0|2|1"
run --mesh 2x2 --to-mesh 2@3 --from 'S(0),R' --to 'S(1)' --shape 64x64 --per-host 5
is "another mesh can be the destination" \
    "$status|$err|$(grep '^to ' "$dir/out")|$(grep -o '4.00 KiB' "$dir/out" | wc -l)|$(tail -n 5 "$dir/out" | wc -w)" \
    "0||to     f32[64,64]  S(1)  on mesh(2)|3|33"
many=(--from 'S(0),R' --to 'R,S(1)' --shape 8192x8192)
run --mesh 3x3 "${many[@]}"
is "the matrix of more than 8 ranks is not shown" "$status|$(grep -c 'from each rank' "$dir/out")" "0|0"
run --mesh 3x3 "${many[@]}" --matrix
is "unless it is asked for" "$status|$(sed -n '/^from each/,$p' "$dir/out" | wc -l)" "0|11"
run --mesh 3x3 --from 'S(0),R' --to 'S(1),R' --shape 10x7
is "amounts that differ: least, most, and who" "$(grep -c '^a rank sends .* to .*, rank [0-9] most$' "$dir/out")" 1
refuses "65 ranks (at most 64)" --mesh 65 --from R --to R --shape 4 --matrix
run --mesh 16x8x8 --per-host 8 --from 'S(0),S(0),S(0)' --to 'S(1),S(1),S(1)' --shape 1024x1024
is "1,024 ranks: still a page" "$status|$(($(wc -l <"$dir/out") < 25))" "0|1"

run --mesh 2x2 --from 'S(0),S(0)' --shape 5x3 --layout
is "--layout: a chunk of a chunk" "$status|$(awk 'NR > 2 { print $1, $2, $3, $4, $5 }' "$dir/out")" \
"0|0 0,0 2x3 0,0 0-1
1 0,1 1x3 2,0 2
2 1,0 1x3 3,0 3
3 1,1 1x3 4,0 4"

run --mesh 4 --from 'SS(0,2)' --to 'C(0,1)' --shape 9x1 --layout
is "--layout: strided and block-cyclic indices" \
    "$status|$(sed -n '/^SS/,$p' "$dir/out" | awk 'NF >= 6 && $1 != "rank" { print $5 }' | paste -sd' ')" \
    "0|0-1,5 2-3,6 4,7 8 0,4,8 1,5 2,6 3,7"

if command -v python3 >/dev/null && run "${case_[@]}" --json --layout && [ $status -eq 0 ]; then
    is "--json is JSON, and its sums agree" "$(python3 - "$dir/out" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
p = j["plan"]
assert j["schema"] == 1 and j["mesh"] == [2, 4] and j["shape"] == [8192, 8192]
assert p["bytes"] == sum(map(sum, p["matrix"])) == sum(r["sends"] for r in p["ranks"])
assert p["bytes"] == sum(s["bytes"] for s in p["steps"]) >= p["bound"]
assert [r["route"] for r in p["alternatives"]] == ["direct", "merged", "min-cost", "greedy"]
assert len(j["layout_from"]) == 8 and j["layout_to"][5]["coordinate"] == [1, 1]
assert j["layout_to"][5]["runs"] == [[[0, 8192]], [[2048, 2048]]]
print("good")
PY
    )" good
else
    skip_test "--json is JSON" "no python3, or a build without libjansson"
fi

cp "$top_srcdir/conf/two-nodes.ini" "$dir" && chmod 600 "$dir/two-nodes.ini"
run --cluster "$dir/two-nodes.ini" --mesh world --from 'P,R' --to 'R,S(0)' --shape 64x64
is "meshes and hosts of a cluster file" "$status|$err|$(sed -n 3p "$dir/out")" \
    "0||from   f32[64,64]  P(sum),R  on world(pp=2,tp=4)"

sentence "An allreduce of 1.00 MiB over 16 ranks takes about 1.61 ms: algorithm rail-halving; hierarchical would take 1.64 ms, with 38.5 us more of moving." \
    allreduce --size 1M --mesh 16 --per-host 4
is "a collective: every algorithm, and one is taken" \
    "$status|$err|$(grep -cE '^(ring|tree|twotree|doubling|halving|put|hierarchical) ' "$dir/out")|$(grep -c ' taken$' "$dir/out")" \
    "0||7|1"
sentence "A barrier over 2 ranks takes about" barrier --mesh 2
sentence "matmul takes its inputs as they lie: nothing has to be moved." \
    op matmul 'S(0),R' 'R,S(1)' --mesh 2x4 --shape 512x64,64x256
sentence "matmul first redistributes 1 of its 2 inputs, in about" \
    op matmul 'S(0)' 'S(0)' --mesh 4 --shape 512x64,64x256
for inter in 1 100000; do
    cat >"$dir/tuned.ini" <<INI
[cluster]
version = 1
[nodes "n"]
hosts = n[1-16]
ranks = 1
[tuning]
inter_latency_ns = $inter
broadcast = 0-inf:ring
INI
    chmod 600 "$dir/tuned.ini"
    run allreduce --size 256K --mesh 16 --cluster "$dir/tuned.ini"
    awk '/ taken$/ { print $1 }' "$dir/out"
done >"$dir/taken"
is "[tuning] changes what is taken" "$(sort -u "$dir/taken" | wc -l)" 2
run broadcast --size 64 --mesh 16 --cluster "$dir/tuned.ini"
is "or says it" "$(head -1 "$dir/out" | grep -o 'algorithm ring, which \[tuning\] names')" "algorithm ring, which [tuning] names"
if run allgather --size 64K --mesh 16 --json && [ $status -eq 0 ] && command -v python3 >/dev/null; then
    is "a collective as JSON" "$(python3 - "$dir/out" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
w = j["ways"]
assert j["collective"] == "allgather" and j["bytes"] == 65536 and j["ranks"] == 16
assert [x["us"] for x in w] == sorted(x["us"] for x in w) and sum(x["taken"] for x in w) == 1
assert all(abs(x["us"] - x["waiting"] - x["messages"] - x["moving"] - x["folding"]) < 1e-6 * x["us"] for x in w)
print("good")
PY
    )" good
else
    skip_test "a collective as JSON" "no python3, or a build without libjansson"
fi
refuses "did you mean \"allreduce\"?" allredoce --mesh 2 --size 4
refuses "--size is missing" allreduce --mesh 2
refuses '--size "1X"' allreduce --mesh 2 --size 1X
refuses "expected a multiple of 8 bytes" allgather --mesh 2 --size 12
refuses "--from goes with a tensor or module, not with a collective" allreduce --mesh 2 --size 4 --from R
refuses "--size goes with a collective, not with a tensor" --mesh 2 --size 4
# An option that would change nothing is refused.
refuses "--route goes with a tensor" allreduce --mesh 2 --size 4 --route auto
refuses "--max-scratch goes with a tensor" op relu R --mesh 4 --shape 8 --max-scratch 1M
refuses "--matrix goes with a tensor" allreduce --mesh 2 --size 4 --matrix
refuses "--names goes with a tensor" allreduce --mesh 2 --size 4 --names dp
refuses "--algorithm goes with a collective, not with op" op relu R --mesh 4 --shape 8 --algorithm ring
refuses "--route needs --to" --mesh 2 --from R --shape 4 --layout --route direct
refuses "--matrix needs --to" --mesh 2 --from R --shape 4 --layout --matrix
refuses "--max-scratch needs --to" --mesh 2 --draw --max-scratch 1M
refuses "--layout and --draw do not go together" --mesh 2 --from R --to R --shape 4 --layout --draw
refuses "--matrix and --svg do not go together" --mesh 2 --from R --to R --shape 4 --matrix --svg
refuses '--names: mesh "world" of the file has its own' --mesh world --cluster "$top_srcdir/conf/laptop.ini" --from R,R --to R,R --shape 4 --names a,b
refuses "--layout=3: this option takes no value" --mesh 2 --layout=3

refuses "--mesh is missing" --from R --to R --shape 4
refuses "--to is missing" --mesh 2 --from R --shape 4
refuses '--mesh "2x"' --mesh 2x --from R --to R --shape 4
refuses '--mesh "dp"' --mesh dp --from R --to R --shape 4
refuses '--shape "4x-1"' --mesh 2 --from R --to R --shape 4x-1
refuses "tensor has 1 dimensions" --mesh 2 --from 'S(1)' --to R --shape 4
refuses "did you mean" --mesh 2 --from Shard0 --to R --shape 4
refuses "f31" --mesh 2 --from R --to R --shape 4 --dtype f31
refuses '--route "fast"' --mesh 2 --from R --to R --shape 4 --route fast
refuses "no greedy route" --mesh 2 --from 'P(max)' --to 'P(min)' --shape 4 --route greedy
refuses "--per-host is what" --mesh 2 --from R --to R --shape 4 --per-host 1 --cluster x
refuses "no such option" --mesh 2 --nope
refuses "do not go together" --mesh 2 --from R --to R --shape 4 --json --svg
refuses "do not go together" --mesh 2 --draw --svg
refuses "goes with a collective" --mesh 2 --draw --algorithm ring
run allreduce --winners 16,64 --per-host 8
is "the fastest algorithms are a table of bytes and ranks" \
    "$status|$err|$(sed -n 2p "$dir/out" | tr -s ' ')|$(grep -cE '^ +[0-9.]+ [KMi]*B( +[a-z-]+ +[0-9]+\.[0-9]{2}){2}$' "$dir/out")" \
    "0|| ranks 16 64|8"
"$plan" allreduce --size 256K --mesh 64 --per-host 8 >"$dir/ways"
is "a cell is the first of all ways" \
    "$(grep ' 256 KiB ' "$dir/out" | awk '{ print $5 }')" \
    "$(sed -n 4p "$dir/ways" | awk '{ print $1 }')"
run all_to_all --winners 64
is "blocks smaller than an element have no algorithm" \
    "$status|$(sed -n 3p "$dir/out" | tr -s ' ')" "0| 64 B -"
run barrier --winners 8
is "a barrier has one row" "$status|$(wc -l <"$dir/out")" "0|3"
refuses "expected up to 8 numbers of ranks" allreduce --winners 16,
refuses "expected up to 8 numbers of ranks" allreduce --winners 16x4
refuses "expected up to 8 numbers of ranks" allreduce --winners 0
refuses '--size 0: expected a multiple of 4 bytes, an element, and not 0' allreduce --simulate --size 0 --mesh 8
refuses '--to-mesh needs --to' --shape 8x8 --from 'S(0)' --layout --mesh 4 --to-mesh 2
refuses '--to-mesh "4@": expected up to 8 sizes' --shape 8x8 --from 'S(0)' --to R --mesh 4 --to-mesh 4@
refuses '--beside "barrier@nan": expected a number of us after @' allreduce --simulate --size 1M --mesh 8 --beside barrier@nan
refuses '--beside "": expected calls' allreduce --simulate --size 1M --mesh 8 --beside ""
refuses '"": error: cannot open' allreduce --size 1M --mesh 8 --cluster ""
refuses "goes with a collective" --winners 16
refuses "not with a table of winners" allreduce --winners 16 --mesh 4
refuses "needs --draw, --svg or --simulate, which show it" allreduce --size 4 --mesh 2 --algorithm ring
refuses 'no algorithm "rign"' allreduce --size 4 --mesh 2 --algorithm rign --draw
refuses "at most 64 are drawn" allreduce --size 4 --mesh 65 --draw
run --help
is "--help fits 80 columns" "$status|$(awk 'length > 80' "$dir/out")" "0|"
is "the manual names every option of --help" "$(
    grep -oE -- '--[a-z-]+' "$dir/out" | sort -u | while read -r name; do
        grep -qF -- "${name#--}" <(sed 's,[\\],,g' "$top_srcdir/man/dtensor-plan.1") || echo "$name"
    done)" ""
run --version
is "--version" "$status|${out%% *}" "0|dtensor-plan"
# ------------------------------------------------------------- operators ---
run op matmul 'S(0),R' 'R,S(1)' --mesh 2x4 --shape 512x64,64x256
is "an operator is explained" \
    "$status|$err|$(grep -c '^takes S(0),R; R,S(1) -> S(0),S(1), 0.00 us' "$dir/out")|$(grep -c 'output 0 is 512x256 f32' "$dir/out")" \
    "0||1|1"
run op matmul 'S(0)' 'S(1)' --mesh 4 --shape 16x8,8x12 --dtype f64
is "its rows, combinations and what is moved" \
    "$status|$(grep -c '^  S(1), S(0) -> P(sum)$' "$dir/out")|$(grep -c 'never' "$dir/out")|$(grep -c 'is redistributed' "$dir/out")" \
    "0|1|4|1"
run op sum 'S(0)' --mesh 4 --shape 16x8 --args dim=0,keep=1
is "arguments are read" "$status|$(grep -c '^takes S(0) -> P(sum)' "$dir/out")|$(grep -c 'is 1x8' "$dir/out")" "0|1|1"
if run op matmul 'S(0),R' 'R,S(0)' --mesh 2x4 --shape 16x8,8x12 --json && [ $status -eq 0 ] && command -v python3 >/dev/null; then
    is "an operator as JSON" "$(python3 - "$dir/out" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
a, b = j["inputs"]
assert j["op"] == "matmul" and j["mesh"] == [2, 4] and j["reduces"] == []
assert a["shape"] == [16, 8] and a["placements"] == "S(0),R" and a["wanted"] in ("S(0),R", "S(0),S(1)")
assert b["dtype"] == "f32" and j["outputs"][0]["shape"] == [16, 12] and j["predicted_us"] >= 0 and j["scratch"] >= 0
print("good")
PY
    )" good
    run op softmax 'S(1)' --mesh 4 --shape 4096x32000 --args dim=1 --json
    is "and what it reduces itself" "$(tr -d ' \n' <"$dir/out" | grep -o '"reduces":\[0\]')" '"reduces":[0]'
else
    skip_test "an operator as JSON" "no python3, or a build without libjansson"
    skip_test "and what it reduces itself" "no python3, or a build without libjansson"
fi
run op softmax 'S(1)' --mesh 4 --shape 4096x32000 --args dim=1
is "an operator that reduces itself" "$(grep -c '^  S(1) -> S(1), allreduces max, sum$' "$dir/out")|$(grep -c '^takes S(1) -> S(1)' "$dir/out")" "1|1"
# ------------------------------------------------------- memory of GPUs ---
# What the driver of tests/standin says, and a machine without one.
for between in rc tcp; do
    printf '%s\n' '[cluster]' 'version = 1' '[nodes "all"]' 'hosts = n[1-2]' \
        'ranks = 2' '[transport]' "inter_node = $between" '[mesh "world"]' \
        'dims = x=4' 'memory = cuda' >"$dir/$between.ini"
    chmod 600 "$dir/$between.ini"
done
# json_words: the same of a plan as JSON
json_words() {
    python3 -c 'import json, sys; print("\n".join(json.load(open(sys.argv[1]))["gpu_memory"]))' "$dir/out"
}
gpu_words() { sed -n 's/^memory of GPUs: //p' "$dir/out"; }
inside="its memory to ranks of this host, over shm"
tcp="its memory to other hosts, over tcp: staged in host memory, since tcp reaches \
host memory only (see [transport])"
ways=(allreduce --mesh world --size 1M --cluster)
moves=(--mesh world --from 'S(0)' --to R --shape 64 --cluster)

if [ -r "$top_builddir/tests/standin/.libs/libcuda.so.1" ]; then
    export LD_LIBRARY_PATH=$top_builddir/tests/standin/.libs:$top_builddir/.libs
    run "${ways[@]}" "$dir/tcp.ini"
    is "a collective on GPUs: its path, and why not the better one" \
        "$status|$err|$(gpu_words | sed 1d)" "0||$inside: in place, mapped by them; $tcp"
    words=$(gpu_words)
    run "${moves[@]}" "$dir/tcp.ini"
    is "a redistribute has the same words" "$status|$(gpu_words)" "0|$words"
    if command -v python3 >/dev/null && run "${moves[@]}" "$dir/tcp.ini" --json && [ $status -eq 0 ]; then
        is "and so has its JSON" "$(json_words)" "$words"
        run "${ways[@]}" "$dir/tcp.ini" --json
        is "and the JSON of a collective" "$status|$(json_words)" "0|$words"
        run allreduce --mesh 4 --size 1M --json
        is "which is empty for host memory" "$status|$(json_words)" "0|"
    else
        skip_test "paths of GPU memory as JSON" "no python3, or a build without libjansson"
    fi
    DTN_STANDIN_ATTRIBUTES=103=0 run "${ways[@]}" "$dir/rc.ini"
    is "nothing is shared, no card" "$status|$(gpu_words | sed 1d)" "0|$inside: \
staged in host memory, since its driver does not share memory between processes; \
its memory to other hosts, over rc: staged in host memory, since this rank has no \
RDMA card"
else
    skip_test "paths of GPU memory" "the driver of tests/standin is not built"
fi
export LD_LIBRARY_PATH=$top_builddir/tests/standin/ancient/.libs:$top_builddir/.libs
run "${ways[@]}" "$dir/tcp.ini"
is "a driver too old is said, and what the wires can do" \
    "$status|$(gpu_words | grep -c "do CUDA 10.1; expected 11.3")|$(gpu_words | sed 1d)" \
    "0|1|$inside: in place where they can map it; $tcp"
run allreduce --mesh 4 --size 1M
is "host memory takes no such line" "$status|$(gpu_words)" "0|"
export LD_LIBRARY_PATH=$top_builddir/.libs
refuses "did you mean" op matmull R R --mesh 4 --shape 8x8
refuses "has 3 entries, but there are 2 inputs" \
    op matmul R R --mesh 4 --shape 8x8,8x8,9x9
refuses "has 2 entries" op relu R --mesh 4 --shape 8 --dtype f32,f64
refuses "has 9 elements" op matmul R R --mesh 4 --shape 8x8,9x8
refuses "expected the name" op matmul --mesh 4 --shape 8x8
refuses "expected the name" op --mesh 4 --shape 8x8
refuses "--shape is missing" op relu R --mesh 4
refuses "--mesh is missing" op relu R --shape 8
refuses "--layout goes with a tensor, not with op" op relu R --mesh 4 --shape 8 --layout
refuses "--args goes with op" --mesh 4 --shape 8 --from R --to R --args dim=0
refuses "no argument" op sum R --mesh 4 --shape 8 --args dims=0
refuses "--shape" op relu R --mesh 4 --shape 8x
refuses "placements" op relu R,R --mesh 4 --shape 8

# ---------------------------------------------------------------- modules ---
cat >"$dir/model.ini" <<'INI'
[cluster]
version = 1
[nodes "a"]
hosts = localhost
ranks = 4
[mesh "world"]
dims = dp=2, tp=2
[mesh "flat"]
dims = all=4
[plan "mlp"]
mesh = world
dim = tp
up = colwise
down = rowwise
[plan "deep"]
mesh = flat
tok = rowwise
layers.*.up = colwise
layers.?.down = rowwise output=S(1)
layers.1 = prepare input=R
. = prepare output=R
[plan "layer"]
mesh = flat
attn.[qkv] = colwise
attn.out = rowwise
mlp.up = colwise
mlp.down = rowwise
[plan "free"]
up = colwise
[plan "five"]
mesh = flat
up = sequence dim=5
[plan "typo"]
mesh = flat
dwn = colwise
[plan "two"]
mesh = flat
u* = colwise
*p = rowwise
INI
chmod 600 "$dir/model.ini"
mlp=(up=linear:1024x4096 act=gelu down=linear:4096x1024)
file=(--cluster "$dir/model.ini" --shape 8x128x1024)
model() { run module "$@" "${file[@]}"; }

model mlp "${mlp[@]}" --from 'S(0)'
is "a plan of the file, module by module: each move, and totals" \
    "$status|$err|$(sed -E 's/[0-9.]+ us/T/' "$dir/out")" \
"0||plan mlp on mesh(tp=2), input f32[8, 128, 1024](S(0))
.: sequential  gives f32[8, 128, 1024](R)
up: linear  weight f32[4096, 1024](S(0))  bias f32[4096](S(0))  gives f32[8, 128, 4096](S(2))  (colwise)
    keeps    4194304 bytes
    forward  all-gather     f32[8, 128, 1024](S(0)) -> f32[8, 128, 1024](R)  4194304 bytes  T  the style's layout of inputs
    backward reduce-scatter f32[8, 128, 1024](P(sum)) -> f32[8, 128, 1024](S(0))  4194304 bytes  T  its backward
act: gelu  gives f32[8, 128, 4096](S(2))
    keeps    8388608 bytes
down: linear  weight f32[1024, 4096](S(1))  bias f32[1024](R)  gives f32[8, 128, 1024](R)  (rowwise)
    keeps    8388608 bytes
    forward  allreduce      f32[8, 128, 1024](P(sum)) -> f32[8, 128, 1024](R)  8388608 bytes  T  the style's layout of outputs
total forward allreduce: 1, 8388608 bytes, T
total forward all-gather: 1, 4194304 bytes, T
total backward reduce-scatter: 1, 4194304 bytes, T
memory of a rank: 16789504 bytes of parameters, 20971520 bytes kept for the backward"

layers=(tok=embedding:32000x1024)
for i in 0 1; do
    layers+=("layers.$i.norm=layer_norm:1024" "layers.$i.up=linear:1024x4096:nobias" \
        "layers.$i.act=gelu" "layers.$i.down=linear:4096x1024")
done
run module deep "${layers[@]}" --cluster "$dir/model.ini" --shape 8x128
is "an embedding, wildcards and a tree: each style where the library puts it" \
    "$status|$err|$(sed -nE 's/^([^ ]+): .*  \(([a-z]+)\)$/\1 \2/p' "$dir/out" | paste -sd, )|$(
    sed -nE 's/^total ([a-z -]+): ([0-9]+), .*/\1 \2/p' "$dir/out" | sort | paste -sd,)" \
    "0||. prepare,tok rowwise,layers.0.up colwise,layers.0.down rowwise,layers.1 prepare,layers.1.up colwise,layers.1.down rowwise|backward all-gather 2,backward allreduce 2,forward all-gather 2,forward allreduce 1,forward reduce-scatter 2"
model mlp up=linear:1024x4096 act=softmax:dim=-1 down=linear:4096x1024
is "what an operator reduces itself is told" \
    "$status|$(grep -A3 '^act: ' "$dir/out" | grep -c '^    forward  allreduce .* the operator reduces$')" "0|1"
model free "${mlp[@]}" --mesh 4
is "a plan without a mesh takes one that is given" \
    "$status|$(sed -n 1p "$dir/out")|$(sed -nE 's/^total ([a-z -]+):.*/\1/p' "$dir/out" | paste -sd,)" \
    "0|plan free on mesh(4), input f32[8, 128, 1024](R)|backward allreduce,backward all-gather"
if model mlp "${mlp[@]}" --json && [ $status -eq 0 ] && command -v python3 >/dev/null; then
    is "modules as JSON" "$(python3 - "$dir/out" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
top, up, act, down = j["modules"]
assert j["plan"] == "mlp" and j["ranks"] == 2 and j["input"]["placements"] == "R"
assert top["path"] == "." and top["style"] is None and up["moves"] == [] and up["style"] == "colwise"
assert up["parameters"]["weight"]["placements"] == "S(0)" and act["output"]["placements"] == "S(2)"
move, = down["moves"]
assert (move["direction"], move["what"], move["for"], move["operand"]) == ("forward", "allreduce", "rowwise", 0)
total, back = j["totals"]
assert total["calls"] == move["calls"] == 1 and total["bytes"] == move["bytes"] == 8388608
assert abs(total["predicted_us"] - move["predicted_us"]) < 1e-3
assert back["direction"] == "backward" and back["bytes"] == j["gradients"][0]["bytes"] == 8388608
assert sum(m["kept_bytes"] for m in j["modules"][1:]) == j["kept_bytes"] == top["kept_bytes"] > 0
assert j["parameter_bytes"] > 0 and j["input_gradient"] is True and len(j["gradients"]) == 1
print("good")
PY
    )" good
else
    skip_test "modules as JSON" "no python3, or a build without libjansson"
fi
layer=(norm1=layer_norm:64 "attn."{q,k,v}"=linear:64x64@in"
    "attn.core=heads:8:causal=1@q,k,v" attn.out=linear:64x64 "sum1=add@in,attn"
    norm2=layer_norm:64 mlp.up=linear:64x256 mlp.act=gelu mlp.down=linear:256x64
    "sum2=add@sum1,mlp")
run module layer "${layer[@]}" --cluster "$dir/model.ini" --shape 2x16x64
is "a transformer layer: modules read what others have made" \
    "$status|$err|$(sed -nE 's/^total ([a-z -]+): ([0-9]+), .*/\1 \2/p' "$dir/out" | paste -sd,)|$(grep -c '^sum2: add  gives' "$dir/out")" \
    "0||forward allreduce 2,backward allreduce 2|1"
run module layer "${layer[@]}" --cluster "$dir/model.ini" --shape 2x16x64 --from 'S(1)' --constant
is "without a gradient of the input" \
    "$status|$(sed -n 1p "$dir/out")|$(sed -nE 's/^total ([a-z -]+): ([0-9]+), .*/\1 \2/p' "$dir/out" | paste -sd,)" \
    "0|plan layer on flat(all=4), input f32[2, 16, 64](S(1)) without a gradient|forward allreduce 2,forward all-gather 4,backward allreduce 1,backward all-gather 2,backward reduce-scatter 4"
cat >"$dir/wrong.ini" <<'INI'
[cluster]
version = 1
[nodes "a"]
hosts = localhost
ranks = 4
[mesh "flat"]
dims = all=4
[plan "wrong"]
mesh = flat
layers.0.dwn = colwise
layers.?.up = colwise
*.[0-1].up = rowwise
lairs.0.norm = sequence
layers.1.act = rowwise
layers.0.down.x = colwise
head = colwise output=S(0:1,2,3)
norm = prepare output=R
INI
chmod 600 "$dir/wrong.ini"
run module wrong layers.0.up=linear:8x16 layers.0.down=linear:16x8 layers.1.up=linear:8x16 \
    layers.1.act=relu norm=layer_norm:16 head=linear:16x4 --cluster "$dir/wrong.ini" --shape 4x8
is "all that is wrong with a plan of a model, in one run, with the lines of the file" \
    "$status|$out|${err//"$dir/"/}" \
    '2||wrong.ini:10: error: layers.0.dwn: matches no module: layers.0 has no child "dwn" (did you mean "down"?)
wrong.ini:12: error: *.[0-1].up: layers.0.up has a style already: "colwise" by layers.?.up (expected one for each module)
wrong.ini:13: error: lairs.0.norm: matches no module: the module has no child "lairs" (did you mean "layers"?)
wrong.ini:14: error: layers.1.act: rowwise is for linear and embedding, not for "relu"
wrong.ini:15: error: layers.0.down.x: matches no module: layers.0.down has no child "x" (it has no children)
wrong.ini:16: error: head: placements: word 1 of "S(0:1,2,3)" is "S(0:1,2,3)" with 3 lengths, but mesh dimension 0 has 4 ranks (give one for each)'
refuses 'no module "qq" before it there' module layer a.q=linear:64x64@qq "${file[@]}"
refuses 'no module "k" before it there' module layer a.q=linear:64x64@k a.k=linear:64x64 "${file[@]}"
refuses 'expected q, k and v' module free up=linear:1024x1024 h=heads:8 "${file[@]}" --mesh 4
refuses 'that 7 divides' module free up=linear:1024x1024 h=heads:7@up,up,up "${file[@]}" --mesh 4
refuses 'expected PATH=heads:N@q,k,v' module free up=linear:1024x1024 h=heads "${file[@]}" --mesh 4
refuses 'it has no parts' module free up=linear:1024x1024 b=sequential "${file[@]}" --mesh 4
refuses '--constant goes with module' --mesh 4 --shape 4 --from R --to 'S(0)' --constant
refuses 'no plan "mlpp" (did you mean "mlp"?)' module mlpp "${mlp[@]}" "${file[@]}"
refuses 'has no child "dwn" (did you mean "down"?)' module typo "${mlp[@]}" "${file[@]}"
refuses 'up has a style already: "colwise" by u*' module two "${mlp[@]}" "${file[@]}"
refuses 'the tensor has 3 dimensions' module five "${mlp[@]}" "${file[@]}"
refuses '"foo" is no operator; expected sequential, linear' module mlp up=foo "${file[@]}"
refuses 'is no operator; did you mean "linear"?' module mlp up=linaer:4x4 "${file[@]}"
refuses 'is for linear and embedding, not for "relu"' module mlp up=relu down=linear:4096x4 "${file[@]}"
refuses 'must be equal' module mlp up=linear:1000x4096 down=linear:4096x4 "${file[@]}"
refuses 'expected PATH=linear:INxOUT' module mlp up=linear:4 "${file[@]}"
refuses 'expected PATH=KIND' module mlp up "${file[@]}"
refuses 'has a child "up" already' module mlp "${mlp[@]}" up=relu "${file[@]}"
refuses 'expected no module below it' module mlp up=linear:4x4 up.b=relu "${file[@]}"
refuses 'no argument "dm"' module mlp up=softmax:dm=1 "${file[@]}"
refuses 'plan free: it names no mesh, and none was given (choose one' module free "${mlp[@]}" "${file[@]}"
refuses 'has 2 dimensions' module mlp "${mlp[@]}" --mesh world "${file[@]}"
refuses '--cluster is missing' module mlp "${mlp[@]}" --shape 4
refuses '--shape is missing' module mlp "${mlp[@]}" --cluster "$dir/model.ini"
refuses 'expected the name of a plan' module mlp "${file[@]}"
refuses '--layout goes with a tensor, not with module' module mlp "${mlp[@]}" "${file[@]}" --layout
done_testing

#!/bin/bash
# bench.sh - dtensor-bench as its users see it: words, files, exit codes
#
# Every option is used once, and files in JSON and CSV are read back and
# compared with the schema that is installed.
#
# Without this test, scripts that read the output could break with any change
# of it.
. "$top_srcdir/tests/tap.sh"
tools_find
bench=$tools/dtensor-bench
[ -x "$bench" ] || skip_all "dtensor-bench is not built"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset DTN_CLUSTER DTN_FAULT DTN_LAUNCH_NS

# run ARG...: exit code in $code, output in $tmp/out and $tmp/err
run() {
    timeout -k 5 60 "$bench" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    code=$?
}

# refuses WORDS ARG...: exit 2, the words in one line on stderr, and a hint
refuses() {
    local words=$1
    shift
    run "$@"
    is "refuses: $* ($words)" \
        "$code $(grep -cF -- "$words" "$tmp/err") $(wc -l <"$tmp/err") $(wc -c <"$tmp/out")" \
        "2 1 2 0"
}

results() { grep -v '^#' "$tmp/out"; }

# ---------------------------------------------------------- command line ---
refuses "which test?"
refuses 'no test "allreduc"' allreduc
refuses "--nope: no such option" --nope allreduce
refuses '--warmp: no such option; did you mean "--warmup"?' --warmp 3 allreduce
refuses "-x: no such option; warm-up iterations are -w N" -x 3 allreduce
refuses "-g: no such option; ranks are processes here" -g 8 allreduce
refuses "--ngpus: no such option; ranks are processes here" --ngpus 8 allreduce
refuses "-J: no such option; that is --json FILE" -J x allreduce
refuses "-y: no such option" -y allreduce
refuses "-b: needs an argument" allreduce -b
refuses "--shape: needs an argument" redistribute --shape
refuses '--minbytes "many": expected SIZE' -b many allreduce
refuses '--minbytes "8T"' -b 8T allreduce
refuses '--minbytes "-8"' -b -8 allreduce
refuses '--maxbytes "99999999999999999999"' -e 99999999999999999999 allreduce
refuses "--minbytes 0: out of range" -b 0 allreduce
refuses "-b 4096 is more than -e 8" -b 4K -e 8 allreduce
refuses "--stepfactor 1: out of range" -f 1 allreduce
refuses "--iters 0: out of range" -n 0 allreduce
refuses '--min-time "2"' --min-time 2 allreduce
refuses 'no test "alltoal"' alltoal
refuses '--datatype: dtype: unknown "f31"; did you mean "f32"?' -d f31 allreduce
refuses '--op: reduction: unknown "plus"; plus is sum here' -o plus allreduce
refuses "f32 has no band (-o)" -o band allreduce
refuses "c64 has no max (-o)" -d c64 -o max allreduce
refuses "bool has no avg (-o)" -d bool -o avg allreduce
refuses "--registered 2: out of range" -R 2 allreduce
refuses "--local 0: out of range" --local 0 allreduce
refuses '--shape "3x": expected 1 to 8 numbers' --shape 3x redistribute
refuses "--nonblocking and --persistent are two ways" \
    --nonblocking --persistent allreduce
refuses "sendrecv knows no --nonblocking" --nonblocking allreduce sendrecv
refuses "redistribute knows no --persistent" --persistent redistribute
refuses "--from and --to go together" --from R redistribute
# The next size would be over 2^63, and 0.
run --dry-run allreduce -b 32768G -e 1048576G -f 1048576
is "the last of huge sizes" "$code $(grep -c ^allreduce "$tmp/out")" "0 1"
for test in allreduce barrier; do
    run --dry-run $test -i 4 -e 1G
    is "too many sizes of $test" "$code $(cat "$tmp/err")" \
        "2 dtensor-bench: $test: over 1048576 rows (raise -i)"
done

run --help
is "--help is on stdout, exit 0" "$code $(wc -c <"$tmp/err")" "0 0"
is "--help fits 80 columns" "$(awk 'length > 80' "$tmp/out")" ""
# The manual and --help name the same options, of the program and of rng.
manual() {
    sed "$1" "$top_srcdir/man/dtensor-bench.1" | grep '^\.It Fl' |
        grep -oE '\\-[a-z-]+' | sed 's/..//' | sort -u
}
options() {
    grep -oE -- '--[a-z-]+' "$tmp/out" | sed 's/--//' | sort -u
}
is "--help and the manual name the same options" \
    "$(diff <(options) <(manual '/^\.Sh RANDOM/,/^\.Sh ENV/d'))" ""
run rng --help
is "and those of rng" \
    "$(diff <(options | grep -vx help) \
        <(manual '/^\.Sh RANDOM/,/^\.Sh OPERATORS/!d'))" ""
run op --help
is "and those of op" \
    "$(diff <(options | grep -vx help) \
        <(manual '/^\.Sh OPERATORS/,/^\.Sh ENV/!d'))" ""
run op --ranks 2 --shape 24x40 --iters 3
is "op measures each of its cases on 2 ranks, and says of targets" \
    "$code $(grep -vc '^#' "$tmp/out") $(awk '/^#/ { next } !($3 > 0)' "$tmp/out") \
$(grep -c '^# target: .*: \(met\|missed\) (' "$tmp/out")" \
    "0 $("$bench" op --help | sed '1,/^Cases/d' | wc -w)  3"
is "... and complains of nothing" "$(cat "$tmp/err")" ""
in_job() {
    timeout -k 5 60 "$top_builddir/dtensor-run" -n 2 "$bench" op --shape 16x16 \
        --iters 2 "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
}
in_job add
is "op measures the ranks of the job in which it is started" \
    "$? $(grep -c ', 2 ranks;' "$tmp/out")" "0 1"
in_job --ranks 3 add
is "... and refuses another number" \
    "$(grep -c -e '--ranks: the job has 2 ranks (leave --ranks out)' \
        "$tmp/err")" 1
refuses_op() {
    local expected=$1
    shift
    run op "$@"
    is "op $*: refused" "$code $(grep -cF -e "$expected" "$tmp/err")" "2 1"
}
refuses_op "nothing: no such case of op" nothing
refuses_op '--shape "8": expected NxM' --shape 8
refuses_op '--iters "0": expected N' --iters 0
refuses_op "--nope: no such option" --nope
refuses_op "S(7)" --first 'S(7)' --shape 8x8 relu
if "$bench" op --shape 16x16 --iters 2 --json - matmul relu >"$tmp/out" \
    2>"$tmp/err"; then
    is "op --json -: JSON, and nothing else" "$(sed -n '1p; $p' "$tmp/out" |
        tr -d '\n')$(grep -c '"case": "\(matmul\|relu\)"' "$tmp/out")" "{}2"
else
    is "op --json - without libjansson: refused in words" \
        "$(grep -c 'without libjansson' "$tmp/err")" 1
fi
run -V
is "-V says name and version" "$code $(sed 's/ .*//; q' "$tmp/out")" \
    "0 dtensor-bench"
# The pipe's reader has left when the second row is due.
timeout 60 "$bench" --local 4 allreduce -f 2 -n 2000 -e 64M 2>"$tmp/err" |
    sed 1q >"$tmp/out"
is "its output into head: quiet, no rank complains, exit 141" \
    "${PIPESTATUS[0]} $(wc -l <"$tmp/out") $(cat "$tmp/err")" "141 1 "
(timeout 60 "$bench" --local 2 allreduce -e 8 2>"$tmp/err"; echo $? >"$tmp/code") |
    true
is "... with no reader at all, too" "$(cat "$tmp/code" "$tmp/err")" 141
cd "$tmp" || exit 1
if "$bench" --local 2 allreduce -e 32 --json - >"$tmp/out" 2>"$tmp/err"; then
    is "--json -: JSON on the standard output, and nothing else" \
        "$(jq -r '.results | length' "$tmp/out" 2>&1) $(cat "$tmp/err") $([ -e ./- ] || echo none)" "2  none"
fi
run --local 2 allreduce -e 32 --csv -
is "--csv -: CSV there" \
    "$code $(head -n 1 "$tmp/out" | cut -c 1-9) $(grep -vc , "$tmp/out")" \
    "0 test,dim, 0"
cd "$OLDPWD" || exit 1
refuses "only one can have the standard output" --json - --csv - allreduce
refuses "--tolerance goes with --baseline" --tolerance 5% allreduce
refuses "-f and -i are two ways to step: choose one" -f 2 -i 64 allreduce
refuses "each needs a file of its own" --json "$tmp/same" --csv "$tmp/same" allreduce
refuses '--cluster "": expected FILE' --cluster "" allreduce
refuses '--json "": expected FILE' --json "" allreduce
refuses '--from "": expected P' --from "" --to R redistribute
refuses "only one can have the standard output" --json - --svg - allreduce
refuses "--dry-run lists tests" --dry-run --startup allreduce
refuses '--tolerance "much"' --tolerance much allreduce
refuses "--tolerance 101%: out of range" --tolerance 101% allreduce
run --local 2 -q -D world allreduce -e 8
is "without a file the only dimension is world" \
    "$code $(results | awk '{ print $2 }')" "0 world"
run --local 2 -r 2 broadcast
is "a root outside the mesh is refused once, exit 2" \
    "$code $(cat "$tmp/err")" \
    "2 dtensor-bench: -r 2: the mesh has positions 0 to 1"
run --local 2 --from 'S(0' --to R redistribute
is "wrong placements are refused once, exit 2" \
    "$code $(wc -l <"$tmp/err")" "2 1"
run --local 2 --csv /nonexistent/x.csv allreduce
is "a file that cannot be written is refused once, exit 2" \
    "$code $(grep -c 'x.csv: cannot write it: No such file' "$tmp/err") $(wc -l <"$tmp/err")" \
    "2 1 1"

# ------------------------------------------------------------- the table ---
run --local 4 allreduce broadcast -b 64K -e 64K -n 3 -w 1 --repro \
    --csv "$tmp/repro.csv"
is "--repro: reductions twice, and a line says what it costs" \
    "$code $(grep -E '^# repro|^[a-z]' "$tmp/out" | sed 's/[0-9.]* times/N times/; /^[a-z]/s/ .*//' | paste -sd,)" \
    "0 allreduce,# repro N times the row above,allreduce,broadcast"
is "... and the CSV says which" "$(cut -d, -f1,7 "$tmp/repro.csv" | paste -sd' ')" \
    "test,repro allreduce,0 allreduce,1 broadcast,0"
run --local 4 all -b 8 -e 4K -f 8 -n 3 -w 1
is "all tests on 4 ranks are right" "$code $(cat "$tmp/err")" "0 "
is "every test has its lines" \
    "$(results | awk '{ print $1 }' | uniq | paste -sd' ')" \
    "allreduce allgather reduce_scatter all_to_all broadcast reduce gather scatter allgatherv reduce_scatterv all_to_allv gatherv scatterv barrier sendrecv redistribute"
is "every line has 14 columns" "$(results | awk 'NF != 14')" ""
is "rows and heads fit 100 columns" "$(awk '(!/^#/ || /^# (test|  )/) && length > 100' "$tmp/out")" ""
is "units stand in the heads" "$(sed -n '/^# test/{n;p}' "$tmp/out" | tr -s ' ' | sed 's/ *$//')" \
    "# (B) (elems) (us) (us) (us) (us) GB/s GB/s GB/s"
is "no test runs into the next column" "$(results | awk '$1 ~ /[0-9]/')" ""
is "allreduce has the sizes asked for" \
    "$(results | awk '$1 == "allreduce" { print $3 }' | paste -sd' ')" \
    "8 64 512 4096"
is "allgather counts all blocks, and has no size twice" \
    "$(results | awk '$1 == "allgather" { print $3 "/" $4 }' | paste -sd' ')" \
    "16/1 64/4 512/32 4096/256"
is "min <= p50 <= p99 <= max" \
    "$(results | awk '!($7 <= $8 && $8 <= $9 && $9 <= $10)')" ""
is "busbw is algbw times the factor" "$(results | awk '
    BEGIN { f["allreduce"] = 1.5
        f["broadcast"] = f["reduce"] = f["sendrecv"] = 1
        split("allgather reduce_scatter all_to_all gather scatter", blocks)
        for (i in blocks) f[blocks[i]] = f[blocks[i] "v"] = 0.75 }
    $1 in f && ($12 - f[$1] * $11 > 0.02 || $12 - f[$1] * $11 < -0.02)')" ""
is "the header names what counts" "$(
    for word in version cluster ranks cpu kernel memory options times busbw bound; do
        case $word in version) word="dtensor-bench [0-9]" ;; esac
        grep -q "^# $word" "$tmp/out" || echo "$word"
    done)" ""
cpus=$(nproc)
run --local $((cpus + 1)) allreduce -e 8 -n 2
is "more ranks than CPUs are warned of" "$code $(
    grep -c "^# warning: $((cpus + 1)) ranks on $cpus CPUs of" "$tmp/out")" "0 1"
run -q --local 2 allreduce -b 8 -e 64 -i 28 -n 2
is "-q leaves result lines only; -i steps by bytes" \
    "$code $(awk '{ print $1 $3 }' "$tmp/out" | paste -sd' ')" \
    "0 allreduce8 allreduce36 allreduce64"
run -q --local 3 allreduce reduce reduce_scatter -d all -o all -e 2K -b 2K -n 2 -w 0
is "every type and reduction is right on 3 ranks" \
    "$code $(cat "$tmp/err") $(wc -l <"$tmp/out")" "0  321"
for r in 0 1; do
    run -q --local 3 all -R $r -b 100 -e 30000 -f 7 -n 3 -w 0
    is "all tests on 3 ranks with -R $r are right" \
        "$code $(awk '$14 != 0' "$tmp/out")" "0 "
done
for way in nonblocking persistent; do
    run --local 3 all --$way --repro -r 2 -b 8 -e 30000 -f 59 -n 3 -w 0
    is "all tests on 3 ranks with --$way are right, which the header says" \
        "$code $(cat "$tmp/err") $(grep -c "^# options .* --$way --repro$" "$tmp/out")" \
        "0  1"
done
run -q allreduce -n 2 -e 8
is "one rank alone works, busbw 0" \
    "$code $(awk '{ print $3, $12, $13 }' "$tmp/out")" "0 8 0.00 0.00"
run -q --local 2 barrier --min-time 20ms -n 2
is "--min-time goes on longer than -n" "$code" 0

# ---------------------------------------------------------- redistribute ---
run --local 4 redistribute --mesh 2x2 --shape 10x7 --from 'S(0),S(1)' \
    --to 'S(1),R' --draw -n 2
is "redistribute on a 2x2 mesh is right, and drawn" \
    "$code $(grep '^# f32' "$tmp/out" | tr -s ' ')" \
    "0 # f32[10,7] S(0),S(1) on mesh(2,2)
# f32[10,7] S(1),R on mesh(2,2)"
# Columns 0-3 (4 of 7) for the first two ranks, 4-6 for the others; they hold
# 5 x 4 or 5 x 3 of the old.  40 - 20, 40 - 0, 30 - 0 and 30 - 15 elements.
is "... and says how many bytes must cross ranks" \
    "$(grep -o '420 bytes must cross ranks, 160 into' "$tmp/out")" \
    "420 bytes must cross ranks, 160 into"
wrong=$(for pair in 'S(0) S(1)' 'S(1) R' 'R S(0)' 'P S(0)' 'P R' 'R P' \
    'S(1) P' 'P(max) S(1)' 'P(avg) R' 'P(prod) P' 'P P' 'R R'; do
    for type in f32 bf16 i32; do
        run -q --local 3 redistribute --shape 7x5 -d $type -n 2 -w 1 \
            --from "${pair% *}" --to "${pair#* }"
        [ $code = 0 ] || echo "$pair $type: $code $(cat "$tmp/err")"
    done
done)
is "every kind of placement into others, three types, on 3 ranks" "$wrong" ""
run -q --local 4 redistribute --mesh 2x2 --from 'P,S(0)' --to 'R,S(1)' \
    --shape 9x8 -n 2
is "a partial sum along one dimension, shards along the other" "$code" 0
run -q --local 4 all --mesh 3 -n 2 -e 64
is "ranks outside the mesh wait: 3 of 4" \
    "$code $(awk '{ print $14 }' "$tmp/out" | sort -u)" "0 0"

cat >"$tmp/grid.ini" <<'INI'
[cluster]
version = 1
name = grid
[nodes "here"]
hosts = localhost
ranks = 4
[mesh "grid"]
dims = dp=2, tp=2
INI
run --local 4 -C "$tmp/grid.ini" -m grid -D tp all -n 2 -e 64
is "-m and -D: all slices along tp at once, 2 ranks each" \
    "$code $(results | awk '{ print $2, $14 }' | sort -u)" "0 tp 0"
is "... so that allgather has 2 blocks" \
    "$(results | awk '$1 == "allgather" { print $3 / $4; exit }')" 8
run --local 4 -C "$tmp/grid.ini" -m gird allreduce
is "an unknown mesh is refused once, exit 2" \
    "$code $(grep -c '"gird"' "$tmp/err") $(wc -l <"$tmp/err")" "2 1 1"
run --local 4 -C "$tmp/grid.ini" redistribute -m grid -n 2 -e 4K
is "redistribute has default placements on any mesh" \
    "$code $(results | awk '{ print $2, $14 }' | sort -u)" "0 grid 0"
if [ -x "$top_builddir/dtensor-run" ]; then
    timeout 60 "$top_builddir/dtensor-run" -n 2 "$bench" allreduce -n 2 \
        >"$tmp/out" 2>"$tmp/err"
    is "under dtensor-run rank 0 alone writes" \
        "$? $(grep -c '^# cluster ' "$tmp/out") $(cat "$tmp/err")" "0 1 "
fi

# ----------------------------------------------------------------- fabric ---
cat >"$tmp/pairs.ini" <<'INI'
[cluster]
version = 1
name = pairs
[nodes "here"]
hosts = localhost
ranks = 5
[transport]
intra_node = tcp
INI
run --local 2 --calibrate
cp "$tmp/out" "$tmp/section"
is "--calibrate: a [tuning] section, with what it predicts" \
    "$code|$(grep -c '^\[tuning\]' "$tmp/section")|$(grep -cE '^(intra_latency_ns|intra_message_ns|intra_bandwidth|fold_bandwidth|copy_bandwidth) += [1-9][0-9]*$' "$tmp/section")|$(grep -cE '^; (allreduce|barrier) ' "$tmp/section")" \
    "0|1|5|9"
printf '[cluster]\nversion = 1\n[nodes "n"]\nhosts = localhost\nranks = 2\n' |
    cat - "$tmp/section" >"$tmp/calibrated.ini"
chmod 600 "$tmp/calibrated.ini"
"$tools/dtensor-conf" --show digest "$tmp/calibrated.ini" >"$tmp/shown" 2>&1
is "dtensor-conf accepts it, and shows the same numbers" \
    "$?|$(sed -n 's/^\[tuning\] intra_latency_ns = //p' "$tmp/shown")" \
    "0|$(sed -n 's/^intra_latency_ns *= //p' "$tmp/section")"
"$tools/dtensor-plan" barrier --mesh 2 --cluster "$tmp/calibrated.ini" >"$tmp/shown"
is "and the choice is made by it" \
    "$(awk '/ taken$/ { print $4 }' "$tmp/shown")" \
    "$(sed -n 's/^intra_latency_ns *= //p' "$tmp/section" | awk '{ printf "%.2f", $1 / 1000 }')"
run --local 2 -C "$tmp/calibrated.ini" allreduce -b 64 -e 64 -n 2
is "the line above says why" "$code|$(grep -cE '^# plan allreduce eager/shm\([0-9.]+us<[a-z]+:[0-9.]+us\)$' "$tmp/out")" "0|1"
run -q --local 2 --calibrate allreduce
is "--calibrate goes alone" "$code|$(grep -c 'goes alone' "$tmp/err")" "2|1"

run -q --local 3 --check-fabric -n 3
is "--check-fabric: two matrices of 3 x 3 through shared memory" \
    "$code $(grep -cE '^ +[0-2]( +[0-9.]+[ *]| +- ){3}' "$tmp/out")" "0 6"
run -q --check-fabric
is "one rank alone has no pairs" \
    "$code $(grep -c '^no outliers' "$tmp/out")" "0 1"
if [ -x "$top_builddir/dtensor-run" ]; then
    timeout 60 "$top_builddir/dtensor-run" -n 5 -C "$tmp/pairs.ini" sh -c '
        [ "$DTN_RANK" = 2 ] && export DTN_FAULT=delay_us=5000
        exec "$0" -q --check-fabric -n 3 -w 0' "$bench" >"$tmp/out" 2>"$tmp/err"
    is "a rank that is 5 ms late with all it sends is so in all its pairs" \
        "$? $(awk '$1 == 2 { for (i = 2; i < 7; i++) n += $i + 0 >= 5000; exit }
            END { print n + 0 }' "$tmp/out")" "0 4"
    # On a busy machine all are late.
    late=$(awk '/^# bandwidth/ { exit } $1 ~ /^[0134]$/ && NF == 7 {
        for (i = 2; i < 7; i++) n += i != 4 && $i + 0 >= 2000 }
        END { print n + 0 }' "$tmp/out")
    if [ "$late" -le 2 ]; then
        is "... an outlier in each, over tcp" "$(grep -cE \
            '^ranks ([01]-2|2-[34]) \(localhost-localhost\): [0-9.]+ us, median ' \
            "$tmp/out")" 4
        is "... and named" "$(grep -c '^rank 2 (localhost): in most of its pairs the latency is an outlier$' \
            "$tmp/out")" 1
    else
        skip_test "... an outlier in each" "this machine is too busy"
    fi
fi

# -------------------------------------------------------- files for others ---
run --local 2 allreduce redistribute --startup -b 8 -e 128 -n 2 \
    --csv "$tmp/x.csv"
is "--csv has the columns of the manual" "$code $(head -1 "$tmp/x.csv")" \
    "0 test,dim,bytes,count,dtype,redop,repro,ranks,time_us_min,time_us_p50,time_us_p99,time_us_max,algbw_GBps,busbw_GBps,bound_GBps,wrong,plan"
is "... and the lines of the table" \
    "$(awk -F, 'NR > 1 { print $1, $3, $4 }' "$tmp/x.csv")" \
    "$(results | awk '{ print $1, $3, $4 }')"
is "--startup is one line" "$(grep -cE \
    '^# start-up: 2 ranks, [0-9.]+ ms from launch to first allreduce done \(slowest rank\)$' \
    "$tmp/out")" 1

if "$bench" --json /dev/null --help >/dev/null 2>&1 &&
    ! "$bench" --json /dev/null allreduce 2>&1 | grep -q 'without libjansson'
then
    run --local 2 all --startup --check-fabric -b 8 -e 128 -n 2 \
        --json "$tmp/x.json"
    if command -v jq >/dev/null; then
        is "--json is read by jq and counts as the table does" "$code $(
            jq -r '.results[] | "\(.test) \(.bytes) \(.count)"' "$tmp/x.json")" \
            "0 $(results | awk 'NF == 14 && $14 == 0 { print $1, $3, $4 }')"
    else
        skip_test "--json is read by jq" "no jq here"
    fi
    if python3 -c 'import jsonschema' 2>/dev/null; then
        is "--json is as its schema says" "$(python3 - "$tmp/x.json" \
            "$top_srcdir/tools/bench/dtensor-bench.schema.json" 2>&1 <<'PY'
import json, sys, jsonschema
jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))
PY
        )" ""
    else
        skip_test "--json is as its schema says" "no python3-jsonschema here"
    fi
else
    skip_test "--json" "built without libjansson"
fi

# ----------------------------------------------- words of nccl-tests, OSU ---
run -q --local 2 all_reduce_perf osu_alltoall bcast reduce-scatter -m 8:64 -f 8 \
    -n 2 -d half -o mean
is "tests, types, reductions and sizes as others write them" \
    "$code $(awk '{ print $1 ":" $3 ":" $5 ":" $6 }' "$tmp/out" | paste -sd' ')" \
    "0 allreduce:8:f16:avg allreduce:64:f16:avg all_to_all:8:f16:none all_to_all:64:f16:none broadcast:8:f16:none broadcast:64:f16:none reduce_scatter:8:f16:avg reduce_scatter:64:f16:avg"
for pair in float=f32 double=f64 bfloat16=bf16 int8=i8 uint64=u64; do
    run -q --local 2 allreduce -e 8 -n 2 -d "${pair%=*}"
    is "-d ${pair%=*} is ${pair#*=}" "$code $(awk '{ print $5 }' "$tmp/out")" "0 ${pair#*=}"
done
run allreduce -e 8 -n 2
is "one rank alone is told how to start more" \
    "$(grep -c '^# hint: .* add --local 4, or start it by srun or dtensor-run$' "$tmp/out")" 1
run --local 2 allreduce -e 8 -n 2
is "two are not" "$(grep -c '^# hint' "$tmp/out")" 0

# --------------------------------------------------------------- dry run ---
run --local 64 --dry-run all -b 1M -e 1M
is "--dry-run lists what would be measured, and starts nothing" \
    "$code $(results | awk '{ print $1 }' | paste -sd' ')" \
    "0 allreduce allgather reduce_scatter all_to_all broadcast reduce gather scatter allgatherv reduce_scatterv all_to_allv gatherv scatterv barrier sendrecv redistribute"
is "... with times and algorithms" "$(results | grep -cE '[0-9] [um]s  [a-z0-9]')" 15
run --dry-run allreduce -C "$top_srcdir/conf/128-nodes.ini" -m world -D tp -e 8
is "... of a cluster file that this machine is not part of" \
    "$code $(sed -n "1s/;.*//p" "$tmp/out")" "0 # dry run: 1024 ranks, mesh tp of 8"
run --local 2 --dry-run --draw allreduce -b 64K -e 64K
is "... and draws schedules" "$code $(grep -c '^# .*us 32.0 KiB$' "$tmp/out")" "0 4"
run --local 2 --draw allreduce -b 64K -e 64K -n 2
is "--draw of a collective is its schedule" \
    "$code $(grep -c '^# allreduce of 65536 bytes over 2 ranks$' "$tmp/out") $(grep -c 'us 32.0 KiB$' "$tmp/out")" "0 1 4"

# -------------------------------------------------------------- baseline ---
if [ -s "$tmp/x.json" ]; then
    # baseline FACTOR: results of a run with every busbw and time so changed
    baseline() {
        python3 - "$1" "$tmp/base.json" "$tmp/changed.json" <<'PY'
import json, sys
factor, base = float(sys.argv[1]), json.load(open(sys.argv[2]))
for row in base["results"]:
    row["busbw_GBps"] *= factor
    row["time_us"]["p50"] /= factor
json.dump(base, open(sys.argv[3], "w"))
PY
    }
    rows=(--local 2 allreduce barrier -b 4K -e 16K -n 20)
    run "${rows[@]}" --json "$tmp/base.json"
    baseline 0.000001
    run "${rows[@]}" --baseline "$tmp/changed.json"
    is "--baseline: above it, exit 0, and what it was is said" \
        "$code $(cat "$tmp/err") $(grep -cE '^# baseline [0-9.]+ (GB/s|us), now [0-9.]+$' "$tmp/out")" "0  3"
    baseline 1000000
    run "${rows[@]}" --baseline "$tmp/changed.json" --tolerance 10%
    is "below it: exit 1, and a line for each row" \
        "$code $(grep -c 'below baseline: .* (tolerance 10%)$' "$tmp/err") $(wc -l <"$tmp/err")" "1 3 3"
    # A row under --repro is another one than that before it.
    run -q --local 2 allreduce -b 8 -e 8 -n 2 --repro --json "$tmp/repro.json"
    sed 's/"repro": true/"repro": false/' "$tmp/repro.json" >"$tmp/changed.json"
    run --local 2 allreduce -b 8 -e 8 -n 2 --repro --baseline "$tmp/changed.json" \
        --tolerance 100
    is "--baseline --repro: a row is compared with that under --repro" \
        "$(grep -c '"repro": true' "$tmp/repro.json") $(
            grep -c '^# baseline' "$tmp/out")" "1 1"
    baseline 10
    run "${rows[@]}" -q --baseline "$tmp/changed.json" --tolerance 100
    is "a tolerance of 100 leaves no bandwidth below" \
        "$(grep -c 'allreduce' "$tmp/err")" 0
    run -q --local 2 broadcast -e 8 -n 2 --baseline "$tmp/base.json"
    is "no row in common: exit 2, said once" \
        "$code $(grep -c 'none of these rows' "$tmp/err") $(wc -l <"$tmp/err")" "2 1 1"
else
    skip_test "--baseline" "built without libjansson"
fi

# -------------------------------------------------------------------- SVG ---
run --local 2 allreduce allgather barrier -e 1M -n 2 --svg "$tmp/x.svg"
if command -v python3 >/dev/null; then
    png=-
    command -v rsvg-convert >/dev/null && png=$tmp/x.png &&
        rsvg-convert "$tmp/x.svg" -o "$png"
    is "--svg: busbw over size, with the bound" "$code $(python3 "$top_srcdir/tests/tools/picture.py" \
        "$tmp/x.svg" "$png" "cluster local, 2 ranks on 1 host" "busbw (GB/s)" "message size (bytes)" \
        "allreduce f32 sum" "allgather f32" "dashed: the bound" "64") $(grep -c dasharray "$tmp/x.svg")" \
        "0 good $((9 + 9 - 2 + 1))"
else
    skip_test "--svg" "no python3"
fi
run --local 2 barrier --svg - -n 2
is "--svg -: SVG on the standard output; a barrier has no curve" \
    "$code $(grep -c 'no test moved bytes' "$tmp/out") $(tail -1 "$tmp/out")" "0 1 </svg>"

# ------------------------------------------------------------------- soak ---
run --local 2 redistribute allreduce --loop 200 -e 4K
is "--loop says by how much memory and descriptors grew" "$code $(grep -cE \
    '^# 200 (redistribute|allreduce)s: RSS \+[0-9]+ KiB, fds \+0$' "$tmp/out")" \
    "0 2"

# ------------------------------------------------------------- bad endings ---
cat >"$tmp/tcp.ini" <<'INI'
[cluster]
version = 1
name = lossy
[nodes "here"]
hosts = localhost
ranks = 2
[transport]
intra_node = tcp
INI
sed 's/nodes/nodez/' "$tmp/tcp.ini" >"$tmp/bad.ini"
run --local 2 -C "$tmp/bad.ini" allreduce
is "a wrong cluster file is exit 2, and said once" \
    "$code $(sort "$tmp/err" | uniq -d)" "2 "

run -q --local 2 -C "$tmp/tcp.ini" allreduce -e 8 -n 1
is "two ranks on tcp agree" "$code $(cat "$tmp/err")" "0 "
if [ $code = 0 ]; then
    DTN_FAULT=drop_put=20 run -q --local 2 -C "$tmp/tcp.ini" allgather -b 256K -e 256K
    is "a put that is lost is a wrong result: exit 1" "$code" 1
    is "... whose first wrong element is printed" "$(grep -cE \
        '^dtensor-bench: allgather f32 262144 bytes: rank [01] \[[0-9]+\]: got [-0-9.e+]+, expected [0-9.]+$' \
        "$tmp/err")" "$(grep -c . "$tmp/err")"
    is "... and counted" "$(awk '$14 > 0' "$tmp/out" | wc -l)" 1
    for test in allgatherv all_to_allv sendrecv; do
        DTN_FAULT=drop_put=10 run -q --local 2 -C "$tmp/tcp.ini" $test \
            -b 256K -e 256K
        is "... and of $test" "$code $(awk '$14 > 0' "$tmp/out" | wc -l)" "1 1"
    done
    DTN_FAULT=kill_signal=30 run -q --local 2 -C "$tmp/tcp.ini" allreduce
    is "a rank that dies is exit 3" "$code" 3
else
    skip_test "lost puts and ranks" "no tcp between ranks"
fi

"$bench" --local 3 allreduce --loop 1000000000 >"$tmp/out" 2>"$tmp/err" &
parent=$!
for _ in {1..600}; do                # until they have joined, and some more
    grep -q '^# ranks ' "$tmp/out" && break
    sleep 0.1
done
sleep 0.5
victim=$(pgrep -P $parent | sed -n 2p)
start=$SECONDS
kill -9 "${victim:-$parent}"
wait $parent
is "killing rank 1 of 3 is exit 3, and said" \
    "$? $(grep -c 'rank 1 was killed by signal 9' "$tmp/err")" "3 1"
is "... its peers name it too" \
    "$(grep -v 'was killed by' "$tmp/err" | grep -vc 'rank 1')" 0
is "... in one line of one of them" \
    "$(grep -vc 'was killed by' "$tmp/err")" 1
ok $((SECONDS - start > 15)) "... within 15 s"
is "... and no rank is left" "$(pgrep -P $parent)" ""
done_testing

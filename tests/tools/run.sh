#!/bin/bash
# run.sh - dtensor-run: exit codes, first failures, signals, output, no orphans
#
# Under nohup, or behind an &, signals are ignored from the start, for good; so
# the test restarts itself with none ignored.
#
# Without this test, a rank could survive its job, or a job could end with 0
# although a rank failed.
if [ -z "${run_anew-}" ] && env --default-signal true 2>/dev/null; then
    run_anew=1 exec env --default-signal bash "$0" "$@"
fi
. "$top_srcdir/tests/tap.sh"
run=$top_builddir/dtensor-run
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
unset DTN_CLUSTER DTN_HOST DTN_LOG

# matches CLAIM TEXT PATTERN: a bash regular expression, all of TEXT
matches() {
    if [[ $2 =~ ^$3$ ]]; then
        ok 0 "$1"
    else
        ok 1 "$1"
        printf '# got:      %s\n# expected: %s\n' "$2" "$3"
    fi
}

# alive PID: is it there, and not only a zombie nobody has waited for?
alive() {
    local state
    state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null)
    [ -n "$state" ] && [ "$state" != Z ]
}

# gone PID...: they and those in $dir/out have ended, or do in 20 s
gone() {
    local pids pid i
    mapfile -t pids <"$dir/out"
    for pid in "$@" "${pids[@]}"; do
        for ((i = 0; i < 2000; i++)); do
            alive "$pid" || continue 2
            sleep .01
        done
        kill -9 "$pid"
        return 1
    done
    [ ${#pids[@]} -gt 0 ]
}

# lines FILE N: wait until it has that many, 20 s at most
lines() {
    local i
    for ((i = 0; i < 2000; i++)); do
        [ "$(wc -l <"$1" 2>/dev/null)" = "$2" ] && return
        sleep .01
    done
}

# states PATTERN PID...: their states as in ps, once they match, or after 20 s
states() {
    local pattern=$1 state i
    shift
    for ((i = 0; i < 2000; i++)); do
        state=$(for pid; do
            sed 's/.*) //; s/ .*//' "/proc/$pid/stat"; done | tr -d '\n')
        [[ $state =~ ^$pattern$ ]] && break
        sleep .01
    done
    echo "$state"
}

# ------------------------------------------------------------ exit codes ---
"$run" -n 3 true
is "all ranks exit with 0: so does dtensor-run" $? 0
"$run" -n 3 sh -c 'exit $DTN_RANK' 2>/dev/null
matches "a rank exits with 1 or 2: so does dtensor-run" $? '[12]'
err=$("$run" -n 4 sh -c '[ $DTN_RANK != 2 ] || exit 3; sleep 60' 2>&1)
is "rank 2 of four exits with 3: that is the code" $? 3
matches "and one line says so" "$err" \
    'dtensor-run: rank 2 \(pid [0-9]+\) exited with code 3; ending the other 3 ranks'
err=$("$run" -n 4 sh -c '[ $DTN_RANK != 2 ] || kill -9 $$; sleep 60' 2>&1)
is "rank 2 killed by signal 9: the code is 137" $? 137
matches "and the line names the signal" "$err" \
    'dtensor-run: rank 2 \(pid [0-9]+\) was killed by signal 9 \(Killed\); ending the other 3 ranks'
"$run" -n 2 sh -c 'trap "exit 9" TERM
    [ $DTN_RANK = 0 ] && { sleep .2; exit 5; }
    sleep 60 & wait' 2>/dev/null
is "the code is that of the first failure, not of what it caused" $? 5
err=$("$run" -n 1 false 2>&1)
matches "a lone rank's failure mentions no others" "$err" \
    'dtensor-run: rank 0 \(pid [0-9]+\) exited with code 1'

# A rank that is killed may be dead after another has noticed and exited: rank 0
# exits as soon as it finds the signal on its way, which is before the parent is
# told; here it is the other way round for certain: rank 1 waits until rank 0 is
# no process any more.
err=$(cd "$dir" && "$run" -n 3 sh -c 'case $DTN_RANK in
    0) until [ -e waits ]; do sleep .01; done; echo $$ >witness; exit 1;;
    1) >waits; until read -r pid <witness; do :; done
       while kill -0 $pid; do :; done; kill -9 $$;;
    2) exec sleep 60;; esac 2>&-' 2>&1)
is "a signal counts more than an exit code that came before it" $? 137
matches "and is named, not the witness that was first" "$err" \
    'dtensor-run: rank 1 \(pid [0-9]+\) was killed by signal 9 \(Killed\); ending the other rank'
mkfifo "$dir/alive"                  # at its end as soon as rank 2 is dead
err=$(cd "$dir" && "$run" -n 4 sh -c 'if [ $DTN_RANK = 2 ]; then
        exec 3>alive
        until [ -e ready.0 -a -e ready.1 -a -e ready.3 ]; do sleep .01; done
        kill -9 $$
    fi
    exec 3<alive; >ready.$DTN_RANK; read -r end <&3
    echo "rank $DTN_RANK has noticed" >&2; exit 1' 2>&1)
is "ranks that notice a failure print what they know" \
    "$(grep -c noticed <<<"$err") $(grep -c '^dtensor-run:' <<<"$err")" "3 1"
SECONDS=0
"$run" -n 2 sh -c '[ $DTN_RANK = 0 ] && exit 7; sleep 60' 2>/dev/null
is "who does not end by itself gets SIGTERM" $? 7
ok $((SECONDS > 10)) "after a second"

SECONDS=0
"$run" -n 2 --grace 300ms sh -c 'trap "" TERM
    [ $DTN_RANK = 0 ] && exit 7
    while :; do sleep 60; done' 2>/dev/null
is "a rank that ignores SIGTERM keeps the first failure's code" $? 7
ok $((SECONDS > 5)) "and is killed when the grace is over"
"$run" -n 2 sh -c '[ $DTN_RANK = 0 ] && { sleep .2; exit 7; }
    kill -STOP $$' 2>/dev/null
is "a stopped rank is woken to end" $? 7

# ------------------------------------------------------------ the report ---
# suspects FILE: "REASON HOST RANKS", as a script reads it without a parser
suspects() {
    sed -n 's/.*"reason": "\([^"]*\)".*/\1/p' "$1" | tr '\n' ' '
    sed -n 's/.*"host": "\([^"]*\)", "ranks": \[\([^]]*\)\].*/\1 \2/p' "$1"
}
# well_formed FILE: is it JSON, as far as we can tell?
well_formed() { ! command -v python3 >/dev/null || python3 -m json.tool "$1" >/dev/null; }

report=$dir/report.json
echo old >"$report"
"$run" -n 2 --json="$report" true
ok $? "a job that ends well"
[ ! -e "$report" ]
ok $? "leaves no report, not even an old one"
DTN_HOST=here "$run" -n 3 --json="$report" \
    sh -c '[ $DTN_RANK != 1 ] || kill -9 $$; sleep 60' 2>/dev/null
is "a rank is killed before it joins: its host is suspect" \
    "$(suspects "$report")" "died here 1"
well_formed "$report"
ok $? "in JSON"
"$run" -n 2 --json="$report" sh -c 'exit 3' 2>/dev/null
is "a program that fails by itself leaves no host suspect" \
    "$(suspects "$report")" "failed "
(cd "$dir" && "$run" -n 4 --json=report.json sh -c '
    [ $DTN_RANK != 2 ] || export DTN_FAULT=kill_signal=40
    cd / && exec "$0" "$1" 64' "$top_builddir/tests/rdma/survivor" \
    "$dir/running" >/dev/null 2>&1)
is "a rank is killed in a call: the others say so, wherever they are" \
    "$(suspects "$report")" "died $(hostname) 2"
grep -q '"error": "EPEER".* "rank": 2,' "$report"
ok $? "with the error and the rank that all name"
grep -q '"text": "rank [0-9] on [^ ]*: allreduce .*rank 2 on [^ ]* died' \
    "$report"
ok $? "and its text"
well_formed "$report"
ok $? "that is JSON, too"
err=$("$run" -n 1 --json="$dir/no/report" true 2>&1)
is "a report that cannot be made: exit 2" $? 2
is "before anything starts" "$(head -1 <<<"$err")" "dtensor-run: --json \
$dir/no/report: cannot make it: No such file or directory"

ln -s /dev/null "$dir/device"
err=$("$run" -n 1 --json="$dir/device" true 2>&1)
is "a report into a device: exit 2" $? 2
is "says so" "$(head -1 <<<"$err")" "dtensor-run: --json $dir/device: cannot \
make it: it is no regular file"
[ -L "$dir/device" ]
ok $? "and does not remove it"
mkfifo "$dir/pipe"
timeout 10 "$run" -n 1 --json="$dir/pipe" true 2>/dev/null
is "a report into a FIFO that nobody reads: exit 2, at once" $? 2
mkdir "$dir/short"
err=$("$run" -n 1 --json="$dir/short/report" \
    sh -c "rmdir '$dir/short'; exit 3" 2>&1)
is "a report that cannot be written at the end: the code stays" $? 3
matches "and a line says so" "$(tail -1 <<<"$err")" "dtensor-run: --json \
$dir/short/report: cannot write it: No such file or directory"
DTN_HOST=$'b\xfcro' "$run" -n 1 --json="$report" sh -c 'kill -9 $$' 2>/dev/null
well_formed "$report"
ok $? "a host whose name is not UTF-8: JSON all the same"

# The kernel's count of such kills is a file of ours, in a namespace of mounts.
echo oom_kill 7 >"$dir/count"
if unshare -rm true 2>/dev/null; then
    # shellcheck disable=SC2016 # of the shell of the rank
    err=$(unshare -rm sh -c 'mount --bind "$1" /proc/vmstat && exec "$0" -n 1 \
        sh -c "echo oom_kill 8 >\"$1\"; kill -9 \$\$"' "$run" "$dir/count" 2>&1)
    matches "a rank that the kernel kills for lack of memory: why" "$err" \
        '^dtensor-run: rank 0 .*9 \(Killed\), and this machine was out of memory \(see dmesg\)$'
else
    skip_test "a rank that the kernel kills for lack of memory" "no namespaces"
fi

# ------------------------------------------------------------ the program ---
err=$("$run" -n 8 "$dir/nosuch" 2>&1)
is "a program that is not there: exit 127" $? 127
is "said once, not by each rank" "$err" \
    "dtensor-run: cannot run $dir/nosuch: No such file or directory"
ln -s /bin/true "$dir/here"
err=$(cd "$dir" && "$run" -n 8 here 2>&1)
is "a program that is here, and not in PATH" "$err" \
    "dtensor-run: cannot run here: it is not in PATH; here it is ./here"
err=$("$run" -n 8 "$top_srcdir/configure.ac" 2>&1)
is "a program that cannot be run: exit 126" $? 126
is "said once too" "$err" \
    "dtensor-run: cannot run $top_srcdir/configure.ac: Permission denied"
err=$(ulimit -n 16; "$run" -l -n 20 true 2>&1)
is "too few descriptors for the ranks: exit 125" $? 125
matches "which says at which rank" "$err" \
    'dtensor-run: cannot start rank [0-9]+: Too many open files \(see ulimit .*\)'

# ---------------------------------------------------------- command line ---
usage() {
    local claim=$1 first=$2 out
    shift 2
    out=$("$run" "$@" 2>&1)
    is "$claim: exit 2" $? 2
    is "$claim: words" "$out" "dtensor-run: $first
Try 'dtensor-run --help' for more information."
}
usage "unknown long option" "--ranl: no such option; expected one of --ranks, --bind, --label, --cluster, --grace, --json, --help, --version" \
    --ranl 3 true
usage "unknown short option" "-z: no such option" -lz true
usage "unknown letter among others" "-x: no such option" --label -xl true
usage "a value that is not wanted" "--label=3: this option takes no value" \
    --label=3 true
usage "a value is missing" "option -n needs a value" -n
usage "no program" "no program to run" -n 2
usage "no ranks" '-n "0": expected a number of ranks from 1 to 1024' -n 0 true
usage "the option of mpirun" "-np: the number of ranks is -n, such as -n 4" \
    -np 4 true
usage "too many ranks" \
    '-n "1025": expected a number of ranks from 1 to 1024' -n1025 true
usage "a number with a tail" \
    '-n "4x": expected a number of ranks from 1 to 1024' --ranks=4x true
usage "a time without unit" \
    '--grace "2": expected a time with its unit us, ms, s or min, such as 2s' \
    --grace 2 true
is "options after the program are the program's" \
    "$("$run" -n 1 echo -n 2 --help)" "2 --help"
is "-- ends the options" "$("$run" -n 1 -- echo x)" x
out=$("$run" --help)
is "--help: exit 0" $? 0
is "--help: no line beyond 80 columns" "$(awk 'length > 80' <<<"$out")" ""
matches "--version" "$("$run" --version | head -1)" 'dtensor-run [0-9.]+ \(.*\)'
is "default: as many ranks as usable CPUs" \
    "$("$run" sh -c 'echo $DTN_WORLD_SIZE' | wc -l)" "$(nproc)"

# ------------------------------------------------------------------- CPUs ---
# cpus N OPTION...: of each of N ranks, the CPUs that it may use, a line each
cpus() {
    "$run" -n "$1" "${@:2}" grep ^Cpus_allowed: /proc/self/status |
        sed 's/.*:[[:space:]]*//; s/,//g'
}
if "$run" --bind -n 1 true 2>"$dir/err"; then
    mapfile -t sets < <(cpus 2 --bind)
    all=$(cpus 1)
    if [ "$(nproc)" -gt 1 ] && [ ${#all} -le 16 ]; then
        is "--bind: two ranks have no CPU in common" \
            $((0x${sets[0]} & 0x${sets[1]})) 0
        is "and all CPUs together" $((0x${sets[0]} | 0x${sets[1]})) $((0x$all))
    else
        skip_test "--bind: two ranks have no CPU in common" "$(nproc) CPUs"
        skip_test "and all CPUs together" "$(nproc) CPUs"
    fi
    one=$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')
    is "of one CPU, both have it" \
        "$(taskset -c "$one" "$run" -bn 2 grep ^Cpus_allowed_list: \
            /proc/self/status | grep -cw "$one")" 2
else
    matches "--bind: without hwloc the line says so" "$(head -1 "$dir/err")" \
        'dtensor-run: --bind: not in this build, which is without hwloc'
fi
is "without --bind each rank has all" "$(cpus 2 | sort -u)" "$(cpus 1)"

# ------------------------------------------------------------ environment ---
is "each rank has its number" "$("$run" -n 3 sh -c \
    'echo $DTN_RANK $DTN_WORLD_SIZE $DTN_LOCAL_RANK $DTN_LOCAL_SIZE' | sort)" \
    "0 3 0 3
1 3 1 3
2 3 2 3"
job=$("$run" -n 3 sh -c 'echo $DTN_JOB' | sort -u)
matches "all have one job name of 32 random digits" "$job" '[0-9a-f]{32}'
[ "$job" != "$("$run" -n 1 sh -c 'echo $DTN_JOB')" ]
ok $? "the next job has another"
key=$("$run" -n 3 sh -c 'echo $DTN_KEY' | sort -u)
matches "all have one key of 64 random digits" "$key" '[0-9a-f]{64}'
[ "$key" != "$test_key" ] &&
    [ "$key" != "$("$run" -n 1 sh -c 'echo $DTN_KEY')" ]
ok $? "which is this job's alone"
is "Slurm's variables are not the ranks'" "$(
    SLURM_PROCID=0 SLURMD_NODENAME=n0 SLURM_JOB_ID=1 SLURMX=kept \
        "$run" -n 1 env | grep ^SLURM)" "SLURMX=kept"
is "-C names the cluster file" \
    "$("$run" -n 1 -C "$top_srcdir/conf/laptop.ini" sh -c 'echo $DTN_CLUSTER')" \
    "$top_srcdir/conf/laptop.ini"
is "a rank that is late is logged, if nobody says what to log" \
    "$("$run" -n 1 sh -c 'echo $DTN_LOG')" stall
is "who says what to log gets that" \
    "$(DTN_LOG=off "$run" -n 1 sh -c 'echo $DTN_LOG')" off
is "rank 0 reads our input, the others nothing" \
    "$(printf 'a\nb\n' | "$run" -n 3 sh -c 'echo $DTN_RANK $(wc -l)' | sort)" \
    "0 2
1 0
2 0"
fds='cd /proc/$$/fd && echo *'
is "a rank has the descriptors it would have without dtensor-run" \
    "$("$run" -l -n 2 sh -c "$fds" | sort)" \
    "[0] $(sh -c "$fds")
[1] $(sh -c "$fds")"

# ----------------------------------------------------------------- output ---
is "-l labels whole lines, and the last without newline" \
    "$("$run" -l -n 2 printf 'a\n\nb' | sort)" \
    "[0] 
[0] a
[0] b
[1] 
[1] a
[1] b"
is "-l keeps errors on stderr" \
    "$("$run" -l -n 1 sh -c 'echo out; echo err >&2' 2>&1 >/dev/null)" "[0] err"
"$run" -l -n 4 sh -c 'seq -f "$DTN_RANK %.0f" 20000' >"$dir/out"
awk '{ r = substr($1, 2, 1); if (r != $2 || $3 != ++n[r]) exit 1 }
    END { for (r = 0; r < 4; r++) if (n[r] != 20000) exit 1 }' "$dir/out"
ok $? "-l: 80000 lines of four ranks are all there, whole and in order"
"$run" -l -n 2 sh -c 'head -c 100000 /dev/zero | tr "\0" x' >"$dir/out"
is "-l breaks a line of 100000 bytes and loses nothing" \
    "$(tr -cd x <"$dir/out" | wc -c) $(cut -c1-4 "$dir/out" | sort | uniq -c | tr -s ' \n' ' ')" \
    "200000  2 [0] 2 [1] "
timeout 10 "$run" -l -n 2 yes 2>/dev/null | head -1 >"$dir/out"
matches "-l: when the reader leaves, writers get SIGPIPE" \
    "${PIPESTATUS[0]} $(cat "$dir/out")" '141 \[[01]\] y'

if [ -w /dev/full ]; then
    err=$("$run" -l -n 2 echo x 2>&1 >/dev/full)
    is "-l: a full disk is no success" $? 125
    is "and one line says so" "$err" "dtensor-run: cannot write the output of \
the ranks: No space left on device"
else
    skip_test "-l: a full disk is no success" "no /dev/full"
    skip_test "and one line says so" "no /dev/full"
fi

# ---------------------------------------------------------------- signals ---
# start ARGS...: in the background, as from a terminal; pid in $guard
start() {
    : >"$dir/out"
    set -m
    "$run" "$@" >"$dir/out" 2>"$dir/err" &
    guard=$!
    set +m
}
# A rank waits in bash itself: a child that bash has just forked still has the
# trap, and would tell of the signal a fourth time.
mkfifo "$dir/never"
for signal in INT TERM HUP QUIT USR1; do
    start -n 3 --grace 300ms bash -c "trap 'echo got $signal; exit 0' $signal
        exec 3<>'$dir/never'; echo ready; read -r -t 60 <&3"
    lines "$dir/out" 3
    kill -$signal $guard
    wait $guard
    is "SIG$signal reaches every rank" "$? $(grep -c "got $signal" "$dir/out")" \
        "0 3"
done
start -n 3 sh -c 'echo ready; exec sleep 60'
lines "$dir/out" 3
kill -TERM $guard
wait $guard
is "ranks that die of the signal: 143" $? 143
is "and one line says what happened" "$(cat "$dir/err")" \
    "dtensor-run: signal 15 (Terminated): ending 3 ranks"
start -n 2 --grace 200ms bash -c 'trap "" TERM; echo $$; while :; do sleep 60; done'
lines "$dir/out" 2
kill -TERM $guard
wait $guard
is "ranks that ignore the signal are killed after the grace" $? 137
mkfifo "$dir/fifo"
# shellcheck disable=SC2217 # a reader that reads nothing
sleep 20 <"$dir/fifo" &
reader=$!
set -m
"$run" -l -n 2 --grace 200ms yes >"$dir/fifo" 2>/dev/null &
guard=$!
set +m
sleep .5
SECONDS=0
kill -INT $guard
wait $guard
is "ranks whose output nobody reads end too" "$? $((SECONDS > 5))" "130 0"
kill $reader
wait $reader 2>/dev/null
(trap '' HUP; exec "$run" -n 1 sleep .5) &
guard=$!
sleep .2
kill -HUP $guard
wait $guard
is "under nohup SIGHUP stays ignored" $? 0
start -n 2 bash -c 'echo $$; for ((;;)); do sleep .01; done'
lines "$dir/out" 2
mapfile -t pids <"$dir/out"
kill -TSTP $guard
is "SIGTSTP stops dtensor-run and its ranks" "$(states TTT $guard "${pids[@]}")" TTT
kill -CONT $guard
matches "SIGCONT starts them again" "$(states '[^T]{3}' $guard "${pids[@]}")" \
    '[^T]{3}'
kill -TERM $guard
wait $guard

# ---------------------------------------------------------------- orphans ---
# Each rank starts two processes, one of which leaves its group and session.
family='sleep 60 & echo $!; setsid sleep 60 & echo $!; echo $$; '
"$run" -n 2 --grace 200ms bash -c "$family exit 0" >"$dir/out"
is "ranks that leave processes behind still end with 0" $? 0
gone
ok $? "and what they left is gone"
"$run" -n 2 --grace 200ms bash -c "$family"' [ $DTN_RANK = 0 ] && exit 4
    sleep 60' >"$dir/out" 2>/dev/null
is "a failure with processes left behind keeps its code" $? 4
gone
ok $? "and nothing is left"

start -n 2 bash -c "$family wait"
lines "$dir/out" 6
supervisor=$(pgrep -P $guard)
kill -KILL $guard
wait $guard 2>/dev/null
gone "$supervisor"
ok $? "SIGKILL to dtensor-run itself: not one process is left"

start -n 2 bash -c "$family wait"
lines "$dir/out" 6
supervisor=$(pgrep -P $guard)
kill -KILL "$supervisor"
wait $guard
is "SIGKILL to its supervisor: exit 137" $? 137
gone
ok $? "and not one process is left"
matches "and one line says so" "$(cat "$dir/err")" \
    'dtensor-run: supervisor \(pid [0-9]+\) killed by signal 9 \(Killed\): killing what is left'
done_testing

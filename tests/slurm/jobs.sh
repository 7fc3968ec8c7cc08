# shellcheck shell=bash
# jobs.sh - whole jobs of the README and the manual, many at once, and again
#
# Parts of slurm.sh, which runs them inside its Slurm of four nodes.

# In a namespace of root the names of the nodes can be made to resolve.
named() {
    printf '%s\n' '127.0.0.1 localhost' '127.0.0.2 n0' '127.0.0.3 n1' \
        '127.0.0.4 n2' '127.0.0.5 n3' >hosts
    mount --bind hosts /etc/hosts
}

# Slurm binds the ranks, each to a CPU of its own; [nodes] cpus stays within that.
bound() {
    local run=(srun -Q -n2 '--cpu-bind=map_cpu:1,0')

    [ "$(nproc)" -gt 1 ] || { skip_test "Slurm binds ranks" "one CPU"; return; }
    printf '%s\n' '[cluster]' 'version = 1' '[nodes "a"]' 'hosts = @step' \
        'ranks = 2' 'cpus = 0-1 | 0-1' >bound.ini
    sed 's/^cpus.*/cpus = 0 | 1/' bound.ini >crossed.ini
    # shellcheck disable=SC2016 # of the shell of each rank
    is "--cpu-bind gives each rank a CPU" "$(
        "${run[@]}" bash -c 'echo $SLURM_PROCID $(taskset -cp $$)' |
            sed 's/pid.*: //' | sort | paste -sd ,)" "0 1,1 0"
    is "with cpus in the file a rank stays on it, and says so" "$(
        DTN_LOG=info "${run[@]}" "$top_builddir/dtensor-bench" -C bound.ini -e 8 \
            -n 1 allreduce 2>&1 | sed -n 's/.*rank \(.\)\] cpus: bound to /\1 /p' |
            sort | paste -sd '|')" \
        "0 1, all that the launcher allows of 0-1|1 0, all that the launcher allows of 0-1"
    is "CPUs that Slurm does not allow are refused, with the option" "$(
        "${run[@]}" "$top_builddir/dtensor-bench" -C crossed.ini -e 8 -n 1 \
            allreduce 2>&1 | grep -v '^srun' | sort -u |
            grep -cE 'cpus: rank [01] on .* is to run on [01], but may only on [01] \(.*--cpu-bind\)')" 1
}

# ended JOB: until the queue is empty of it, at most a minute
ended() {
    local end=$((SECONDS + 60))
    while [ -n "$(squeue -h -j "$1" 2>/dev/null)" ] && [ $SECONDS -lt $end ]; do
        sleep .05
    done
}

# fence WORD: the README's example of that kind
fence() {
    awk -v fence="\`\`\`$1" '
        inside && /^```/ { exit }
        inside { print }
        $0 == fence { inside = 1 }' "$top_srcdir/README.md"
}

# user_program FILE.c: compiled as users do
user_program() {
    local library=$top_builddir/.libs
    # shellcheck disable=SC2086 # a list of words
    ${CC:-cc} $SANITIZER_CFLAGS -I"$top_srcdir/lib" -o "${1%.c}" "$1" \
        -L"$library" -ldtensor -Wl,-rpath,"$library"
}

# The README's cluster files, program and job; the two nodes have the names and
# addresses of these, and the bench has 64 KiB to move.
readme() {
    local job turned='rank 0 holds 0 8, 16 24, 32 40, ...'
    fence ini | sed 's/^hosts = node\[1-2\]$/hosts = n[0-1]\naddresses = 127.0.0.[2-3]/' \
        >pair.ini
    fence conf >step.ini
    fence c >turn.c
    user_program turn.c
    fence sh | sed 's/\(dtensor-bench.*\)/\1 -e 64K -n 2/' >job.sh
    job=$(PATH=$top_builddir:$PATH sbatch --parsable -w n0,n1 -o job.out job.sh)
    ended "$job"
    is "the README's job turns rows into columns on two nodes" \
        "$(grep '^rank 0 holds' job.out)" "$turned"
    is "and measures them" "$(grep -c '^# wrong results 0 ' job.out) $(
        head -c 1 speed.json)" "1 {"
    is "each of its steps ends when a rank fails" \
        "$(grep -c '^srun --kill-on-bad-exit=1 ' job.sh)" 2
    [ -n "$1" ] || { skip_test "its file for any allocation" "needs root"; return; }
    named || return
    sed 's/pair\.ini/step.ini/; /dtensor-bench/d' job.sh >step.sh
    job=$(sbatch --parsable -w n1,n2 -o step.out step.sh)
    ended "$job"
    is "with its file for any allocation on two other nodes" \
        "$(grep '^rank 0 holds' step.out)" "$turned"
    umount /etc/hosts
}

# turns CLAIM TIMES COMMAND...: its output says that many times that rows of 8
# ranks, or 4, became columns
turns() {
    local claim=$1 times=$2
    shift 2
    rm -f turns.*out
    "$@" >turns.out 2>&1
    is "$claim" "$? $(cat turns.*out | grep -c '^rank 0 holds 0 1, 8 9, 16 17, ...$')" \
        "0 $times"
    grep -hE 'error|boot' turns.*out | sed 's/^/# /'
}

# What the 4 ranks of the README's program do, started in other ways.
several() {
    local two=(-N2 -w "n0,n1" --ntasks-per-node=2)
    [ -n "$1" ] || { skip_test "several steps and jobs at once" "needs root"; return; }
    named || return
    unset DTN_CLUSTER
    is "dtensor-conf --doctor: what this Slurm has as by default" "$(
        srun -Q -N1 -n1 -w n0 "$top_builddir/dtensor-conf" --doctor 2>&1 |
            awk '$2 == "slurm" || $2 == "key" || $2 == "names" { print $1, $2 }' |
            sort | uniq -c | tr -s ' ' | paste -sd ,)" " 3 note slurm, 1 ok key, 1 ok names"
    turns "--cpus-per-task" 1 srun -Q "${two[@]}" --cpus-per-task=4 ./turn
    turns "a step of unlike parts is one world" 1 \
        srun -Q -N1 -n1 -w n0 ./turn : -N1 -n3 -w n1 ./turn
    turns "a heterogeneous job, too" 1 salloc -Q -N1 -n1 -w n0 : -N1 -n3 -w n1 \
        srun -Q --het-group=0,1 ./turn
    # shellcheck disable=SC2016 # of the shell in the allocation
    turns "three steps at once, by --overlap" 3 salloc -Q "${two[@]}" bash -c '
        for i in 1 2 3; do
            srun -Q --overlap --kill-on-bad-exit=1 ./turn >turns.$i.out 2>&1 &
            steps="$steps $!"
        done
        for step in $steps; do wait $step || exit; done'
    # One step starts for as long as its last rank is late.
    # shellcheck disable=SC2016
    turns "a step beside one that still starts" 2 salloc -Q "${two[@]}" bash -c '
        srun -Q --overlap bash -c "[ \$SLURM_PROCID != 3 ] || sleep 2; exec ./turn" \
            >turns.late.out 2>&1 &
        sleep .3
        srun -Q --overlap ./turn && wait $!'
    printf '%s\n' '#!/bin/bash' 'srun --kill-on-bad-exit=1 ./turn' >array.sh
    turns "four jobs of an array at once on the same nodes" 4 \
        sbatch --wait --array=0-3 "${two[@]}" -o turns.%a.out array.sh
    umount /etc/hosts
}

# The last part of dtensor-tutorial(7), in a folder of its own.
tutorial() {
    [ -n "$1" ] || { skip_test "the tutorial's job" "needs root"; return; }
    named && mkdir tutorial && cd tutorial || return
    session_paths
    page_run "$top_srcdir/man/dtensor-tutorial.7" '^(a-cluster|a-job)'
    cd .. && umount /etc/hosts
}

# node_dies NODE: its daemon, and all that runs there, and Slurm is told
node_dies() {
    local task
    pkill -KILL -f "slurmd -D -N $1 -f $SLURM_CONF"
    grep -lz "^SLURMD_NODENAME=$1" /proc/[0-9]*/environ 2>/dev/null |
        while read -r task; do
            task=${task//[^0-9]/}
            kill -KILL "$(awk '{ print $4 }' "/proc/$task/stat")" "$task"
        done 2>/dev/null
    scontrol update NodeName="$1" State=DOWN Reason=dead
}

# The example of dtensor-slurm(7): a node dies while it counts.
requeued() {
    local job end=$((SECONDS + 60))
    [ -n "$1" ] || { skip_test "a job that is requeued" "needs root"; return; }
    named && mkdir examples || return
    page_examples "$top_srcdir/man/dtensor-slurm.7" examples
    cp "$(grep -l '^/\* count.c' examples/*)" count.c
    cp "$(grep -l '^# count.sbatch' examples/*)" count.sbatch
    user_program count.c
    job=$(sbatch --parsable count.sbatch)
    until grep -q '^step 4$' count.out 2>/dev/null || [ $SECONDS -ge $end ]; do
        sleep .02
    done
    node_dies n1
    # Slurm lets a requeued job wait for two minutes; who has it may say "now".
    until grep -q '^step 15$' count.out || [ $SECONDS -ge $end ]; do
        scontrol update job "$job" StartTime=now 2>/dev/null
        sleep .05
    done
    ended "$job"
    is "a node dies: the job runs again on other nodes" "$(
        scontrol show job "$job" | grep -oE 'JobState=[A-Z]+|Restarts=[0-9]+|NodeList=n.*' |
            sort | paste -sd ' ')" "JobState=COMPLETED NodeList=n[2-3] Restarts=1"
    is "and goes on where it has saved" "$(
        sed -n 's/^step //p' count.out | awk '
            $1 < last { print "again from", $1 - last }
            { last = $1; n++ }
            END { print "to", last, (n <= 19 ? "in" : "not in") , "19 lines or fewer" }')" \
        "to 15 in 19 lines or fewer"
    umount /etc/hosts
}

#!/bin/bash
# slurm.sh - ranks find themselves under a real Slurm of four nodes
#
# Outside, this script starts Slurm with itself as the command; inside, it
# makes the claims.  DTN_TEST_BIG=1 adds a job of 1024 ranks on 128 nodes (15
# s).
#
# Without this test, srun could start a job whose ranks do not find each other,
# since every other test makes up the variables of Slurm.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/session.sh"
. "$top_srcdir/tests/slurm/jobs.sh"
tests=$top_srcdir/tests
who=$top_builddir/tests/cluster/whoami_print

# ranks CLAIM EXPECTED COMMAND...: its sorted lines, job and step numbers as #
ranks() {
    local claim=$1 expected=$2
    shift 2
    is "$claim" "$("$@" 2>&1 | sort -n | sed 's/step [0-9]*\.[0-9]*/step #/')" \
        "$expected"
}

# refused CLAIM EXPECTED COMMAND...: one of the lines that COMMAND has to say
refused() {
    local claim=$1 expected=$2 out
    shift 2
    out=$("$@" 2>&1)
    if grep -qxF "$expected" <<<"$out"; then
        ok 0 "$claim"
    else
        is "$claim" "$out" "$expected"
    fi
}

file() {
    printf '%s\n' '[cluster]' 'version = 1' '[nodes "a"]' "hosts = $2" \
        "ranks = $3" '[mesh "world"]' "dims = world=$4" >"$1"
}

steps() {
    ranks "block order, two nodes of two" "0 4 0 n0 Slurm step #
1 4 1 n0 Slurm step #
2 4 0 n1 Slurm step #
3 4 1 n1 Slurm step #" srun -Q -N2 -w n0,n1 --ntasks-per-node=2 "$who"
    ranks "three tasks here and one there" "0 4 0 n0 Slurm step #
1 4 1 n0 Slurm step #
2 4 2 n0 Slurm step #
3 4 0 n1 Slurm step #" srun -Q -n4 -m arbitrary -w n0,n0,n0,n1 "$who"
    ranks "cyclic order of one task on each node is block order" \
        "0 3 0 n0 Slurm step #
1 3 0 n1 Slurm step #
2 3 0 n2 Slurm step #" srun -Q -N3 -w n0,n1,n2 --ntasks-per-node=1 -m cyclic "$who"
    refused "cyclic order is refused" "whoami_print: Slurm started rank 1 on \
n1 (SLURM_DISTRIBUTION=cyclic), SLURM_STEP_NODELIST puts it on n0: use srun \
--distribution=block" srun -Q -N2 -w n0,n1 --ntasks-per-node=2 -m cyclic "$who"
    ranks "a step on two of the job's three nodes" "0 2 0 n1 Slurm step #
1 2 0 n2 Slurm step #" salloc -Q -N3 -n3 -w n0,n1,n2 \
        srun -Q -N2 -n2 -w n1,n2 "$who"
    ranks "srun -E, which keeps the job's SLURM_NTASKS" \
        "0 1 0 n0 Slurm step #" salloc -Q -N1 -n4 -w n0 srun -Q -E -n1 "$who"
    ranks "srun --export=NONE" "0 1 0 n0 Slurm step #" \
        srun -Q -w n0 -n1 --export=NONE "$who"
    ranks "a step of two unlike parts" "0 3 0 n0 Slurm step #
1 3 0 n1 Slurm step #
2 3 1 n1 Slurm step #" srun -Q -N1 -n1 -w n0 "$who" : -N1 -n2 -w n1 "$who"
}

files() {
    file pair.ini 'n[0-1]' 2 4
    file gpu.ini 'n[0-1]' 4 8
    file back.ini 'n1,n0' 2 4
    file far.ini 'n[2-3]' 2 4
    ranks "a file that fits" "0 4 0 n0 Slurm step #
1 4 1 n0 Slurm step #
2 4 0 n1 Slurm step #
3 4 1 n1 Slurm step #" srun -Q -N2 -w n0,n1 --ntasks-per-node=2 "$who" pair.ini
    refused "fewer tasks than the file's ranks" "whoami_print: Slurm started 6 \
tasks, 3 on each of n[0-1], but gpu.ini describes 8 ranks, 4 on each of \
n[0-1]: use srun -N2 --ntasks-per-node=4" srun -Q -N2 -w n0,n1 --ntasks-per-node=3 "$who" gpu.ini
    refused "cyclic order against a file" "whoami_print: Slurm started rank 1 \
on n1 (SLURM_DISTRIBUTION=cyclic), pair.ini puts it on n0: use srun \
--distribution=block" \
        srun -Q -N2 -w n0,n1 --ntasks-per-node=2 -m cyclic "$who" pair.ini
    refused "hosts in another order than Slurm's" "whoami_print: Slurm orders \
nodes by name and starts rank 0 on n0, back.ini puts it on n1: write \"hosts = \
n[0-1]\"" srun -Q -N2 -w n1,n0 --ntasks-per-node=2 "$who" back.ini
    refused "other nodes than the file's" "whoami_print: Slurm started 4 tasks, \
2 on each of n[0-1], but far.ini describes 4 ranks, 2 on each of n[2-3]: use \
srun -w n[2-3] -N2 --ntasks-per-node=2, or write \"hosts = @step\"" srun -Q -N2 -w n0,n1 --ntasks-per-node=2 "$who" far.ini
    refused "three tasks on a node of two ranks" "whoami_print: Slurm started 4 \
tasks, 3 on n0, 1 on n1, but pair.ini describes 4 ranks, 2 on each of n[0-1]: \
use srun -N2 --ntasks-per-node=2" srun -Q -n4 -m arbitrary -w n0,n0,n0,n1 "$who" pair.ini
}

# together TASKS CLAIM WORDS COMMAND...: all tasks say the same, within seconds
# of the minute that a rank waits for others.  A rank that cannot join tries for
# 2 s to tell the others, so a step whose nodes begin further apart is repeated.
together() {
    local tasks=$1 claim=$2 words=$3 out try said
    shift 3
    for try in 1 2 3; do
        out=$(timeout 100 "$@" 2>&1)
        said=$(grep -c "^after [0-9] s: whoami_print: .*$words" <<<"$out")
        [ "$said" != "$tasks" ] || break
        printf '# try %d: %s\n' "$try" "${out//$'\n'/$'\n'# }"
    done
    is "$claim" "$said" "$tasks"
}

# Tasks that find one another meet; wrong steps are refused by every task of
# them, and a rank that fails by itself is told.  Nothing here ends the others
# from outside.
starts() {
    local two=(-Q -N2 -w "n0,n1")
    printf '%s\n' '[cluster]' 'version = 1' '[nodes "a"]' 'hosts = n[0-1]' \
        'addresses = 127.0.0.[2-3]' 'ranks = 2' >meet.ini
    ranks "the right step meets" "0 4 0 n0 Slurm step #
1 4 1 n0 Slurm step #
2 4 0 n1 Slurm step #
3 4 1 n1 Slurm step #" srun "${two[@]}" --ntasks-per-node=2 "$who" meet.ini join
    together 8 "eight tasks for four ranks: all refuse at once" "Slurm started \
8 tasks, 4 on each of n\[0-1\], but meet.ini describes 4 ranks, 2 on each of \
n\[0-1\]: use srun -N2 --ntasks-per-node=2" \
        srun "${two[@]}" --ntasks-per-node=4 "$who" meet.ini join
    together 3 "three tasks: all refuse at once" "Slurm started 3 tasks, 2 on \
n0, 1 on n1, but meet.ini describes 4 ranks" srun "${two[@]}" -n3 "$who" \
        meet.ini join
    together 4 "cyclic order: all refuse at once" "Slurm started rank 1 on n1 \
(SLURM_DISTRIBUTION=cyclic), meet.ini puts it on n0: use srun \
--distribution=block" srun "${two[@]}" -n4 --ntasks-per-node=2 -m cyclic \
        "$who" meet.ini join
    together 4 "an order that only Slurm knows: all refuse at once" "rank . \
runs on n. (SLUR.*), meet.ini puts it on n.: use srun --distribution=block" \
        srun -Q -n4 -m arbitrary -w n0,n1,n0,n1 "$who" meet.ini join
    together 4 "one task without its file: it is told to all, and why" \
        "none.ini: error: cannot open: .*" srun "${two[@]}" --ntasks-per-node=2 bash -c '
        [ $SLURM_PROCID != 1 ] || set -- none.ini
        exec "$0" "$1" join' "$who" meet.ini
}

# The same for a leader, by the names of the nodes and the default port.
leaders() {
    [ -n "$1" ] || { skip_test "a leader without its file" "needs root"; return; }
    named || return
    together 4 "a node whose leader has no file: it is told to all, and why" \
        "none.ini: error: cannot open: .*" srun -Q -N2 -w n0,n1 --ntasks-per-node=2 bash -c '
        [ $SLURM_PROCID != 2 ] || set -- none.ini
        exec "$0" "$1" join' "$who" meet.ini
    together 4 "a node of which no rank has the file" "none.ini: error: cannot open: .*" \
        srun -Q -N2 -w n0,n1 --ntasks-per-node=2 bash -c '
        [ $SLURM_PROCID -lt 2 ] || set -- none.ini
        exec "$0" "$1" join' "$who" meet.ini
    umount /etc/hosts
}

shells() {
    local job i
    refused "the shell of salloc is no rank" "whoami_print: SLURM_JOB_ID is \
set but SLURM_PROCID, SLURM_STEP_NUM_TASKS and SLURMD_NODENAME are not: start \
it with srun, or unset SLURM_JOB_ID" salloc -Q -N2 "$who"
    printf '%s\n' '#!/bin/bash' "$who" "$top_builddir/dtensor-run -n 2 $who" \
        "exec bash $top_srcdir/conf/dtensor.sbatch $who pair.ini" >job.sh
    job=$(sbatch --parsable -N2 -w n0,n1 --ntasks-per-node=2 -o batch.out job.sh)
    for ((i = 0; i < 200; i++)); do
        [ -n "$(squeue -h -j "$job" 2>/dev/null)" ] || break
        sleep .05
    done
    sed -i 's/step [0-9]*\.[0-9]*/step #/; s/ n[^ ]* dtensor/ HOST dtensor/
        s/ '"$(hostname)"' / HOST /; s/\(Slurm job\) [0-9]*/\1 #/' batch.out
    refused "nor is the shell of a batch script" "whoami_print: in Slurm job # \
but not in a step: start it with \"srun whoami_print ...\" (SLURM_STEP_ID is \
not set)" head -1 batch.out
    ranks "but dtensor-run can start ranks in it" \
        "0 2 0 HOST dtensor-run
1 2 1 HOST dtensor-run" grep dtensor-run batch.out
    ranks "and srun as in conf/dtensor.sbatch" "0 4 0 n0 Slurm step #
1 4 1 n0 Slurm step #
2 4 0 n1 Slurm step #
3 4 1 n1 Slurm step #" grep 'Slurm step' batch.out
}

# Two nodes of two ranks that move data.  The nodes are all this machine, and
# their names resolve to nothing: the file gives them addresses.
jobs() {
    local out code bench=$top_builddir/dtensor-bench
    local two=(-N2 -w "n0,n1" --ntasks-per-node=2)
    printf '%s\n' '[cluster]' 'version = 1' '[nodes "a"]' 'hosts = n[0-1]' \
        'addresses = 127.0.0.[2-3]' 'ranks = 2' '[transport]' \
        'connect_timeout = 20s' >real.ini
    out=$(DTN_CLUSTER=real.ini timeout 60 srun -Q "${two[@]}" "$bench" \
        allreduce redistribute -b 8 -e 64K -f 64 -n 5 2>err.out)
    code=$?
    is "srun dtensor-bench, two nodes of two: exit 0, no complaint" \
        "$code $(cat err.out)" "0 "
    is "every result is right" "$(grep -c '^# wrong results 0 ' <<<"$out")" 1
    is "over tcp between the nodes and shm inside" \
        "$(grep -o 'shm+net' <<<"$out" | sort -u)" "shm+net"
    out=$(DTN_CLUSTER=real.ini timeout 60 srun -Q "${two[@]}" \
        --kill-on-bad-exit=1 bash -c '
        [ $SLURM_PROCID != 2 ] || export DTN_FAULT=kill_signal=40
        exec "$0" --loop 1000000 allreduce -b 8 -e 8' "$bench" 2>&1)
    code=$?
    is "rank 2 is killed at work: srun exits with 137" "$code" 137
    grep -q 'rank 2 on n1 died or left' <<<"$out"
    ok $? "and the others say who died"
    out=$(DTN_CLUSTER=real.ini timeout 60 srun -Q "${two[@]}" "$bench" \
        --nope 2>/dev/null)
    is "the program's exit code is srun's" $? 2
    out=$(timeout 60 srun -Q "${two[@]}" "$bench" allreduce 2>&1)
    code=$?
    is "without a file, node names that do not resolve: exit 3" "$code" 3
    # Every rank fails by itself, or names the one that told it first.
    refused "and the words say what to do" "dtensor-bench: boot: cannot look \
up \"n0\", the address of host n0: WHY (see /etc/hosts, or give IP addresses as \
[nodes] addresses in a cluster file, named by DTN_CLUSTER)" \
        sed -E 's/n0: [A-Z][a-z ]* \(/n0: WHY (/
            s/boot: rank [0-9] on n[01] failed: /boot: /' <<<"$out"
}

# A rank on n1 is killed.  The script starts the job again, on other nodes, and
# it goes on from what was saved.
restarts() {
    local job i
    [ -n "$1" ] || { skip_test "a job that starts again" "needs root"; return; }
    printf '127.0.0.%s %s\n' 1 localhost 2 n0 3 n1 4 n2 5 n3 >hosts
    mount --bind hosts /etc/hosts || return
    # shellcheck disable=SC2016 # in the ranks
    printf '%s\n' '#!/bin/bash' \
        '[ "$SLURMD_NODENAME${RESTART_EXCLUDE-}" != n1 ] ||' \
        '    export DTN_FAULT=kill_signal=80' \
        "exec $top_builddir/tests/examples/restart state.npy 60" >prog.sh
    chmod +x prog.sh
    sbatch --parsable -N2 -w n0,n1 --ntasks-per-node=2 -o 'restart-%j.out' \
        "$top_srcdir/conf/restart.sbatch" ./prog.sh >first
    for ((i = 0; i < 1200; i++)); do
        [ -n "$(squeue -h 2>/dev/null)" ] || break
        sleep .05
    done
    job=$(<first)
    is "a job whose rank was killed says who is suspect" \
        "$(grep '^restart:' "restart-$job.out")" \
        "restart: exit 137; once more, without n1"
    is "and how" "$(grep -o '"reason": "[a-z]*"' "report-$job.json")" \
        '"reason": "died"'
    grep -q '^rank 0: went on from step [1-9]0$' "slurm-$((job + 1)).out" &&
        grep -q '^rank 0: step 60$' "slurm-$((job + 1)).out"
    i=$?
    ok "$i" "the next one goes on from what was saved, and ends"
    [ "$i" = 0 ] || tail -n 20 ./*.out report-*.json | sed 's/^/# /'
    is "without the suspect node" \
        "$(scontrol show job $((job + 1)) | grep -o 'ExcNodeList=[^ ]*')" \
        ExcNodeList=n1
    umount /etc/hosts
}

many() {
    srun -N128 --ntasks-per-node=8 "$who" 2>&1 | sort -n >big.out
    is "1024 tasks on 128 nodes: everyone is somebody else" \
        "$(awk '$1 == NR - 1 && $2 == 1024 && $3 == $1 % 8 &&
            $4 == "n" int($1 / 8)' big.out | wc -l)" 1024
}

if [ "${1-}" = inside ]; then
    cd "$2" || exit 1
    tap_count=$3 ns=$4
    shift 4
    for part in "$@"; do
        "$part" "$ns"
    done
    echo "$tap_count $tap_failed" >counts
    exit 0
fi

for program in munged slurmctld slurmd srun; do
    PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null ||
        skip_all "no $program here: install munge, slurmctld, slurmd, slurm-client"
done
PATH=$PATH:/usr/sbin:/sbin
big=${DTN_TEST_BIG-}
unset "${!SLURM@}" "${!DTN_@}"
ns=
[ "$(id -u)" != 0 ] || ! "$tests/in-ns" true 2>/dev/null || ns=$tests/in-ns
# Not below TMPDIR or the build: munge wants every parent open to all.
base=$(mktemp -d /tmp/dtn-slurm.XXXXXX) && chmod 755 "$base" || exit 99
trap 'rm -rf "$base"' EXIT

# with_slurm NODES PART...
with_slurm() {
    local nodes=$1 dir=$base/$1
    shift
    $ns "$tests/slurm/slurm-here" "$dir" "$nodes" 8 \
        bash "$0" inside "$base" "$tap_count" "$ns" "$@"
    if [ -r "$base/counts" ]; then
        read -r tap_count tap_failed <"$base/counts"
        rm "$base/counts"
    else
        tail -n 3 "$dir"/log/* | sed 's/^/# /'
        ok 1 "a Slurm of $nodes nodes comes up"
    fi
}

with_slurm 4 steps files starts leaders shells jobs readme restarts \
    several tutorial requeued
SLURM_HERE_TASK=task/affinity with_slurm 1 bound
[ -z "$big" ] || with_slurm 128 many
is "no process of all this is left" "$(pgrep -f "$base/[0-9]")" ""
done_testing

#!/bin/bash
# one_line.sh - the loss of a rank is one line of the ranks that are left
#
# Jobs of one host and of several hosts, which are names on the loopback device.
# In the middle of allreduces rank 0, or the leader of a host between others, is
# killed.  All other ranks have the error to print.  One of them prints it, also
# if ranks have no connection to each other, and it names the rank that was
# killed and its host.  Beside that the launcher says which of its processes was
# killed by which signal.  A cluster file of other hosts is one line, too,
# although the rank that prints it first waits for ranks that start late.
#
# Without this test, each of a thousand ranks could print the same error, or the
# launcher could end the one that prints it before it has done so.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/job/hosts.sh"     # all_run
dir=$(mktemp -d) && cd "$dir" || exit 99
trap 'rm -rf "$dir"' EXIT
unset "${!DTN_@}" "${!SLURM@}"

# hosts | ranks of each | between those of a host | the rank that is killed
cases='1|6|shm|0
1|16|tcp|0
1|16|tcp|15
3|2|shm|0
3|2|tcp|0
3|2|shm|2
3|2|tcp|2
7|1|tcp|0
7|1|tcp|1
4|3|tcp|0
4|3|tcp|3'

# job_file HOSTS RANKS WIRE
job_file() {
    printf '%s\n' '[cluster]' 'version = 1' 'auth = none' '[nodes "all"]' \
        "hosts = n[1-$1]" "addresses = 127.0.0.[1-$1]" "ranks = $2" \
        'hca = none' '[transport]' "intra_node = $3" 'inter_node = tcp'
}

while IFS='|' read -r hosts each wire victim; do
    n=$((hosts * each))
    rm -f running.* pid.*
    job_file "$hosts" "$each" "$wire" >job.ini
    # shellcheck disable=SC2016 # of the ranks
    timeout -k 1 100 "$top_builddir/dtensor-run" -n $n -C job.ini bash -c '
        export DTN_HOST=n$((DTN_RANK / $0 + 1))
        echo $$ >"pid.$DTN_RANK"
        exec "$1" "running.line.$DTN_RANK"' \
        "$each" "$top_builddir/tests/job/telling_job" 2>said &
    launcher=$!
    all_run line $n || echo "# not all ranks run"
    kill -KILL "$(cat "pid.$victim")"
    wait $launcher
    grep -v '^dtensor-run: ' said >lines
    [ "$(wc -l <lines)" = 1 ] &&
        grep -q ": rank $victim on n$((victim / each + 1)) died or left" lines
    good=$?
    [ $good = 0 ] || sed 's/^/# /' said
    ok $good "$hosts hosts of $each ranks over $wire: the loss of rank $victim \
is one line of $((n - 1)) ranks"
done <<<"$cases"

job_file 2 2 shm >job.ini
# shellcheck disable=SC2016 # of the ranks
timeout -k 1 100 env DTN_HOST=other "$top_builddir/dtensor-run" -n 4 -C job.ini \
    bash -c '[ "$DTN_RANK" -lt 2 ] || sleep 1.5; exec "$0" running.other' \
    "$top_builddir/tests/job/telling_job" 2>said
is "the file has other hosts: one line, of a rank that waits for late ones" \
    "$(grep -v '^dtensor-run: ' said)" "rank 0 runs on other (DTN_HOST), \
job.ini puts it on n1: start it there, or set DTN_HOST=n1 to play that host"
done_testing

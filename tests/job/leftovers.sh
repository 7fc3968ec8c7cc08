#!/bin/bash
# leftovers.sh - kill -9 of ranks and launcher leaves nothing behind
#
# Three ranks sum in a loop under dtensor-run.  In turn one rank, all ranks, the
# launcher, or the launcher and all ranks are killed.  Then there must be no
# process of the job, and so none of its sockets, no AF_UNIX name, no named
# shared memory and no file.  DTN_LEFTOVER_ROUNDS: 8; make check-leftovers:
# 1000.
#
# Without this test, a job that is killed could leave memory, ports or names
# that stop the next job.
. "$top_srcdir/tests/tap.sh"
rounds=${DTN_LEFTOVER_ROUNDS-8}
dir=$(mktemp -d) && cd "$dir" || exit 99
trap 'rm -rf "$dir"' EXIT
unset "${!DTN_@}" "${!SLURM@}"
mkdir tmp work && cd work || exit 99
export LEFTOVER=$$-$RANDOM TMPDIR=$dir/tmp
victims=("one rank" "all ranks" "the launcher" "the launcher and all ranks")

# members MARK: the processes of a job, by a variable that all inherit
members() {
    grep -lzx "LEFTOVER=$1" /proc/[0-9]*/environ 2>/dev/null |
        sed 's|/proc/\(.*\)/environ|\1|'
}

# within SECONDS COMMAND...: until it succeeds
within() {
    local tick ticks=$(($1 * 20))
    shift
    for ((tick = 0; tick < ticks; tick++)); do
        "$@" && return 0
        sleep 0.05
    done
    return 1
}

gone() { [ -z "$(members "$1")" ]; }

# left NAME: what a job of that name has left, in words; and empty the folder
left() {
    grep -F "$1" /proc/net/unix
    find /dev/shm -name '*dtensor*' -newer "$dir/began" 2>/dev/null
    rm -f running
    find "$dir/work" "$dir/tmp" -mindepth 1
}

bad=0
for ((i = 0; i < rounds; i++)); do
    mark=$LEFTOVER-$i what=$((i % 4))
    touch "$dir/began"
    rm -f "$dir/ranks"
    LEFTOVER=$mark "$top_builddir/dtensor-run" -n 3 \
        bash -c "echo \$\$ \$DTN_JOB >>$dir/ranks; exec \
        $top_builddir/tests/rdma/survivor running 4096" >"$dir/said" 2>&1 &
    launcher=$!
    within 60 test -e running || echo "# it did not start"
    mapfile -t all < <(cut -d' ' -f1 "$dir/ranks")
    name=$(sed -n '1s/.* //p' "$dir/ranks")
    case $what in
    0) kill -9 "${all[$((i / 4 % ${#all[@]}))]}" ;;
    1) kill -9 "${all[@]}" ;;
    2) kill -9 $launcher ;;
    3) kill -9 $launcher "${all[@]}" ;;
    esac 2>/dev/null
    wait $launcher 2>/dev/null
    said=""
    [ "${#all[@]}" = 3 ] || said="${#all[@]} ranks were found; "
    [ -n "$name" ] || said+="no name of the job; "
    within 60 gone "$mark" || said+="processes $(members "$mark" | xargs); "
    said+=$(left "${name:-none}")
    [ -z "$said" ] && continue
    bad=$((bad + 1))
    echo "# round $i, ${victims[what]} killed: $said"
done
is "$rounds times killed, one rank to all and the launcher: nothing is left" \
    "$bad" 0
done_testing

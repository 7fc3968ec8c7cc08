#!/bin/bash
# cpu_binding.sh - [nodes] cpus: which CPUs ranks are bound to, and which are
# refused
#
# A job is started with lists of CPUs, good and bad, and each rank prints where
# it may run.
#
# Without this test, ranks could be bound to the same CPU, or not at all, and
# nothing but their speed would show it.
. "$top_srcdir/tests/tap.sh"
run=$top_builddir/dtensor-run
job=$top_builddir/tests/job/limited_job
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99
umask 077
unset "${!DTN_@}" "${!SLURM@}"

# bound CPUS [COMMAND...]: what each of 2 ranks says of it, in their order
bound() {
    printf '%s\n' '[cluster]' 'version = 1' '[nodes "here"]' \
        'hosts = localhost' 'ranks = 2' "cpus = $1" >cpus.ini
    shift
    DTN_LOG=info timeout 100 "$run" -n 2 "$@" "$job" "$dir/cpus.ini" 2>&1 |
        grep -oE '(\[rank [01]\] )?cpus: .*' | sort -u
}

allowed=$(taskset -cp $$ | sed 's/.*: //')
first=${allowed%%[-,]*}
last=${allowed##*[-,]}
if [ "$first" = "$last" ]; then
    skip_test "each rank is bound to its list" "one CPU"
else
    is "each rank is bound to its list" "$(bound "$first | $last")" \
        "[rank 0] cpus: bound to $first
[rank 1] cpus: bound to $last"
    is "what the launcher allows is kept to, with a warning" \
        "$(bound "$first,$last | $first" taskset -c "$first")" \
        "[rank 0] cpus: bound to $first, all that the launcher allows of $(
            [ $((first + 1)) = "$last" ] && echo "$first-$last" ||
                echo "$first,$last")
[rank 1] cpus: bound to $first"
    is "a rank that may use none of its CPUs refuses to start" \
        "$(bound "$first | $last" taskset -c "$first" | grep -c "cpus: rank 1 on \
.* is to run on $last, but may only on $first (change cpus, ")" 1
fi
is "none binds nothing" "$(bound none)" ""
numa=$(bound numa)
case $numa in
*'not in this build'*) skip_test "numa" "a build without hwloc" ;;
*) is "numa binds each rank" "$(grep -cE '\[rank [01]\] cpus: bound to [0-9]' \
    <<<"$numa")" 2
    if [ "$first-$last" = 0-1 ]; then
        export HWLOC_SYNTHETIC="numa:2 pu:1" HWLOC_THISSYSTEM=1
        is "ranks are dealt to NUMA nodes" "$(bound numa)" \
            "[rank 0] cpus: bound to 0
[rank 1] cpus: bound to 1"
    fi ;;
esac
done_testing

#!/bin/bash
# lost_links.sh - hosts and links between hosts are lost: all name the same
#
# Four hosts of one rank, over tcp, in network namespaces.  The tree is
#
#     node1 --- node2 --- node4        ranks 0 to 3
#          \--- node3
#
# In each case something is lost in the middle of allreduces.  All survivors
# must name the same rank, with the same reason: a dead host is not a lost link.
# Of two hosts, the one that still hears the other knows that the link is lost;
# the other only knows that it hears nothing.
# In the last, rank 0 waits for rank 2 only, and rank 1 for rank 3, and these are
# lost one after the other.  Both name the first, unless one was so late that it
# found both at once.
# Cases run at the same time, each with a network of its own.  Needs root.
#
# Without this test, each side of a lost link would name the other, and a job
# script would take a good host out.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/job/hosts.sh"
dead_after_ms=3000 heartbeat_ms=200

# name | hosts | what is lost; nothing: in the run of the line before | the rank
# that is named, or one of these | ranks that must say so | words | for which rank
# each waits, not in an allreduce
cases='link at the root|4|deaf 1 3; deaf 3 1|2|0 1 2 3|the link between node1 and node3 is lost, and both hosts run
link below|4|deaf 2 4; deaf 4 2|3|0 1 2 3|the link between node2 and node4 is lost, and both hosts run
link outside of the tree|4|deaf 3 4; deaf 4 3|3|0 1 2 3|the link between node3 and node4 is lost, and both hosts run
one way of a link|4|deaf 1 3|2|0 1 2 3|the link between node1 and node3 is lost, and both hosts run
host of rank 0|4|unplug 1|0|1 2 3|is dead or cut off
cut-off host of rank 0|4||0|0|is cut off: its host has heard no other
inner host|4|unplug 2|1|0 2 3|is dead or cut off
leaf|4|unplug 4|3|0 1 2|is dead or cut off
cut-off leaf|4||3|3|is cut off: its host has heard no other
two hosts at once|4|unplug 3 4|2 3|0 1|is dead or cut off
a host and its parent at once|4|unplug 2 4|1 3|0 2|is dead or cut off
a host, and a second later another|4|unplug 4; sleep 1; unplug 3|3 2|0 1|is dead or cut off|2 3 2 3
of two hosts, one way|2|deaf 1 2|1|1|the link between node1 and node2 is lost, and both hosts run
who hears nothing then|2||1|0|is dead or cut off
of two hosts, the other way|2|deaf 2 1|1 0|0|the link between node1 and node2 is lost, and both hosts run'

# one_case LINE: prints what each rank said, as "RANK CODE CULPRIT TEXT"
one_case() {
    local n what waits r
    IFS='|' read -r _ n what _ _ _ waits <<<"$1"
    read -r -a waits <<<"$waits"
    hosts_begin "$1"
    for ((r = 1; r <= n; r++)); do host "$r"; done
    printf '%s\n' '[cluster]' 'version = 1' '[nodes "all"]' \
        "hosts = node[1-$n]" 'ranks = 1' '[transport]' 'intra_node = shm' \
        'inter_node = tcp' "dead_after = ${dead_after_ms}ms" \
        "heartbeat = ${heartbeat_ms}ms" 'op_timeout = 50s' >job.ini
    for ((r = 0; r < n; r++)); do
        start_rank "$r" $((r + 1)) 0 1 "$n" links ${waits:+go "${waits[r]}"}
    done
    all_run links "$n" || echo "not all run"
    touch go
    sleep 0.3
    eval "$what"
    wait "${rank[@]}"
    for ((r = 0; r < n; r++)); do
        printf '%s|%s|%s|%s\n' "$r" "$(fact code "$r")" "$(fact rank "$r")" \
            "$(fact text "$r")"
        [ "$(fact code "$r")" ] || sed 's/^/# /' "rank.$r"
    done
    kill "${host[@]}"
}

if [ -n "${HOSTS_INSIDE-}" ]; then
    one_case "$1"
    exit
fi
[ "$(id -u)" = 0 ] ||
    skip_all "network namespaces need root"
"$top_srcdir/tests/in-ns" true 2>/dev/null ||
    skip_all "no network namespaces here"
said=$(mktemp -d) || exit 99
trap 'rm -rf "$said"' EXIT
while read -r line; do
    IFS='|' read -r name _ what _ <<<"$line"
    [ -z "$what" ] || (one_case "$line") >"$said/$name" 2>&1 &
done <<<"$cases"
wait
while IFS='|' read -r name _ what culprit ranks words _; do
    [ -z "$what" ] || file=$said/$name
    grep -q '^1\.\.0 # SKIP' "$file" && skip_all "$(sed 's/.*SKIP //' "$file")"
    same=
    for r in $ranks; do
        IFS='|' read -r _ code named text < <(grep "^$r|" "$file")
        same=${same:-$named}
        [ "$code" = EPEER ] && [ "$named" = "$same" ] &&
            [[ " $culprit " == *" $named "* ]] &&
            [[ $text == *"rank $named on node$((named + 1)) "*"$words"* ]]
        good=$?
        [ $good = 0 ] || sed 's/^/# /' "$file"
        ok $good "$name: rank $r names rank ${culprit/ / or }: $words"
    done
done <<<"$cases"
done_testing

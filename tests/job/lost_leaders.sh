#!/bin/bash
# lost_leaders.sh - the leader of a host and another rank are killed at once
#
# Three hosts of two ranks, over tcp, in network namespaces.  The tree is
#
#     node1 (0, 1) --- node2 (2, 3)
#                 \--- node3 (4, 5)
#
# In each case two ranks are killed in the middle of allreduces.  All others must
# name the same one of them, also those that had heard of the others only through
# a killed rank.  Cases run at the same time, each with a network of its own.
# Needs root.
#
# Without this test, the ranks behind a killed leader would name it, and all
# others the other rank.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/job/hosts.sh"

# name | ranks that are killed
cases='a leader and a rank of another host|2 5
two leaders|2 4
rank 0 and a rank of another host|0 3
rank 0 and another leader|0 2
both ranks of a host|4 5'

# end_of PROCESS: the last of those that were started for each other
end_of() {
    local at=$1 next=()
    while read -ra next <"/proc/$at/task/$at/children"; [ "${next[*]}" ]; do
        at=${next[0]}
    done
    echo "$at"
}

# one_case LINE: prints what each rank said, as "RANK CODE CULPRIT TEXT"
one_case() {
    local lost victims=() r
    IFS='|' read -r _ lost <<<"$1"
    hosts_begin "$1"
    for r in 1 2 3; do host "$r"; done
    printf '%s\n' '[cluster]' 'version = 1' '[nodes "all"]' \
        'hosts = node[1-3]' 'ranks = 2' '[transport]' 'intra_node = shm' \
        'inter_node = tcp' 'op_timeout = 50s' >job.ini
    for ((r = 0; r < 6; r++)); do
        start_rank "$r" $((r / 2 + 1)) $((r % 2)) 2 6 leaders
    done
    all_run leaders 6 || echo "not all run"
    for r in $lost; do victims+=("$(end_of "${rank[r]}")"); done
    kill -KILL "${victims[@]}"
    wait "${rank[@]}" 2>/dev/null
    for ((r = 0; r < 6; r++)); do
        printf '%s|%s|%s|%s\n' "$r" "$(fact code "$r")" "$(fact rank "$r")" \
            "$(fact text "$r")"
    done
    kill "${host[@]}"
}

if [ -n "${HOSTS_INSIDE-}" ]; then
    one_case "$1"
    exit
fi
[ "$(id -u)" = 0 ] || skip_all "network namespaces need root"
"$top_srcdir/tests/in-ns" true 2>/dev/null ||
    skip_all "no network namespaces here"
said=$(mktemp -d) || exit 99
trap 'rm -rf "$said"' EXIT
while read -r line; do
    (one_case "$line") >"$said/${line%|*}" 2>&1 &
done <<<"$cases"
wait
while IFS='|' read -r name lost; do
    file=$said/$name
    grep -q '^1\.\.0 # SKIP' "$file" && skip_all "$(sed 's/.*SKIP //' "$file")"
    same='' good=0
    for r in 0 1 2 3 4 5; do
        [[ " $lost " == *" $r "* ]] && continue
        IFS='|' read -r _ code named text < <(grep "^$r|" "$file")
        same=${same:-$named}
        [ "$code" = EPEER ] && [ "$named" = "$same" ] &&
            [[ " $lost " == *" $named "* && $text == *"died or left"* ]] ||
            good=1
    done
    [ $good = 0 ] || sed 's/^/# /' "$file"
    ok $good "$name: all others name rank ${same:-?}, of $lost"
done <<<"$cases"
done_testing

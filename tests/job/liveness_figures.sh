#!/bin/bash
# liveness_figures.sh - how soon a loss is known, and what watching costs
#
# Prints one line for each figure: what, the measure, the bound, and whether it
# was kept.  `make bench-liveness` runs it; LIVENESS_ROUNDS (200) jobs are killed
# in each case, and ten ranks for each CPU run for LIVENESS_MINUTES (10).  The
# lost link needs root, the guest QEMU.  doc/performance/liveness.md has what came of it.
#
# Without this test, losses could be noticed later than the manual promises
# and every test would pass: tests bound no time that a busy machine stretches.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/job/hosts.sh"
survivor=$top_builddir/tests/rdma/survivor
rounds=${LIVENESS_ROUNDS:-200} minutes=${LIVENESS_MINUTES:-10}

# figure WHAT VALUE BOUND UNIT
figure() {
    local verdict=missed
    awk -v v="$2" -v b="$3" 'BEGIN { exit !(v != "" && v <= b) }' && verdict=kept
    printf '%-52s %10s, at most %s %s: %s (load %s)\n' "$1" "$2" "$3" "$4" \
        $verdict "$(cut -d' ' -f1 /proc/loadavg)"
}

# The p99 of each case of test_liveness that kills, the longest that stops.
killed() {
    local what case wire p99 most
    "$top_builddir/tests/job/test_liveness" "$rounds" "${1:-0}" |
        sed 's/^ok [0-9]* - //' | while read -r what; do
        case $what in
        '# over '*) wire=${what#\# } ;;
        *'all name the same rank') case=${what%%:*} ;;
        '# the last knows'*)
            p99=${what#*(p50), } most=${what#*(p99), }
            p99=${p99%% *} most=${most%% *}
            case $case in
            *stopped) figure "$case, $wire, longest" "$most" 1100 ms ;;
            *) figure "$case, $wire${1:+, with $1 MiB}, p99" "$p99" 250 ms ;;
            esac ;;
        'not ok'*) echo "$what" ;;
        esac
    done
}

# pair_file FILE LINE...: conf/two-nodes.ini without its RDMA devices, with
# hosts that are here and two ranks on each, and further settings
pair_file() {
    local file=$1
    shift
    sed -e '/^hca\|^gid_index\|^cpus\|^mtu\|^traffic\|^service\|^qp_per/d' \
        -e '/^timeout/d; /^port/d; s/^ranks .*/ranks = 2/' \
        -e 's/^world_size.*/world_size = 4/; s/inter_node .*/inter_node = tcp/' \
        -e '/^\[mesh/,$d' -e "s/^hosts .*/hosts = ${HOSTS_NAMES:-node[1-2]}/" \
        -e "s/^addresses .*/addresses = ${HOSTS_AT:-10.99.0.[1-2]}/" \
        "$top_srcdir/conf/two-nodes.ini" >"$file"
    printf '%s\n' "$@" >>"$file"
}

# Inside: prints the longest after_ms of four ranks whose link is cut.
link_cut() {
    local r worst=0 ms
    hosts_begin link
    host 1; host 2
    pair_file job.ini
    for r in 0 1 2 3; do
        start_rank "$r" $((r / 2 + 1)) $((r % 2)) 2 4 cut
    done
    all_run cut 4
    unplug 2
    wait "${rank[@]}"
    for r in 0 1 2 3; do
        ms=$(fact after_ms "$r")
        [ "${ms:-99999}" -le "$worst" ] || worst=${ms:-99999}
    done
    kill "${host[@]}"
    echo "$worst"
}

# Prints the times after which the two ranks of a guest know that the other guest
# is switched off.
switched_off() {
    "$top_srcdir/tests/rdma/image.sh" "$top_builddir/rdma-image" >&2 &&
        "$top_srcdir/tests/rdma/pair.sh" "$top_builddir/rdma-image" \
            "$top_builddir/rdma-out/switched_off" 120 \
            "$top_srcdir/tests/rdma/switched_off.sh" 2>/dev/null |
        sed -n 's/^after_ms //p'
}

# The CPU time of the beating thread of each of four ranks that do nothing.
heartbeat() {
    local dir pid task seconds=20 before=() after ns most=0
    dir=$(mktemp -d)
    "$top_builddir/dtensor-run" -n 4 sh -c 'exec "$0" "$1.$DTN_RANK" 64 "$1.go"' \
        "$survivor" "$dir/running" >/dev/null 2>&1 &
    until [ -e "$dir/running.0" ] && [ -e "$dir/running.1" ] &&
        [ -e "$dir/running.2" ] && [ -e "$dir/running.3" ]; do sleep .1; done
    sleep 1
    beats() {
        for pid in $(pgrep -f "$dir/running\\.[0-3] 64"); do
            for task in /proc/"$pid"/task/*; do
                [ "${task##*/}" = "$pid" ] || cut -d' ' -f1 "$task/schedstat"
            done
        done
    }
    mapfile -t before < <(beats)
    sleep $seconds
    mapfile -t after < <(beats)
    kill %%
    wait
    rm -rf "$dir"
    for task in "${!after[@]}"; do
        ns=$((after[task] - before[task]))
        [ $ns -le $most ] || most=$ns
    done
    figure "heartbeats of ${#after[@]} idle ranks, percent of a core" \
        "$(awk -v ns=$most -v s=$seconds 'BEGIN { print ns / s / 1e7 }')" 0.1 %
}

# The difference of the medians of 41 starts each, one after the other.
proof() {
    local dir i auth
    dir=$(mktemp -d)
    for auth in key none; do
        HOSTS_NAMES=a,b HOSTS_AT=127.0.0.1,127.0.0.2 pair_file "$dir/$auth.ini"
        sed -i "s/^auth .*/auth = $auth/" "$dir/$auth.ini"
    done
    for ((i = 0; i < 41; i++)); do
        for auth in key none; do
            DTN_LOG=info "$top_builddir/dtensor-run" -n 4 -C "$dir/$auth.ini" \
                sh -c 'if [ $DTN_RANK -lt 2 ]; then DTN_HOST=a; else DTN_HOST=b; fi
                    export DTN_HOST; exec "$0" "$1" join' \
                "$top_builddir/tests/cluster/whoami_print" "$dir/$auth.ini" 2>&1 |
                sed -n 's/^.*rank 0\].* joined in \([0-9.]*\) \([mu]s\)$/\1 \2/p' |
                awk '{ print $2 == "us" ? $1 / 1000 : $1 }' >>"$dir/$auth"
        done
    done
    median() { sort -n "$1" | sed -n 21p; }
    figure "proofs of 4 ranks, $(median "$dir/key") ms with, of $(wc -l <"$dir/key")" "$(
        awk -v a="$(median "$dir/key")" -v b="$(median "$dir/none")" \
            'BEGIN { if (a != "" && b != "") print a - b }')" 5 ms
    rm -rf "$dir"
}

# Ranks that nobody kills, ten for each CPU.
crowd() {
    local n=$((10 * $(nproc))) said pid
    said=$(mktemp)
    "$top_builddir/dtensor-run" -n $n "$survivor" /dev/null 4096 >"$said" 2>&1 &
    pid=$!
    for ((i = 0; i < 60 * minutes; i++)); do
        sleep 1
        kill -0 $pid 2>/dev/null || break
    done
    figure "false deaths, $n ranks on $(nproc) CPUs, $((i / 60)) minutes" \
        "$(grep -c '^code' "$said")" 0 deaths
    kill $pid 2>/dev/null
    wait $pid 2>/dev/null
    rm "$said"
}

if [ "${1-}" = link ]; then
    link_cut
    exit
fi
echo "# $(nproc) CPUs, $(date +%F), $("$top_builddir/dtensor-run" --version | head -1)"
for part in ${LIVENESS_PARTS:-killed memory link guest heartbeat proof crowd}; do
    case $part in
    memory) killed 4096 ;;
    link) for _ in 1 2 3 4 5; do
        HOSTS_INSIDE='' bash "$0" link
    done | sort -n | { mapfile -t ms
        figure "link of two hosts cut, longest of ${#ms[@]}" "${ms[-1]}" 2000 ms; } ;;
    guest) for _ in 1 2 3 4 5; do switched_off; done | sort -n | { mapfile -t ms
        figure "a guest is switched off, longest of ${#ms[@]}" "${ms[-1]}" 2000 ms; } ;;
    *) $part ;;
    esac
done

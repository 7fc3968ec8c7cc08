#!/bin/bash
# links.sh - simulated and predicted times against measured ones, over tcp on
# slow links and over shared memory; make bench-links
#
#   tests/peers/links.sh [BUILD]
#
# Hosts are network namespaces.  wire.c is the switch between them, and tc
# (tbf) limits what leaves a host, so that its sockets share the link.  With
# LINKS=tc the switch is a bridge, tc limits both ways, and there is no delay.
# Links that are slower than any CPU give times that hold on a loaded machine,
# and the ranks run before other processes (chrt).
# tests/coll/model_times measures the link, runs every algorithm, and says what
# was simulated and predicted with that link.  Then the same for two ranks that
# share memory, with the costs of dtensor-bench --calibrate.  Needs root.
#
# Each job runs RUNS times, 2, and what is off in the median of them is printed,
# with how many times agree from run to run.  LINKS, HOSTS, RATES (bytes per
# second), DELAY (us) and SIZES in the environment choose others.
# shellcheck disable=SC2086 # options are words
set -u
src=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$src/build}" && pwd) || exit 1
hosts_wanted=${HOSTS:-2 4}
rates=${RATES:-25000000 125000000}
delay=${DELAY:-2000}
links=${LINKS:-wire}
sizes=${SIZES:-8 4096 65536 1048576 4194304}
runs=${RUNS:-2}
host_seconds=3600
export top_srcdir=$src top_builddir=$build

skip_all() { echo "bench-links: skipped: $1"; exit 0; }

. "$src/tests/job/hosts.sh"
hosts_begin "$@"
${CC:-cc} -std=c11 -D_GNU_SOURCE -O2 -o wire "$src/tests/peers/wire.c" || exit 1
for k in 1 2 3 4; do host $k; done
test_key=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
soon=$(command -v chrt >/dev/null && echo chrt -f 1)

# A job takes its links as they are made here: shape BYTES_PER_S HOSTS
shape() {
    local k pids=()
    if [ "$links" = tc ]; then
        for ((k = 1; k <= $2; k++)); do
            if ! tc qdisc replace dev "cable$k" root tbf rate "$1bps" \
                burst 6k limit 64m ||
                ! at $k tc qdisc replace dev eth0 root tbf rate "$1bps" \
                    burst 6k limit 64m; then
                skip_all "no tbf in this kernel"
            fi
        done
        return
    fi
    for ((k = 1; k <= $2; k++)); do
        at $k ip link del eth0 2>/dev/null
        pids+=("${host[k]}")
    done
    mkfifo ready.$1.$2
    # Faster than tbf: what waits must wait where sockets take turns.
    ${soon:+chrt -f 2} ./wire $(($1 * 21 / 20)) "$delay" "${pids[@]}" \
        >ready.$1.$2 &
    wire=$!
    read -r <ready.$1.$2 || skip_all "no tap devices here"
    for ((k = 1; k <= $2; k++)); do
        at $k ip link set eth0 mtu 9000 up
        at $k ip addr add "10.99.0.$k/24" dev eth0
        at $k tc qdisc replace dev eth0 root tbf rate "$1bps" burst 32k \
            limit 64m
    done
}

# job HOSTS SIZES: one rank on each host
job() {
    local r n=$1 process
    printf '%s\n' '[cluster]' 'version = 1' '[nodes "all"]' \
        "hosts = node[1-$n]" 'ranks = 1' '[transport]' 'inter_node = tcp' \
        >job.ini
    for ((r = 0; r < n; r++)); do
        DTN_RANK=$r DTN_WORLD_SIZE=$n DTN_LOCAL_RANK=0 DTN_LOCAL_SIZE=1 \
            DTN_JOB=links.$n.$2 DTN_CLUSTER=job.ini DTN_KEY=$test_key \
            DTN_HOST=node$((r + 1)) at $((r + 1)) timeout 200 $soon \
            "$build/tests/coll/model_times" - $sizes >"rank.$r" 2>&1 &
        process[r]=$!
    done
    wait "${process[@]}"
    cat rank.0
}

# shm: two ranks of this host, with what dtensor-bench --calibrate measures
shm() {
    printf '%s\n' '[cluster]' 'version = 1' '[nodes "all"]' \
        'hosts = localhost' 'ranks = 2' >shm.ini
    $soon "$build/dtensor-bench" --local 2 --calibrate >costs || return
    grep -v '^;' costs >>shm.ini
    grep ' = ' costs
    DTN_CLUSTER=shm.ini $soon "$build/tests/coll/model_times" 2 $sizes
}

echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), \
$(nproc) CPUs"
for rate in $rates; do
    for n in $hosts_wanted; do
        # The switch is one process, which carries so much.
        [ $((n * rate)) -le 300000000 ] || continue
        shape "$rate" "$n"
        echo "== tcp, $n hosts, $rate bytes/s, load \
$(cut -d' ' -f1 /proc/loadavg)"
        for ((run = 1; run <= runs; run++)); do job "$n" "$rate"; done |
            awk -f "$src/tests/coll/model_middle.awk"
        [ -z "${wire:-}" ] || { kill "$wire"; wait "$wire" 2>/dev/null; wire=; }
    done
done
for process in "${host[@]}"; do kill "$process"; done
echo "== shm, 2 ranks, load $(cut -d' ' -f1 /proc/loadavg)"
shm

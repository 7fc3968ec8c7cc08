# shellcheck shell=bash
# inside.sh - what scripts that run in a guest share; sourced by them
. "$top_srcdir/tests/tap.sh"
export PATH=$PATH:/usr/sbin:/sbin
work=$(mktemp -d) && chmod 755 "$work" && cd "$work" || exit

# cluster FILE RANKS [KEY = VALUE...]: one host, all over rc, on the devices $hca
cluster() {
    local file=$1 ranks=$2
    shift 2
    {
        printf '%s\n' '[cluster]' 'version = 1' '[nodes "here"]' \
            'hosts = localhost' "ranks = $ranks" "hca = ${hca-none}" \
            '[transport]' 'intra_node = rc' 'connect_timeout = 20s'
        printf '%s\n' "$@"
    } >"$file"
}

# pair_cluster FILE RANKS [KEY = VALUE...]: RANKS on node1 and as many on node2,
# shared memory inside, rc between, on the devices $hca
pair_cluster() {
    local file=$1 ranks=$2
    shift 2
    {
        printf '%s\n' '[cluster]' 'version = 1' '[nodes "pair"]' \
            'hosts = node[1-2]' "ranks = $ranks" "hca = ${hca-none}" \
            '[transport]' 'intra_node = shm' 'inter_node = rc' 'connect_timeout = 30s'
        printf '%s\n' "$@"
    } >"$file"
}

# meet NAME: wait until the other guest calls this too, at most a minute
meet() {
    touch "/guest-out/at.$1.$GUEST_ID"
    wait_for "/guest-out/at.$1.$((3 - GUEST_ID))"
}

# wait_for FILE
wait_for() {
    local tick
    for ((tick = 0; tick < 600; tick++)); do
        [ ! -e "$1" ] || return 0
        sleep 0.1
    done
    echo "# waited a minute for $1"
    return 1
}

# ranks RANKS FILE SECONDS COMMAND...: start this host's ranks of a pair_cluster;
# the output of rank k goes to rank.k.  0 if all of them end with 0.
ranks() {
    local n=$1 file=$2 limit=$3 k bad=0 pids=()
    shift 3
    for ((k = 0; k < n; k++)); do
        DTN_RANK=$(((GUEST_ID - 1) * n + k)) DTN_WORLD_SIZE=$((2 * n)) \
            DTN_LOCAL_RANK=$k DTN_LOCAL_SIZE=$n DTN_JOB=pair \
            DTN_CLUSTER=$file timeout -k 1 "$limit" "$@" >"rank.$k" 2>&1 &
        pids+=($!)
    done
    for ((k = 0; k < n; k++)); do
        wait "${pids[k]}" || bad=$?
    done
    [ "$bad" -eq 0 ] || sed 's/^/# /' rank.*
    return "$bad"
}

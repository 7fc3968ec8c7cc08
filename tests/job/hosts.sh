# shellcheck shell=bash disable=SC2034 # whoever sources this reads them
# hosts.sh - hosts on one machine: network namespaces on a bridge; sourced
#
# Call hosts_begin "$@", then host 1, host 2, ...  Host K is nodeK, 10.99.0.K.
# hosts_begin starts the test again, with processes and network of its own, in a
# new directory that is removed at the end.  A test that needs root or bridges
# and has none is skipped.
export PATH=$PATH:/usr/sbin:/sbin

hosts_begin() {
    if [ -z "${HOSTS_INSIDE-}" ]; then
        [ "$(id -u)" = 0 ] || skip_all "network namespaces need root"
        "$top_srcdir/tests/in-ns" true 2>/dev/null ||
            skip_all "no network namespaces here"
        HOSTS_INSIDE=1 exec "$top_srcdir/tests/in-ns" bash "$0" "$@"
    fi
    dir=$(mktemp -d) && cd "$dir" || exit 99
    trap 'rm -rf "$dir"' EXIT
    unset "${!DTN_@}" "${!SLURM@}"
    grep -q '^#define HAVE_SODIUM' "$top_builddir/config.h" ||
        skip_all "no libsodium in this build"
    own=$(readlink /proc/self/ns/net)
    host=()
    echo '127.0.0.1 localhost' >hosts
    { ip link add bridge type bridge 2>/dev/null && ip link set bridge up; } ||
        skip_all "no bridge here"
    mount --bind hosts /etc/hosts || skip_all "no mounts here"
}

# host K: a namespace with an address, on the bridge; its process in host[K],
# which ends after host_seconds
host() {
    local k=$1 tick
    unshare --net sleep "${host_seconds:-300}" &
    host[k]=$!
    for ((tick = 0; tick < 200; tick++)); do
        [ "$(readlink "/proc/${host[k]}/ns/net")" = "$own" ] || break
        sleep 0.05
    done
    if ! { ip link add "cable$k" type veth peer name eth0 netns "${host[k]}" &&
        ip link set "cable$k" master bridge up &&
        at "$k" ip link set lo up && at "$k" ip link set eth0 up &&
        at "$k" ip addr add "10.99.0.$k/24" dev eth0; }; then
        skip_all "no veth here"
    fi
    echo "10.99.0.$k node$k" >>hosts
}

# at K COMMAND...: on that host
at() {
    local k=$1
    shift
    nsenter -t "${host[k]}" -n "$@"
}

# deaf A B: nothing that B sends reaches A any more
deaf() {
    at "$2" ip neigh replace "10.99.0.$1" lladdr 02:00:00:00:00:99 \
        nud permanent dev eth0
}

# unresolved A B HOSTS: A and B, of so many hosts, do not find each other's
# address of the link; all others do
unresolved() {
    local k other
    for k in "$1" "$2"; do
        at "$k" sysctl -qw net.ipv4.conf.all.arp_ignore=8
        for ((other = 1; other <= $3; other++)); do
            [ "$other" = "$1" ] || [ "$other" = "$2" ] ||
                at "$other" ip neigh replace "10.99.0.$k" lladdr \
                    "$(at "$k" ip -o link show eth0 |
                        sed 's/.*ether \([0-9a-f:]*\).*/\1/')" \
                    nud permanent dev eth0
        done
    done
}

# unplug K...: no packet reaches or leaves these hosts any more, from one moment
unplug() { printf 'link set cable%s nomaster\n' "$@" | ip -batch -; }
plug() { ip link set "cable$1" master bridge; }

# fact NAME RANK: of what survivor said in the end
fact() { sed -n "s/^$1 //p" "rank.$2"; }

# start_rank RANK HOST LOCAL LOCALS WORLD JOB [GO]: tests/rdma/survivor, which
# makes running.JOB.RANK; its process in rank[RANK]
start_rank() {
    DTN_RANK=$1 DTN_WORLD_SIZE=$5 DTN_LOCAL_RANK=$3 DTN_LOCAL_SIZE=$4 \
        DTN_JOB=$6 DTN_CLUSTER=job.ini DTN_KEY=$test_key DTN_HOST=node$2 \
        at "$2" timeout -k 1 60 "$top_builddir/tests/rdma/survivor" \
        "running.$6.$1" 4096 ${7:+"$7"} ${8:+"$8"} >"rank.$1" 2>&1 &
    rank[$1]=$!
}

# all_run JOB RANKS: wait until all of them are in their calls
all_run() {
    local r tick
    for ((tick = 0; tick < 300; tick++)); do
        for ((r = 0; r < $2; r++)); do
            [ -e "running.$1.$r" ] || break
        done
        [ "$r" -lt "$2" ] || return 0
        sleep 0.1
    done
    return 1
}

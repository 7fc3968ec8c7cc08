#!/bin/bash
# tcp.sh - our collectives over tcp against those of Open MPI, and iperf3;
# make bench-tcp
#
#   tests/peers/tcp.sh [BUILD]
#
# Two hosts are two network namespaces with a cable between them, so it needs
# root.  Each round is a job of its own, in which theirs and ours take turns
# call by call (see host_mpi.c), and then a run of iperf3 between the same
# hosts.  Of a figure the median over the rounds is shown.  A broadcast of 16
# MiB is compared with iperf3: both move bytes one way.
#
# ROUNDS, CALLS, TESTS and SIZES choose less or more.  make has a TESTS of its
# own, so say: make bench-tcp TESTS=broadcast.  LOCAL=2: two ranks a host.
# RATE=1gbit: so much leaves a host (tc, tbf).
# shellcheck disable=SC2086 # options are words
set -uo pipefail
src=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$src/build}" && pwd) || exit 1
rounds=${ROUNDS:-4}
calls=${CALLS:-100}
tests=${TESTS:-allreduce allgather reduce_scatter all_to_all broadcast message}
sizes=${SIZES:-8 512 4096 32768 262144 2097152 16777216}
local=${LOCAL:-1}
export top_srcdir=$src top_builddir=$build
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

skip_all() { echo "bench-tcp: skipped: $1"; exit 0; }

. "$src/tests/job/hosts.sh"
command -v mpicc.openmpi >/dev/null ||
    skip_all "no Open MPI (apt-get install openmpi-bin libopenmpi-dev)"
hosts_begin "$@"
mpicc.openmpi -std=c11 -D_GNU_SOURCE -O2 -I"$src/lib" -o peers \
    "$src/tests/peers/host_mpi.c" "$build/.libs/libdtensor.so" \
    -Wl,-rpath,"$build/.libs" || exit 1
host 1; host 2
# BBR paces what it sends by what the last seconds were like, and a rank that
# computes looks like a slow network to it: some jobs then take ten times as long.
for k in 1 2; do
    at $k sysctl -qw net.ipv4.tcp_no_metrics_save=1 \
        net.ipv4.tcp_congestion_control=reno
done
for k in ${RATE:+1 2}; do
    at $k tc qdisc replace dev eth0 root tbf rate "$RATE" burst 64k limit 4m ||
        skip_all "no tbf in this kernel"
done
printf '%s\n' '[cluster]' 'version = 1' '[nodes "all"]' 'hosts = node[1-2]' \
    "ranks = $local" '[transport]' 'inter_node = tcp' >job.ini
# Open MPI starts what it needs on a host by this, in place of ssh.
cat >agent <<END
#!/bin/bash
while [[ \$1 != node* ]]; do shift; done
case \$1 in node1) pid=${host[1]} ;; *) pid=${host[2]} ;; esac
name=\$1; shift
exec nsenter -t \$pid -n unshare --uts bash -c "hostname \$name; \$*"
END
cat >rank <<END
#!/bin/bash
export DTN_CLUSTER=$PWD/job.ini DTN_HOST=node\$((OMPI_COMM_WORLD_RANK / $local + 1))
export DTN_KEY=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
exec taskset -c \$((OMPI_COMM_WORLD_RANK % $(nproc))) $PWD/peers "\$@"
END
chmod +x agent rank

# job TEST,... CALLS SIZES: the lines of one job
job() {
    at 1 unshare --uts bash -c 'hostname node1; exec "$@"' mpirun \
        timeout 300 mpirun.openmpi -np $((2 * local)) --bind-to none \
        -H node1:$local,node2:$local $patient \
        --mca plm_rsh_agent "$PWD/agent" --mca pml ob1 --mca btl self,vader,tcp \
        --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \
        "$PWD/rank" "$@"
}

patient=
[ "$local" = 1 ] || patient='--mca mpi_yield_when_idle 1'

# iperf: bits a second from host 2 to host 1
iperf() {
    at 1 taskset -c 0 iperf3 -s -1 >/dev/null 2>&1 &
    sleep 0.3
    at 2 taskset -c $((1 % $(nproc))) iperf3 -c 10.99.0.1 -t 2 -f m |
        awk '/receiver/ { print $7 * 1e6 }'
    wait $!
}

for ((round = 0; round < rounds; round++)); do
    job "${tests// /,}" "$calls" $sizes 2>errors | sed "s/^/tcp $local /" ||
        cat errors >&2
    ! command -v iperf3 >/dev/null || echo "tcp $local iperf3 $(iperf)"
done >lines
grep -qv -e iperf3 -e hop lines ||
    { echo "bench-tcp: no job came to its end" >&2; exit 1; }
echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), \
$(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg); $local a host, \
${RATE:-no limit}; $rounds rounds of $calls \
calls; microseconds, the slower rank of each call, medians"
awk -f "$src/tests/peers/median.awk" -f "$src/tests/peers/tcp.awk" lines
for process in "${host[@]}"; do kill "$process"; done

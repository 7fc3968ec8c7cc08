#!/bin/bash
# make_simgrid.sh - what SimGrid says of algorithms on networks, as
# tests/sched/test_play reads it
#
#   tests/golden/make_simgrid.sh >tests/golden/simgrid.txt
#
# Needs SimGrid with SMPI (apt-get install libsimgrid-dev).  simgrid.c sends the
# messages of our algorithms.  The network model is CM02 without its factors, so
# that a message takes o + L + bytes G, with o = 0.1 us, L = 1 us in all, and
# 10 GB/s on each link.
set -eu
src=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
smpicc -std=c11 -O2 "$src/simgrid.c" -o simgrid
options=()
for option in network/model:CM02 network/latency-factor:1 \
    network/bandwidth-factor:1 network/weight-S:0 network/TCP-gamma:0 \
    network/crosstraffic:0 smpi/simulate-computation:no smpi/wtime:0 \
    smpi/ois:0:0.1e-6:0 smpi/os:0:0:0 smpi/or:0:0:0 \
    surf/precision:1e-12; do
    options+=("--cfg=$option")
done

# platform HOSTS RANKS_PER_HOST LATENCY ATTRIBUTES: links of that latency
platform() {
    cat >platform.xml <<END
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<cluster id="c" prefix="h" suffix="" radical="0-$(($1 - 1))" speed="1Gf"
 bw="10GBps" lat="$3" loopback_bw="1000GBps" loopback_lat="140ns"
 sharing_policy="SPLITDUPLEX" $4/>
</platform>
END
    for ((h = 0; h < $1; h++)); do
        for ((r = 0; r < $2; r++)); do echo "h$h"; done
    done >hosts
}

# row PATTERN RANKS PER_HOST BYTES COLLECTIVE ALGORITHM TOPOLOGY
row() {
    smpirun -np "$2" -platform platform.xml -hostfile hosts "${options[@]}" \
        --log=root.thresh:error ./simgrid "$1" "$4" >each.txt 2>errors.txt ||
        { cat errors.txt >&2; exit 1; }
    echo "$5 $6 $2 $3 $4 $7 $(sort -g each.txt | tail -1)"
}

echo "# SimGrid $(smpirun -version | sed -n 's/.*version \([0-9.]*\).*/\1/p' |
    head -1), by make_simgrid.sh: collective algorithm ranks ranks_on_a_host"
echo "# bytes topology us"
platform 64 1 500ns ''
row broadcast 64 1 8 broadcast tree flat
row doubling 64 1 8 allreduce doubling flat
row ring 64 1 100000 allgather ring flat
row all_to_all 64 1 100000 all_to_all put flat
row gather 64 1 100000 gather put flat
row pairwise 64 1 100000 all_to_all pairwise flat
row broadcast 64 1 1000000 broadcast tree flat
platform 1024 1 500ns ''
row broadcast 1024 1 8 broadcast tree flat
row doubling 1024 1 8 allreduce doubling flat
platform 8 8 500ns ''
row pairwise 64 8 100000 all_to_all pairwise flat
row all_to_all 64 8 100000 all_to_all put flat
row gather 64 8 100000 gather put flat
platform 64 1 250ns 'topology="FAT_TREE" topo_parameters="2;32,2;1,8;1,1"'
tree=fat-tree:32/8x2,latency=250
row all_to_all 64 1 100000 all_to_all put $tree
row pairwise 64 1 100000 all_to_all pairwise $tree
row ring 64 1 100000 allgather ring $tree
row gather 64 1 100000 gather put $tree
row broadcast 64 1 1000000 broadcast tree $tree
platform 64 1 250ns 'topology="DRAGONFLY" topo_parameters="4,1;1,1;4,1;4"'
fly=dragonfly:4x4x4,latency=250
row ring 64 1 100000 allgather ring $fly
row all_to_all 64 1 100000 all_to_all put $fly
row pairwise 64 1 100000 all_to_all pairwise $fly

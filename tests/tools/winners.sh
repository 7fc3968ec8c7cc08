#!/bin/sh
# winners.sh - which algorithm is the fastest on many hosts: the table of
# doc/performance/model.md
#
#   tests/tools/winners.sh [BUILD]
#
# 2,048 hosts of 8 ranks over rc; in the environment, WIRE is another transport
# between hosts, WINNERS the numbers of ranks.
set -e
build=${1:-.}
file=$(mktemp)
trap 'rm -f "$file"' EXIT

cat >"$file" <<END
[cluster]
version = 1
name = winners
world_size = 16384
auth = none
[nodes "n"]
hosts = h[0001-2048]
addresses = h[0001-2048]
ranks = 8
[transport]
inter_node = ${WIRE:-rc}
END
for collective in allreduce reduce broadcast allgather reduce_scatter \
    all_to_all; do
    "$build/dtensor-plan" "$collective" -C "$file" \
        --winners "${WINNERS:-64,512,4096,16384}"
    echo
done

#!/bin/bash
# versions.sh - this build beside an older one, call by call; make bench-versions
#
#   tests/peers/versions.sh OLD-BUILD [BUILD]
#
# OLD-BUILD is the build directory of an older commit, such as
#
#   git worktree add /tmp/old HEAD~1
#   (cd /tmp/old && ./bootstrap && ./configure -q && make -s -j)
#   make -C build bench-versions OLD=/tmp/old
#
# Both libraries are loaded into one program and take turns (see versions.c), 2
# ranks bound to cores and then 4 ranks on however many CPUs there are.  The
# table has a line for each case: medians over the rounds, the ratio of new to
# old, and that of the old library to a copy of itself, which is the noise.
# Below it: the geometric means, and a verdict.  A case is slower when its ratio
# is above LIMIT (1.03) and above what the noise explains.
#
# ROUNDS, CALLS, SIZES, RANKS and LIMIT in the environment choose less or more.
# shellcheck disable=SC2086 # options are words
set -u
src=$(cd "$(dirname "$0")/../.." && pwd)
old=$(cd "${1:?the build directory of an older commit}" && pwd) || exit 1
build=$(cd "${2:-$src/build}" && pwd) || exit 1
rounds=${ROUNDS:-5}
calls=${CALLS:-400}
sizes=${SIZES:-8 512 4096 32768 131072 524288 2097152 8388608}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
unset "${!DTN_@}"

cp "$old/.libs/libdtensor.so" "$dir/again.so" &&
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -O2 -I"$src/lib" -o "$dir/versions" \
        "$src/tests/peers/versions.c" -ldl || exit 1

for ((round = 0; round < rounds; round++)); do
    for n in ${RANKS:-2 4}; do
        few=$sizes
        [ "$n" -le "$(nproc)" ] || few="8 4096 131072"
        timeout 300 "$dir/versions" "$old/.libs/libdtensor.so" "$dir/again.so" \
            "$build/.libs/libdtensor.so" "$n" "$calls" $few || exit 1
    done
done >"$dir/times" || exit 1

echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), \
$(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg); $rounds rounds of $calls \
calls; microseconds, the slowest rank of each call, medians"
awk -v limit="${LIMIT:-1.03}" -f "$src/tests/peers/median.awk" \
    -f "$src/tests/peers/versions.awk" "$dir/times"

#!/bin/bash
# gpusuites.sh MODULE - in one guest with Linux 6.12: suites on GPU memory, over rc
#
# Programs of tests/device that run suites of other rooms with tensors and
# allocations on the driver of tests/standin, over a soft RDMA device that writes
# into that memory.  A tenth of their cases, and two ranks for the two longest:
# each rank has threads for its streams, and the guest has two processors.  The log
# has no word of memory that could not be registered.  With DTN_RDMA_SUITES=all
# these are all suites but those of operators and of starts, with a twentieth of
# their cases; it takes minutes more (DTN_RDMA_PATIENCE=3).
#
# Without this test, requests, batches, tensors and random numbers in memory of a
# GPU would meet a card on a user's machine first.
. "$top_srcdir/tests/rdma/inside.sh"
[ -e /dev/udmabuf ] || skip_all "this kernel has no /dev/udmabuf"
insmod "$1" || exit
rounds=10
[ "${DTN_RDMA_SUITES-}" != all ] || rounds=5
export DTN_TEST_WIRE=rc DTN_TEST_ROUNDS=${DTN_TEST_ROUNDS:-$rounds}
. "$top_srcdir/tests/device/each_suite.sh"

# suite NAME CLAIM PATTERN: as in each_suite.sh, over rc only; and none is staged
suite() {
    local log=$work/log got over=()
    case $1 in
    blocks) over=(rc 3) ;;
    coll | tensor) over=(rc 2) ;;
    coll_failures | redops) over=(rc) ;;
    # Eight ranks, of which each computes by itself; claims about times.
    computed | nonblocking_start) return ;;
    esac
    LD_PRELOAD=$PWD/tests/rdma/.libs/rxe_verbs.so DTN_LOG=warn \
        "tests/device/suite_$1" "${over[@]}" >"$out" 2>"$log" </dev/null
    got="$?|$(grep -cE "$3" "$out")|$(grep -c 'through host' "$log")"
    is "$1 $2: how it ends, what fails, what is staged" "$got" "0|0|0"
    [ "$got" = "0|0|0" ] || sed 's/^/# /' "$out" "$log" | tail -n 40
    is "$1: it makes claims" "$(grep -c -m 1 '^ok' "$out")" 1
}

if [ "${DTN_RDMA_SUITES-}" = all ]; then
    each_suite "on GPU memory over rc"
else
    for name in redistribute compare parts random requests coll tensor; do
        suite "$name" "on GPU memory over rc" '^not ok|^# rank'
    done
fi
done_testing

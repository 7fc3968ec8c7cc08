#!/bin/bash
# random_battery.sh - dieharder on the words of interleaved shards; not part of
# check: make -C build check-random.  DTN_BATTERY is its arguments: -a for all
# of its tests (hours), else some that take a few minutes in all.
. "$top_srcdir/tests/tap.sh"
command -v dieharder >/dev/null || skip_all "dieharder is not installed"
stream=$top_builddir/tests/random_stream
[ -x "$stream" ] || skip_all "tests/random_stream is not built"

# battery TRACKER ARGUMENT...: p-values that dieharder calls FAILED, if any
battery() {
    local tracker=$1
    shift
    "$stream" "$tracker" 2>/dev/null | dieharder -g 200 "$@" 2>&1 |
        tee -a "$top_builddir/tests/random_battery.out" | grep FAILED
}

: >"$top_builddir/tests/random_battery.out"
for tracker in global offset; do
    if [ -n "${DTN_BATTERY-}" ]; then
        # shellcheck disable=SC2086 # several words
        is "$tracker: dieharder $DTN_BATTERY finds nothing" \
            "$(battery "$tracker" $DTN_BATTERY)" ""
        continue
    fi
    for test in 0 1 2 3 8 9 10 11 12 13 15 16 17 100 101 102; do
        is "$tracker: dieharder -d $test finds nothing" \
            "$(battery "$tracker" -d "$test")" ""
    done
done
done_testing

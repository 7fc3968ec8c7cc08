#!/bin/bash
# random_battery.sh - dieharder on the words of interleaved parts; not part of
# check: make -C build check-random.  DTN_BATTERY is its arguments: -a for all
# of its tests (hours), else those that take some minutes in all: not 5 to 7
# and 14, of which it says itself that they are no good; 200 and 201 without a
# number -n fail every generator.  Of perfect numbers it calls one p-value in a
# hundred WEAK, and one in 500,000 FAILED.
#
# Without this test, streams of neighbouring ranks could be correlated, and
# nothing else here would notice.
. "$top_srcdir/tests/tap.sh"
command -v dieharder >/dev/null || skip_all "dieharder is not installed"
stream=$top_builddir/tests/random/random_stream
[ -x "$stream" ] || skip_all "tests/random/random_stream is not built"
out=$top_builddir/tests/random/random_battery.out

# battery TRACKER ARGUMENT...: p-values that dieharder calls FAILED, if any; and
# a line when it gave none at all
battery() {
    local tracker=$1
    shift
    "$stream" "$tracker" 2>/dev/null | dieharder -g 200 "$@" >"$out.last" 2>&1
    cat "$out.last" >>"$out.$tracker"
    awk '/FAILED/; /PASSED|WEAK|FAILED/ { n++ } END { if (!n) print "nothing" }' \
        "$out.last"
}

rm -f "$out".*
# Parts that are alike, as under this tracker, are what it is to find.
is "local: dieharder finds that all ranks have the same numbers" \
    "$(battery local -d 102 -t 20000 | grep -c FAILED | awk '{ print ($1 > 9) }')" 1
for tracker in global offset; do
    if [ -n "${DTN_BATTERY-}" ]; then
        # shellcheck disable=SC2086 # several words
        is "$tracker: dieharder $DTN_BATTERY finds nothing" \
            "$(battery "$tracker" $DTN_BATTERY)" ""
    else
        for test in 0 1 2 3 4 8 9 10 11 12 13 15 16 17 100 101 102 "200 -n 4" "201 -n 2" \
            202 204 205 206 207 208 209; do
            # shellcheck disable=SC2086 # several words
            is "$tracker: dieharder -d $test finds nothing" \
                "$(battery "$tracker" -d $test)" ""
        done
    fi
    echo "# $tracker: p-values that" "$(
        for word in PASSED WEAK FAILED; do
            printf '%s %s  ' $word "$(grep -c "$word" "$out.$tracker")"
        done)"
done
done_testing

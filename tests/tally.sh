#!/bin/bash
# tally.sh - tests/tally tells what failed, and why
#
# A test here fails in three ways, and its log is made by the driver of all tests.
#
# Without this test, CI could say that a rank failed and keep to itself which, or
# count a test that failed as one that passed.
. "$top_srcdir/tests/tap.sh"
driver=$top_srcdir/build-aux/tap-driver.sh
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/tests"

# driven NAME: run the test on stdin as make check does
driven() {
    cat >"$tmp/$1"
    (cd "$tmp" && AM_TAP_AWK="awk" "$driver" --test-name "$1" \
        --log-file "tests/$1.log" --trs-file "tests/$1.trs" \
        --color-tests no --enable-hard-errors yes --expect-failure no \
        -- bash "./$1") >"$tmp/out" 2>&1 9>&1
}

driven claims <<'TEST'
echo "# before the first"
echo "ok 1 - the first holds"
echo "# rank 3 has other bytes"
echo "not ok 2 - the second fails"
echo "# failed at line 7"
echo "not ok 3 - the third fails too"
echo "# after the third"
echo "ok 4 - the fourth holds"
echo "ok 5 - the fifth # SKIP no device"
echo 1..5
TEST
is "what a test says before and after a claim that failed is printed once" \
    "$("$top_srcdir/tests/tally" "$tmp")" \
    "FAIL: claims 2 - the second fails
    # rank 3 has other bytes
    # failed at line 7
FAIL: claims 3 - the third fails too
    # after the third
SKIP: claims 5 - the fifth # SKIP no device
2 passed, 2 failed, 1 skipped"
"$top_srcdir/tests/tally" "$tmp" >"$tmp/out"
is "a claim that failed is a failure of all" $? 1

driven ended <<'TEST'
echo "ok 1 - the first holds"
echo "a sanitizer says something"
exit 3
TEST
is "of a program that ends badly its last words are printed" \
    "$("$top_srcdir/tests/tally" "$tmp" tests/ended | grep -v '^ERROR')" \
    "    a sanitizer says something
1 passed, 1 failed, 0 skipped"

driven passed <<'TEST'
for n in $(seq 60); do echo "# of no interest $n"; done
echo "ok 1 - all is well"
echo 1..1
TEST
is "of a test that passed only the number is printed" \
    "$("$top_srcdir/tests/tally" "$tmp" tests/passed)" \
    "1 passed, 0 failed, 0 skipped"

driven long <<'TEST'
for n in $(seq 60); do echo "# line $n"; done
echo "not ok 1 - much was said before"
echo 1..1
TEST
is "of many words the last 25 are printed" \
    "$("$top_srcdir/tests/tally" "$tmp" tests/long | sed -n '2p;26p;$p')" \
    "    # line 36
    # line 60
0 passed, 1 failed, 0 skipped"
done_testing

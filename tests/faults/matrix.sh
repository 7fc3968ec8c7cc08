#!/bin/bash
# matrix.sh - the fault matrix: each class has a test that claims it, or a reason
#
# Compares faults.txt with the sources and with dtensor-faults(7).  With
# DTN_FAULT_MATRIX=1, as make fault-matrix sets it, it also runs every test once
# and prints the table with what came of each class.
#
# Without this test, the page could list failures that no test causes any more.
. "$top_srcdir/tests/tap.sh"
here=$top_srcdir/tests/faults
table=$here/faults.txt

# rows: the classes, fields between "|"
rows() { sed -n 's/ | /|/g; /^[0-9]/p' "$table"; }

is "the classes are numbered, each once" "$(rows | cut -d'|' -f1 | xargs)" \
    "$(seq "$(rows | wc -l)" | xargs)"
is "each has six fields" "$(rows | awk -F'|' 'NF != 6')" ""

# source TEST: its text, with the strings of C joined
source_of() {
    local file=$top_srcdir/$1
    [ -f "$file" ] || file=$file.c
    perl -0pe 's/"\s*\n\s*"//g' "$file" 2>/dev/null
}

is "each test is in the tree, and says what the class claims" "$(
    rows | while IFS='|' read -r number _ _ _ test words; do
        [ "$test" != - ] || continue
        source_of "$test" | grep -qF -e "$words" || echo "$number $test: $words"
    done)" ""
is "dtensor-faults(7) is made of this table" \
    "$(bash "$here/page.sh" | diff - "$top_srcdir/man/dtensor-faults.7" | head -5)" ""
[ -n "${DTN_FAULT_MATRIX-}" ] || done_testing

out=$(mktemp -d) || exit 99
trap 'rm -rf "$out"' EXIT

# result TEST: passed, failed, skipped, or in guests; it runs once
result() {
    local said=$out/${1//\//_} command=$top_builddir/$1
    case $1 in
    tests/rdma/*) echo "in guests"; return ;;
    *.sh) command="bash $top_srcdir/$1" ;;
    esac
    if [ ! -e "$said" ]; then
        # shellcheck disable=SC2086 # two words
        timeout 900 $command >"$said" 2>&1 || echo "not ok: status $?" >>"$said"
        grep -B3 -A12 '^not ok' "$said" | sed 's/^/# /' >&2
    fi
    if grep -q '^not ok' "$said"; then
        echo failed
    elif grep -q '^1\.\.0' "$said"; then
        echo skipped
    else
        echo passed
    fi
}

failed=0
while IFS='|' read -r number when what _ test _; do
    if [ "$test" = - ]; then
        said="not tested"
    else
        said=$(result "$test" </dev/null)
    fi
    printf '# %2s %-13s %-12s %s\n' "$number" "$when" "$said" "$what"
    [ "$said" != failed ] || failed=$((failed + 1))
done < <(rows)
is "no class fails" "$failed" 0
done_testing

#!/bin/bash
# tutorial.sh - the tutorial of the manual does what it says
#
# All programs, files and commands of dtensor-tutorial(7) are taken from the page,
# compiled and run, and what they print is compared with the page.  Its Slurm job
# is run by tests/slurm/slurm.sh.
#
# Without this test, a newcomer could be the first to see that a step of the
# tutorial has stopped working.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/session.sh"
page=$top_srcdir/man/dtensor-tutorial.7
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset "${!DTN_@}" "${!SLURM@}"
cd "$tmp" || exit 1
[ -r "$top_builddir/.libs/libdtensor.so" ] || skip_all "no shared library here"
session_paths
page_run "$page" '^(one|a-tensor|random|a-collective|a-cluster|a-failure)'
is "every line of the page fits 80 columns" "$(awk 'length > 73' page.tmp/*)" ""
is "every program and file of the page has a comment with its name" "$(
    for example in page.tmp/*; do
        [ -n "$(example_name "$example")" ] || [ "$(head -c 2 "$example")" = '$ ' ] ||
            echo "$example"
    done)" ""
done_testing

# shellcheck shell=bash
# each_suite.sh - what suites.sh and staged.sh share; source it after tap.sh
cd "$top_builddir" || exit 1
driver=$PWD/tests/standin/.libs
export DTN_TEST_DEVICE=cuda LD_LIBRARY_PATH=$driver
# A fifth of the cases, and no claim about times: streams are threads here.
export DTN_TEST_ROUNDS=${DTN_TEST_ROUNDS:-20}

[ -r "$driver/libcuda.so.1" ] ||
    skip_all "the driver of tests/standin is not built (shared libraries are needed)"
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# suite NAME CLAIM PATTERN: the suite passes, and prints no such line
suite() {
    tests/device/pretend_"$1" >"$out" 2>&1
    status=$?
    is "$1 $2" "$status|$(grep -E "$3" "$out" | head -20)" "0|"
}

# each_suite CLAIM
each_suite() {
    for program in tests/device/pretend_*; do
        case $program in *.*) continue ;; esac
        suite "${program#*pretend_}" "$1" '^not ok|^# rank|^standin'
    done
}

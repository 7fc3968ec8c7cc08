# shellcheck shell=bash
# each_suite.sh - what suites*.sh and staged.sh share; source it after tap.sh
cd "$top_builddir" || exit 1
driver=$PWD/tests/standin/.libs
export LD_LIBRARY_PATH=$driver
# A cuBLAS of this machine wants a GPU.
export DTN_CUBLAS=none
# A tenth of the cases, and no claim about times: streams are threads here.
export DTN_TEST_ROUNDS=${DTN_TEST_ROUNDS:-10}

[ -r "$driver/libcuda.so.1" ] ||
    skip_all "the driver of tests/standin is not built (shared libraries are needed)"
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# suite NAME CLAIM PATTERN: the suite passes, and prints no such line.  coll and
# tensor run with at most 4 ranks: more of them, each with threads for its
# streams, take long on few CPUs and copy nothing else.
suite() {
    local most=()
    case $1 in coll | tensor) most=("" 4) ;; esac
    tests/device/suite_"$1" "${most[@]}" >"$out" 2>&1 </dev/null
    status=$?
    is "$1 $2" "$status|$(grep -E "$3" "$out" | head -20)" "0|"
}

# each_suite CLAIM [ROOM]: those of tests/ROOM only; ^ROOM: those of all others
each_suite() {
    local name room
    while read -r name room; do
        case ${2-} in
        "" | "$room") ;;
        ^*) [ "$room" != "${2#^}" ] || continue ;;
        *) continue ;;
        esac
        suite "$name" "$1" '^not ok|^# rank|^standin'
    done < <(sed -nE 's,^%C%_suite_([a-z_]+)_SOURCES = (.* )?tests/([a-z]+)/test_.*,\1 \3,p' \
        "$top_srcdir/tests/device/Makefile.inc")
}

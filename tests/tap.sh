# shellcheck shell=bash
# tap.sh - the shell half of the test harness; source it.
#   ok STATUS CLAIM...      is CLAIM GOT EXPECTED      done_testing
tap_count=0 tap_failed=0

# Ranks of several hosts know each other by this; dtensor-run makes its own.
test_key=5e50f09bd0d1a2c3b4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b
export DTN_KEY=$test_key

# Where the tools are, in $tools: not libtool's scripts before them, each of which
# takes 15 ms of CPU time whenever it is run.
tools_find() {
    tools=$top_builddir
    [ -x "$tools/.libs/dtensor-plan" ] || return 0
    tools=$tools/.libs
    export LD_LIBRARY_PATH=$tools${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

ok() {
    local status=$1
    shift
    tap_count=$((tap_count + 1))
    if [ "$status" -eq 0 ]; then
        echo "ok $tap_count - $*"
    else
        echo "not ok $tap_count - $*"
        tap_failed=$((tap_failed + 1))
    fi
}

is() {
    local claim=$1
    if [ "$2" = "$3" ]; then
        ok 0 "$claim"
    else
        ok 1 "$claim"
        printf '%s\n' "got:" "$2" "expected:" "$3" | sed 's/^/# /'
    fi
}

skip_test() {
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1 # SKIP $2"
}

skip_all() {
    echo "1..0 # SKIP $*"
    exit 0
}

done_testing() {
    echo "1..$tap_count"
    [ "$tap_failed" -eq 0 ]
    exit
}

#!/bin/bash
# unlike_environment.sh - a variable that one rank has and the other has not
#
# Each variable that dtensor-conf --env lists is set on rank 1 of two, except
# those that say who a rank is.  The results must be right, and no other error
# may come: what ranks must agree on is in the cluster file alone.
#
# Without this test, a variable that a shell of one host sets could make ranks
# choose different algorithms, and wait for each other for ever.
. "$top_srcdir/tests/tap.sh"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
unset "${!DTN_@}" "${!SLURM@}"

# Who a rank is: other values are other jobs or ranks.
who='DTN_CLUSTER DTN_RANK DTN_WORLD_SIZE DTN_LOCAL_RANK DTN_LOCAL_SIZE DTN_JOB
DTN_KEY DTN_MUNGE_SOCKET DTN_HOST DTN_FAULT DTN_LAUNCH_NS'
values="DTN_LOG=debug DTN_BLAS=none DTN_CUBLAS=none DTN_REPORT=$dir/report
CUDA_VISIBLE_DEVICES= OPENBLAS_NUM_THREADS=3 GOTO_NUM_THREADS=3
OMP_NUM_THREADS=3 BLIS_NUM_THREADS=3 LC_ALL=C LC_CTYPE=C LANG=C COLUMNS=20
NO_COLOR=1 TERM=dumb"

is "each variable is here, or says who a rank is" "$(
    "$top_builddir/dtensor-conf" --env | cut -d' ' -f1 | grep -v '^SLURM' | sort)" \
    "$(for name in $who $values; do echo "${name%%=*}"; done | sort)"
for value in $values; do
    # shellcheck disable=SC2016 # of the ranks
    "$top_builddir/dtensor-run" -n 2 sh -c '
        [ "$DTN_RANK" = 0 ] || export "$1"
        exec "$0" -b 8 -e 64K -f 32 -n 2 -w 1 allreduce' \
        "$top_builddir/dtensor-bench" "$value" >"$dir/said" 2>&1 &&
        grep -q 'wrong results 0 ' "$dir/said"
    good=$?
    [ $good = 0 ] || sed 's/^/# /' "$dir/said"
    ok $good "a variable of one rank alone: $value"
done
done_testing

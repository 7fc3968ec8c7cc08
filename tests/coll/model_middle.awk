# model_middle.awk - of several runs of model_times, the middle of each call
#
# Prints the calls that are off by more than 20 % in the median of the runs:
# collective, bytes, algorithm, simulated / measured; and how many are not.
# Then the bound: how many are within 20 % of themselves in the next run in
# which a signal took as long, give or take a third.  No simulation can be right
# more often than about that.
# Example: for i in 1 2 3; do tests/coll/model_times 2 8 4096; done |
#              awk -f tests/coll/model_middle.awk

/^measured: a call/   { signal = $8 + $12 }
/^- a signal takes/   { signal = $5 }
/^of |^measured|takes .* now/     # of each run

/, simulated / {
    call = sprintf("%-14s %8s %-12s", $1, $2, $3)
    run = ++runs[call]
    ratio[call, run] = $NF
    ns[call, run] = $4
    at[call, run] = signal
    simulated += near($NF)
    measured++
}

function near(x)
{
    return x >= 0.8 && x <= 1.2
}

# The next run with the same machine; 0: none
function next_like(call, i,    j, x)
{
    for (j = i + 1; j <= runs[call]; j++) {
        x = at[call, i] > 0 ? at[call, j] / at[call, i] : 1
        if (x > 3 / 4 && x < 4 / 3)
            return j
    }
    return 0
}

function again_count(call,    i, j)
{
    for (i = 1; i < runs[call]; i++) {
        j = next_like(call, i)
        if (j == 0)
            continue
        pairs++
        again += near(ns[call, j] / ns[call, i])
    }
}

function middle(call,    n, i, j, x)
{
    n = runs[call]
    for (i = 2; i <= n; i++) {
        x = ratio[call, i]
        for (j = i - 1; j > 0 && ratio[call, j] > x; j--)
            ratio[call, j + 1] = ratio[call, j]
        ratio[call, j + 1] = x
    }
    return (ratio[call, int((n + 1) / 2)] + ratio[call, int(n / 2) + 1]) / 2
}

END {
    for (call in runs) {
        again_count(call)
        x = middle(call)
        calls++
        if (near(x))
            within++
        else
            print call, x
    }
    print within " of " calls " calls are simulated within 20 %"
    if (pairs > 0)
        printf "of %d, %.0f are within 20 %% of themselves in another run; " \
               "simulated: %.0f\n", calls, calls * again / pairs,
               calls * simulated / measured
}

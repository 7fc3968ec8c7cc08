# model_middle.awk - of several runs of model_times, the middle of each call
#
# Prints the calls that are off by more than 20 % in the median of the runs:
# collective, bytes, algorithm, simulated / measured; and how many are not.
# Example: for i in 1 2 3; do tests/coll/model_times 2 8 4096; done |
#              awk -f tests/coll/model_middle.awk

/, simulated / {
    call = sprintf("%-14s %8s %-12s", $1, $2, $3)
    ratio[call, ++runs[call]] = $NF
}

/^of |^measured|takes .* now/     # of each run

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
        x = middle(call)
        calls++
        if (x >= 0.8 && x <= 1.2)
            within++
        else
            print call, x
    }
    print within " of " calls " calls are simulated within 20 %"
}

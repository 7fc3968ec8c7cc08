# layer.awk - medians and verdicts of the lines of layer.sh

function median(list, n,    i, j, t)
{
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
            t = list[j]
            list[j] = list[j - 1]
            list[j - 1] = t
        }
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}

$1 == "dtensor" {
    ours[++n] = $2
    arithmetic[n] = $3
    copies[n] = $4
    rest[n] = 100 * ($2 - $3 - $4) / $2
}

$1 == "torch" { theirs[++m] = $2 }

END {
    mine = median(ours, n)
    outside = median(rest, n)
    printf "layer %.1f ms: arithmetic alone %.1f, bound of the bytes %.1f\n",
        mine, median(arithmetic, n), median(copies, n)
    printf "outside both: %.1f %% of the layer (median of %d rounds); " \
        "target: under 5 %%: %s\n", outside, n,
        (outside < 5 ? "met" : "missed")
    if (m == 0)
        exit
    peer = median(theirs, m)
    printf "PyTorch %.1f ms, %.2f times ours; target: 2: %s\n", peer,
        peer / mine, (peer < 2 * mine ? "missed" : "met")
}

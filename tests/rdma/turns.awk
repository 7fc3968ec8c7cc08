# turns.awk - the table of turns.c and what it says of the targets
#
# Reads "CONTESTANT BEST MEDIAN" of one run after the other, each run in the same
# order.  A sum takes some microseconds, so nearly all of them are undisturbed
# whatever else runs here: of each run the ratio of the medians counts.  Rows take
# as long as a time slice, so on a busy machine most of them are disturbed: the
# best of all runs count.

$1 == "failed" { failed++; next }

{
    if (!($1 in best)) { names[++n] = $1; best[$1] = $2 }
    if ($2 < best[$1]) best[$1] = $2
    medians[$1] = medians[$1] " " $3
    last[$1] = $3
}

# A run of sums is complete with its last contestant.
$1 == "sum_ours" { sums = sums " " last["sum_ours"] / last["sum_bare"] }

function verdict(what, met, by) {
    print "target: " what ": " (met ? "met" : "missed by " sprintf("%.2f", by))
}

END {
    for (i = 1; i <= n; i++)
        printf "%-16s %10.1f %10.1f\n", names[i], best[names[i]],
            middle(medians[names[i]])
    s = middle(sums)
    verdict(sprintf("allreduce of 8 B: %.2f of bare verbs doing the same, " \
                    "1.15 at most", s), s <= 1.15, s - 1.15)
    r = b = 0
    if (best["rows_ours"] > 0) {
        r = best["rows_gathers"] / best["rows_ours"]
        b = best["rows_gathers"] / best["rows_keeps"]
    }
    verdict(sprintf("512 rows of 2 KiB: %.2f of the rate of gathered writes, " \
                    "0.95 at least", r), r >= 0.95, 0.95 - r)
    if (b > 0 && b < 0.95)
        printf "bound: bare verbs that also copy the rows a rank keeps reach " \
            "%.2f of that rate, so nobody can meet this target here\n", b
    verdict(sprintf("512 rows of 2 KiB: %.2f of the rate of bare verbs that " \
                    "also copy, 0.95 at least", b ? r / b : 0),
            r >= 0.95 * b && b > 0, 0.95 - (b ? r / b : 0))
    if (failed)
        print failed " runs failed"
}

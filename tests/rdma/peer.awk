# peer.awk - ours beside Open MPI over rc, and what that says of the target
#
# Reads lines of host_mpi.c, "TEST BYTES CONTESTANT BEST MEDIAN P99 WRONG", of one
# run after the other; of a case the line of the MPI is the last.  `ranks`: 2 or 4.

NF < 7 { next }

{
    at = $1 " " $2
    if (!(at in seen)) { seen[at] = 1; cases[++n] = at }
    key = at " " $3
    if (!(key in best) || $4 < best[key]) best[key] = $4
    medians[key] = medians[key] " " $5
    last[$3] = $5
    wrong += $7
}

$3 == "mpi" { ratios[at] = ratios[at] " " last["alloc"] / $5 }

END {
    printf "%-24s %19s %19s %13s\n", "", "Open MPI best/median",
        "dtensor best/median", "ours/theirs"
    for (c = 1; c <= n; c++) {
        at = cases[c]
        split(at, part, " ")
        r = middle(ratios[at])
        printf "%-15s %8d %9.1f %9.1f %9.1f %9.1f %6.2f %6.2f\n", part[1],
            part[2],
            best[at " mpi"], middle(medians[at " mpi"]), best[at " alloc"],
            middle(medians[at " alloc"]), best[at " alloc"] / best[at " mpi"], r
        if (part[1] == "broadcast" && part[2] <= 4096) {
            said = said sprintf(" %d B %.2f", part[2], r)
            missed += r > 1
        }
    }
    if (ranks == 2)
        print "target: broadcast of 8 B to 4 KiB, no slower than Open MPI over " \
            "UCX: " (missed ? "missed at " missed " sizes" : "met") ":" said
    print "wrong elements: " wrong + 0
}

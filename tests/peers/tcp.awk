# tcp.awk - the table of tcp.sh and what it says of the targets
#
# Reads "tcp 2 TEST BYTES CONTESTANT MIN MEDIAN P99 WRONG" and "tcp 2 iperf3
# BITS", bits a second.

function verdict(what, missed) {
    print "target: " what ": " (missed == "" ? "met" : "missed:" missed)
}

$3 == "iperf3" { if ($4 > 0) bits = bits " " $4; next }
$3 == "hop" { next }

{
    at = $3 " " $4
    if (!(at in seen)) { seen[at] = 1; cases[++ncases] = at }
    took[$5] = $7
    wrong += $9
    times[at, $5] = times[at, $5] " " $7
    if ($5 == "mpi") {
        alloc[at] = alloc[at] " " took["alloc"] / $7
        private[at] = private[at] " " took["private"] / $7
    }
}

END {
    printf "wrong elements: %d\n", wrong
    printf "%-14s %9s %10s %10s %10s %6s %6s\n", "test", "bytes", "alloc",
        "private", "Open MPI", "alloc", "priv"
    for (c = 1; c <= ncases; c++) {
        at = cases[c]
        split(at, key, " ")
        a = middle(alloc[at]); p = middle(private[at])
        printf "%-14s %9d %10.2f %10.2f %10.2f %6.2f %6.2f\n", key[1], key[2],
            middle(times[at, "alloc"]), middle(times[at, "private"]),
            middle(times[at, "mpi"]), a, p
        if (a > 1) slow = slow sprintf(" %s %d B %.2f", key[1], key[2], a)
        if (p > 1) slower = slower sprintf(" %s %d B %.2f", key[1], key[2], p)
    }
    verdict("dtensor_alloc: no slower than Open MPI over tcp", slow)
    verdict("private: no slower than Open MPI over tcp", slower)
    if (bits == "" || !(("broadcast 16777216", "alloc") in times))
        exit
    ours = 16777216 * 8 / middle(times["broadcast 16777216", "alloc"]) * 1e6
    share = ours / middle(bits)
    verdict(sprintf("broadcast of 16 MiB: %.1f Gbit/s are %.2f of iperf3, " \
                    "0.95 wanted", ours / 1e9, share),
            share < 0.95 ? sprintf(" by %.2f", 0.95 - share) : "")
}

# tcp.awk - the table of tcp.sh and what it says of the targets
#
# Reads "tcp LOCAL TEST BYTES CONTESTANT MIN MEDIAN P99 WRONG" and "tcp LOCAL
# iperf3 BITS", bits a second.

function verdict(what, missed) {
    print "target: " what ": " (missed == "" ? "met" : "missed:" missed)
}

# What one kind of memory says against Open MPI: how many rows are no slower,
# the geometric mean of all and of each test, and the slower rows.
function against(who, ratio,    c, at, key, r, n, sum, tests, of, i, slow) {
    for (c = 1; c <= ncases; c++) {
        at = cases[c]
        split(at, key, " ")
        r = middle(ratio[at])
        if (!(key[1] in sum))
            of[++tests] = key[1]
        sum[key[1]] += log(r)
        many[who, key[1]]++
        all[who] += log(r)
        n += r <= 1
        if (r > 1)
            slow = slow sprintf(" %s %d B %.2f", key[1], key[2], r)
    }
    printf "%s: %d of %d rows no slower than Open MPI, geometric mean %.2f:",
        who, n, ncases, exp(all[who] / ncases)
    for (i = 1; i <= tests; i++)
        printf " %s %.2f", of[i], exp(sum[of[i]] / many[who, of[i]])
    print ""
    verdict(who ": no slower than Open MPI over tcp", slow)
}

# One way from one host to another, as iperf3 sends.
function stream(name,    at, ours, share) {
    at = name " 16777216"
    if (bits == "" || !((at, "alloc") in times))
        return
    ours = 16777216 * 8 / middle(times[at, "alloc"]) * 1e6
    share = ours / middle(bits)
    verdict(sprintf("%s of 16 MiB: %.1f Gbit/s are %.2f of iperf3, 0.95 wanted",
                    name, ours / 1e9, share),
            share < 0.95 ? sprintf(" by %.2f", 0.95 - share) : "")
}

$3 == "iperf3" { if ($4 > 0) bits = bits " " $4; next }
$3 == "hop" || $3 == "switch" { next }

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
        printf "%-14s %9d %10.2f %10.2f %10.2f %6.2f %6.2f%s\n", key[1],
            key[2], middle(times[at, "alloc"]), middle(times[at, "private"]),
            middle(times[at, "mpi"]), a, p,
            (a > 1 || p > 1 ? "  slower" : "")
    }
    against("dtensor_alloc", alloc)
    against("private", private)
    stream("broadcast")
    stream("message")
}

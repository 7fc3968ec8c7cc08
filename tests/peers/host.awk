# host.awk - the table of host.sh and what it says of the targets
#
# Reads "PEER RANKS hop NS", "PEER RANKS switch NS" and "PEER RANKS TEST BYTES
# CONTESTANT MIN MEDIAN P99 WRONG".  Lines of one job come together and end with
# its mpi.

# The larger of our ratios to the peers: that to the best of them.
function worst(at, ours,    p, most, r) {
    for (p = 1; p <= npeers; p++) {
        r = middle(ratio[at, ours, peer[p]])
        most = r > most ? r : most
    }
    return most
}

# One target: "what: met", or at which sizes it is missed and by how much.
function verdict(what, missed) {
    print "target: " what ": " (missed == "" ? "met" : "missed:" missed)
}

# The sizes of a test from `least` bytes on at which `ours` takes more than
# `most` times what the best peer takes.
function misses(name, ours, least, most,    c, key, list, r) {
    for (c = 1; c <= ncases; c++) {
        split(cases[c], key, " ")
        if (key[1] != 2 || key[2] != name || key[3] < least)
            continue
        r = worst(cases[c], ours)
        if (r > most)
            list = list sprintf(" %d B %.2f", key[3], r)
    }
    return list
}

# The sizes of a test from `least` bytes on at which ours takes more than 1.25
# times the bound.
function beyond(name, least,    c, key, list, r) {
    for (c = 1; c <= ncases; c++) {
        split(cases[c], key, " ")
        if (key[1] != 2 || key[2] != name || key[3] < least)
            continue
        r = middle(times[cases[c], "alloc"]) / middle(times[cases[c], "bound"])
        if (r > 1.25)
            list = list sprintf(" %d B %.2f", key[3], r)
    }
    return list
}

# How many times faster than the best peer, over all collectives of two ranks, and
# how many times faster a call would be that takes as long as the bound.
function overall(ours, goal,    c, key, sum, most, n, r) {
    for (c = 1; c <= ncases; c++) {
        split(cases[c], key, " ")
        r = key[1] == 2 && key[2] !~ /^exchange/ ? worst(cases[c], ours) : 0
        if (r <= 0)
            continue
        sum -= log(r)
        most += log(middle(times[cases[c], ours]) / r \
                    / middle(times[cases[c], "bound"]))
        n++
    }
    r = n ? exp(sum / n) : 0
    verdict(sprintf("all %d cases, 2 ranks, %s: %.2f times as fast as the " \
                    "best peer, %.1f wanted, %.2f is the bound", n,
                    ours == "alloc" ? "dtensor_alloc" : ours, r, goal,
                    n ? exp(most / n) : 0),
        r >= goal ? "" : sprintf(" by %.2f", goal - r))
}

BEGIN { npeers = split(peers, peer, " ") }

$3 == "hop" { hops = hops " " $4; next }
$3 == "switch" { switches = switches " " $4; next }

{
    at = $2 " " $3 " " $4
    if (!(at in seen)) { seen[at] = 1; cases[++ncases] = at }
    took[$5] = $7
    wrong += $9
    if ($5 != "mpi") {
        times[at, $5] = times[at, $5] " " $7
        next
    }
    times[at, $1] = times[at, $1] " " $7
    ratio[at, "alloc", $1] = ratio[at, "alloc", $1] " " took["alloc"] / $7
    ratio[at, "private", $1] = ratio[at, "private", $1] " " took["private"] / $7
}

END {
    hop = middle(hops) / 1000
    printf "a cache line's hop: %.3f us; wrong elements: %d\n", hop, wrong
    printf "%-5s %-14s %8s %8s %8s %8s", "ranks", "test", "bytes", "bound",
        "alloc", "private"
    for (p = 1; p <= npeers; p++)
        printf " | %8s %6s %6s", peer[p], "alloc", "priv"
    print ""
    for (c = 1; c <= ncases; c++) {
        at = cases[c]
        split(at, key, " ")
        bound = middle(times[at, "bound"])
        if (bound < hop)
            bound = hop
        printf "%-5s %-14s %8d %8.2f %8.2f %8.2f", key[1], key[2], key[3],
            bound, middle(times[at, "alloc"]), middle(times[at, "private"])
        for (p = 1; p <= npeers; p++)
            printf " | %8.2f %6.2f %6.2f", middle(times[at, peer[p]]),
                middle(ratio[at, "alloc", peer[p]]),
                middle(ratio[at, "private", peer[p]])
        print ""
        names[key[1] " " key[2]] = 1
    }
    n = split("allreduce allgather reduce_scatter all_to_all broadcast exchange " \
              "exchange_started", all)
    for (i = 1; i <= n; i++) {
        if (!(("2 " all[i]) in names))
            continue
        verdict(all[i] ", 2 ranks, dtensor_alloc: no slower than the best " \
                "peer", misses(all[i], "alloc", 0, 1))
        verdict(all[i] ", 2 ranks, private: no slower than the best peer",
                misses(all[i], "private", 0, 1))
    }
    verdict("allreduce from 64 KiB on, dtensor_alloc: 1.8 times faster " \
            "(0.56)", misses("allreduce", "alloc", 65536, 1 / 1.8))
    verdict("allreduce from 64 KiB on, private: 1.4 times faster (0.71)",
            misses("allreduce", "private", 65536, 1 / 1.4))
    overall("alloc", 2.2)
    overall("private", 1.7)
    verdict("allreduce from 64 KiB on: within 1.25 of the bound",
            beyond("allreduce", 65536))
    verdict("allgather from 2 MiB on: within 1.25 of the bound",
            beyond("allgather", 2097152))
    verdict("all_to_all from 2 MiB on: within 1.25 of the bound",
            beyond("all_to_all", 2097152))
    at = "2 allreduce 8"
    if (at in seen) {
        us = middle(times[at, "alloc"])
        over = us - 3.2 * hop
        verdict(sprintf("allreduce of 8 B: %.3f us, 1.6 times two hops are " \
                        "%.3f, %.3f is the bound", us, 3.2 * hop,
                        middle(times[at, "bound"])),
            over <= 0 ? "" : sprintf(" by %.2f us", over))
    }
    at = "4 allreduce 8"
    for (p = 1; at in seen && p <= npeers; p++)
        if (peer[p] != "mpich") {
            r = middle(ratio[at, "alloc", peer[p]])
            verdict(sprintf("allreduce of 8 B, 4 ranks: %.2f of %s, 0.50 " \
                            "wanted, %.2f are two switches of a CPU", r,
                            peer[p], 2 * middle(switches) / 1000 \
                            / middle(times[at, peer[p]])),
                r <= 0.5 ? "" : sprintf(" by %.2f", r - 0.5))
        }
}

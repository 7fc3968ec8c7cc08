# versions.awk - the table of versions.sh, and its verdict
#
# Reads "RANKS TEST MEMORY BYTES OLD AGAIN NEW DIFFER", a line for each case and
# round.  A ratio is taken within a round; of the rounds the median counts.

# How far the old library is from its own copy, up or down, at worst.
function noise(list,    v, n, i, far, most) {
    n = split(list, v, " ")
    for (i = 1; i <= n; i++) {
        far = v[i] > 1 ? v[i] : 1 / v[i]
        most = far > most ? far : most
    }
    return most
}

{
    at = $1 " " $2 " " $3 " " $4
    if (!(at in seen)) { seen[at] = 1; cases[++ncases] = at }
    old[at] = old[at] " " $5
    new[at] = new[at] " " $7
    ratio[at] = ratio[at] " " $7 / (($5 + $6) / 2)
    self[at] = self[at] " " $6 / $5
    differ[at] += $8
}

END {
    printf "%-5s %-14s %-6s %8s %10s %10s %8s %8s %s\n", "ranks", "test",
        "memory", "bytes", "old", "new", "new/old", "noise", "differ"
    for (c = 1; c <= ncases; c++) {
        at = cases[c]
        split(at, key, " ")
        r = middle(ratio[at])
        n = noise(self[at])
        printf "%-5d %-14s %-6s %8d %10.2f %10.2f %8.3f %8.3f %d\n", key[1],
            key[2], key[3], key[4], middle(old[at]), middle(new[at]), r, n,
            differ[at]
        sum[key[1]] += log(r)
        control[key[1]] += log(middle(self[at]))
        many[key[1]]++
        if (r > limit && r > n)
            slower = slower sprintf(" %d ranks %s %s %d B %.2f,", key[1],
                                    key[2], key[3], key[4], r)
    }
    for (ranks in many)
        printf "geometric mean, %d ranks: %.3f; the old library by its copy " \
            "%.3f\n", ranks, exp(sum[ranks] / many[ranks]),
            exp(control[ranks] / many[ranks])
    print "verdict: " (slower == "" ? "no case is slower than " limit \
                                      " and the noise" : "slower:" slower)
    exit slower != ""
}

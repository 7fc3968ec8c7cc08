/* judge.c - rank 0: have all ranks joined, and do they agree?
 *
 * Rank 0 learns of every rank as it joins.  If all have joined with the same
 * digest of their identity, the round succeeds.
 *
 * If digests differ, rank 0 waits half a second for more ranks.  Then the
 * digest of the larger group is right (that of rank 0 if both are equal), and
 * the first rank of the other group is the one to name.  Rank 0 is in one of
 * the groups, so it needs one identity from the other to find the line that
 * differs.  With digests A A B A it asks rank 2; with A B B B it asks rank 1.
 */
#include "boot/judge.h"
#include "base/error.h"
#include "base/wait.h"
#include "boot/fail.h"
#include "boot/frame.h"
#include "boot/link.h"
#include "boot/state.h"
#include "boot/tree.h"
#include "boot/words.h"
#include "cluster/canonical.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void dtn_boot_judge_member(struct dtn_boot *boot, int rank, bool detour,
                           uint32_t pid, uint64_t digest)
{
    struct dtn_boot_member *m = &boot->members[rank];
    enum dtn_member_state state = detour ? DTN_MEMBER_SEEN : DTN_MEMBER_JOINED;

    if (boot->seq == 0) {
        if (m->state != DTN_MEMBER_MISSING && m->pid != pid) {
            dtn_boot_fail_twice(boot, rank, m->pid, pid);
            return;
        }
        m->pid = pid;
        m->digest = digest;
        if (digest != boot->digest && boot->differs_ns == 0)
            boot->differs_ns = dtn_now_ns();
    }
    m->around = m->around || detour;
    if (state <= m->state)
        return;
    boot->njoined += state == DTN_MEMBER_JOINED;
    m->state = state;
}

/* -------------------------------------------------------------- missing --- */

/* Until then leaders are waited for after the deadline. */
static int64_t judge_answer_ns(const struct dtn_boot *boot)
{
    return boot->until_ns - dtn_boot_fail_wait_ns(boot) + DTN_BOOT_ANSWER_NS;
}

/* Rank p does not pass on what comes from rank r, which rank 0 has seen by a
 * detour.
 */
static void judge_blocks(struct dtn_boot *boot, int p, int r)
{
    const char *address = boot->hosts[dtn_boot_tree_host(boot, p)]->address;
    struct dtensor_error error;
    char child[DTN_HOST_MAX + 32], parent[DTN_HOST_MAX + 32], port[160] = "";

    if (!dtn_boot_tree_same_host(boot, p, r))
        snprintf(port, sizeof port, ", or port %d of %s closed to it",
                 boot->port, address);
    dtn_fail_rank(&error, DTENSOR_ETIME, p, "boot: %s does not answer %s (is "
                  "it stuck or stopped%s?)",
                  dtn_boot_rank_name(boot, p, parent, sizeof parent),
                  dtn_boot_rank_name(boot, r, child, sizeof child), port);
    dtn_boot_fail_propose(boot, &error);
}

/* All ranks were seen, some by a detour only: name the first one above them
 * that has taken none.
 */
static void judge_cut_off(struct dtn_boot *boot)
{
    int r = 1, p;

    while (r < boot->cluster->world_size
           && boot->members[r].state != DTN_MEMBER_SEEN)
        r++;
    if (r == boot->cluster->world_size)
        return;
    p = dtn_boot_tree_parent(boot, r);
    while (p > 0 && boot->members[p].around) {
        r = p;
        p = dtn_boot_tree_parent(boot, r);
    }
    judge_blocks(boot, p, r);
}

/* The leader nearest to rank 0, above this rank, that has joined and did not
 * answer; -1: none.
 */
static int judge_silent(const struct dtn_boot *boot, int rank)
{
    int silent = -1;

    for (int p = dtn_boot_tree_parent(boot, rank); p > 0;
         p = dtn_boot_tree_parent(boot, p))
        if (boot->members[p].state == DTN_MEMBER_JOINED
            && !boot->members[p].answered)
            silent = p;
    return silent;
}

/* The same of all missing ranks. */
static int judge_silent_any(const struct dtn_boot *boot)
{
    int silent = -1;

    for (int r = 0; r < boot->cluster->world_size && silent < 0; r++)
        if (boot->members[r].state == DTN_MEMBER_MISSING)
            silent = judge_silent(boot, r);
    return silent;
}

/* While opening, list every rank that was not seen.  Later there are no
 * detours, so nothing is known of the ranks below a missing one.  If a leader
 * above them does not answer, they may well be there.
 */
static void judge_missing(struct dtn_boot *boot, int64_t now)
{
    const int silent = judge_silent_any(boot);
    int world = boot->cluster->world_size, n = 0;
    int *ranks;

    if (silent >= 0) {
        if (now >= judge_answer_ns(boot))
            dtn_boot_fail_silent(boot, silent);
        return;
    }
    ranks = malloc((size_t)world * sizeof *ranks);
    if (!ranks) {
        dtn_boot_fail_nomem(boot);
        return;
    }
    for (int r = 0; r < world; r++) {
        int p = dtn_boot_tree_parent(boot, r);

        if (boot->members[r].state == DTN_MEMBER_MISSING &&
            (boot->seq == 0 || p < 0 ||
             boot->members[p].state != DTN_MEMBER_MISSING))
            ranks[n++] = r;
    }
    if (n > 0)
        dtn_boot_fail_missing(boot, ranks, n, ranks[0]);
    else
        judge_cut_off(boot);
    free(ranks);
}

/* ------------------------------------------------------------ different --- */

static int judge_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The digest of most ranks; that of rank 0 if none is more frequent. */
static uint64_t judge_majority(const struct dtn_boot *boot)
{
    size_t n = 0, first, last, best = 0;
    size_t world = (size_t)boot->cluster->world_size;
    uint64_t *digests = malloc(world * sizeof *digests);
    uint64_t majority = boot->digest;

    if (!digests)
        return majority;
    for (size_t r = 0; r < world; r++)
        if (boot->members[r].state != DTN_MEMBER_MISSING)
            digests[n++] = boot->members[r].digest;
    qsort(digests, n, sizeof *digests, judge_compare);
    for (first = 0; first < n; first = last) {
        for (last = first; last < n && digests[last] == digests[first];)
            last++;
        if (last - first < best ||
            (last - first == best && digests[first] != boot->digest))
            continue;
        best = last - first;
        majority = digests[first];
    }
    free(digests);
    return majority;
}

/* The first rank that has joined and has, or does not have, `digest`. */
static int judge_first(const struct dtn_boot *boot, uint64_t digest, bool has)
{
    int r = 0;

    while (r < boot->cluster->world_size &&
           (boot->members[r].state == DTN_MEMBER_MISSING ||
            (boot->members[r].digest == digest) != has))
        r++;
    return r;
}

static void judge_ask(struct dtn_boot *boot, uint64_t majority, int64_t now)
{
    unsigned char body[4];
    const struct dtn_frame frame = { .type = DTN_FRAME_ASK, .size = sizeof body,
                                     .body = body };

    boot->asked = judge_first(boot, majority, majority != boot->digest);
    boot->asked_ns = now;
    boot->majority = majority;
    dtn_frame_put32(body, (uint32_t)boot->asked);
    dtn_boot_link_ask(boot, &frame);
}

/* The text that names all ranks with the digest of the first odd rank. */
static void judge_odd_text(const struct dtn_boot *boot, int odd, char *buf,
                           size_t size)
{
    int world = boot->cluster->world_size, n = 0;
    int *ranks = malloc((size_t)world * sizeof *ranks);

    for (int r = odd; ranks && r < world; r++)
        if (boot->members[r].state != DTN_MEMBER_MISSING &&
            boot->members[r].digest == boot->members[odd].digest)
            ranks[n++] = r;
    dtn_boot_ranks_text(boot, ranks ? ranks : &odd, ranks ? n : 1, buf,
                        size);
    snprintf(buf + strlen(buf), size - strlen(buf), n > 1 ? " were" : " was");
    free(ranks);
}

static void judge_different(struct dtn_boot *boot)
{
    int odd = judge_first(boot, boot->majority, false);
    const char *mine = boot->identity, *other = boot->answer;
    struct dtensor_error error;
    char ranks[200], diff[200] = "their cluster files differ";

    if (boot->answer) {
        if (boot->majority != boot->digest) {
            mine = boot->answer;
            other = boot->identity;
        }
        dtn_canonical_diff(mine, other, diff, sizeof diff);
    }
    judge_odd_text(boot, odd, ranks, sizeof ranks);
    dtn_fail_rank(&error, DTENSOR_EMISMATCH, odd, "boot: %s started with "
                  "other settings: %s (give every rank the "
                  "same cluster file)", ranks, diff);
    dtn_boot_fail_propose(boot, &error);
}

static void judge_difference(struct dtn_boot *boot, int64_t now)
{
    if (boot->asked < 0 && boot->njoined < boot->cluster->world_size &&
        !boot->expired && now < boot->differs_ns + DTN_BOOT_SETTLE_NS)
        return;
    if (boot->asked < 0)
        judge_ask(boot, judge_majority(boot), now);
    else if (boot->answer || boot->expired ||
             now > boot->asked_ns + DTN_BOOT_VERDICT_NS)
        judge_different(boot);
}

/* ------------------------------------------- one step of the loop --- */

bool dtn_boot_judge_progress(struct dtn_boot *boot, int64_t now)
{
    if (!boot->root || boot->state != DTN_BOOT_GATHERING)
        return false;
    if (boot->differs_ns != 0)
        judge_difference(boot, now);
    else if (boot->njoined == boot->cluster->world_size)
        return true;
    else if (boot->expired)
        judge_missing(boot, now);
    return false;
}

int64_t dtn_boot_judge_wake(const struct dtn_boot *boot)
{
    if (!boot->root)
        return INT64_MAX;
    if (boot->differs_ns == 0)
        return boot->expired && boot->state == DTN_BOOT_GATHERING
             ? judge_answer_ns(boot) : INT64_MAX;
    return boot->asked < 0 ? boot->differs_ns + DTN_BOOT_SETTLE_NS
                           : boot->asked_ns + DTN_BOOT_VERDICT_NS + DTN_BOOT_MS;
}

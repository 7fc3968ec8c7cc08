/* test_emitters_hosts.c - hierarchical emitters are proven right for hosts of
 * every shape
 *
 * Up to 17 ranks on equal hosts, one after another and dealt around, with
 * every root, even and uneven blocks, apart and in place, two rounds; and on
 * hosts with unequal numbers.  Loads from another host's memory are refused,
 * and all ranks must have put each element together in the same order.
 *
 * Without this test, a hierarchical algorithm could fail on hosts with unequal
 * numbers of ranks.
 */
#include "base/compiler.h"
#include "cluster/cluster.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/sched/coll_cases.h"
#include "tests/support/heap.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#define RANKS_MAX 17

static struct coll_case now;
static int ncases;

static bool case_good(bool in_place)
{
    struct dtensor_error err;
    int rc = case_emit(&now, &err);

    ncases++;
    if (rc == 0)
        rc = case_check(&now, 2, in_place, &err);
    if (rc != 0) {
        note("%s %s: n %d, root %d, count %zu%s%s: %s",
             dtn_coll_name(now.emitter->coll), now.emitter->name,
             now.call.n, now.call.root, now.call.count,
             now.call.counts ? " uneven" : "", in_place ? " in place" : "",
             err.text);
        for (int r = 0; r < now.call.n; r++)
            note("rank %d is on host %d", r, now.call.hosts[r]);
        for (int r = 0; r < now.call.n && r < 4; r++)
            dtn_sched_print(&now.scheds[r], stdout);
    }
    case_fini(&now);
    return rc == 0;
}

/* Uneven blocks, some of them empty. */
static bool uneven_good(void)
{
    size_t counts[RANKS_MAX];
    bool good;

    for (int r = 0; r < now.call.n; r++)
        counts[r] = (size_t)(r * 7 + 3) % 5;
    now.call.counts = counts;
    good = case_good(false) && case_good(true);
    now.call.counts = NULL;
    return good;
}

/* The same hosts, numbered as they appear. */
static void placing_number(int n, const int hosts[], int numbered[])
{
    int known = 0;

    for (int p = 0; p < n; p++) {
        numbered[p] = known;
        for (int q = 0; q < p && numbered[p] == known; q++)
            if (hosts[q] == hosts[p])
                numbered[p] = numbered[q];
        known += numbered[p] == known;
    }
}

/* One placing of the ranks; a buffer of 1096 bytes has 18 lines to cut. */
static bool placing_good(int n, const int hosts[])
{
    enum dtn_coll coll = now.emitter->coll;
    bool rooted = coll == DTN_COLL_BROADCAST || coll == DTN_COLL_REDUCE;
    bool blocks = coll == DTN_COLL_ALLGATHER
               || coll == DTN_COLL_REDUCE_SCATTER;
    const bool narrow = n == 3 || n == 4 || n == 8;
    const enum dtensor_dtype dtype = narrow ? DTENSOR_BF16 : DTENSOR_F64;
    const size_t counts[] = { 0, 1, blocks ? 3
                                           : 1096 / dtensor_dtype_size(dtype) };
    int numbered[RANKS_MAX];
    bool good = true;

    placing_number(n, hosts, numbered);
    now.call = (struct dtn_call){ .coll = coll, .n = n, .hosts = numbered,
                                  .dtype = dtype,
                                  .redop = n % 3 ? DTENSOR_AVG : DTENSOR_SUM };
    for (size_t i = 0; good && i < DTN_COUNT(counts); i++)
        for (int root = 0; good && root < (rooted ? n : 1); root++) {
            now.call.root = root;
            now.call.count = counts[i];
            good = case_good(false)
                && (!case_in_place_ok(coll) || case_good(true));
        }
    return good && (!blocks || uneven_good());
}

/* All numbers of equal hosts. */
static bool equal_good(void)
{
    int hosts[RANKS_MAX];

    for (int n = 1; n <= RANKS_MAX; n++)
        for (int nhosts = 1; nhosts <= n; nhosts++) {
            if (n % nhosts != 0)
                continue;
            for (int p = 0; p < n; p++)
                hosts[p] = 40 - p / (n / nhosts);
            if (!placing_good(n, hosts))
                return false;
            for (int p = 0; p < n; p++)
                hosts[p] = p % nhosts;
            if (nhosts > 1 && nhosts < n && !placing_good(n, hosts))
                return false;
        }
    return true;
}

/* All ways to put n ranks on up to 3 hosts, which are numbered as they appear.
 */
static bool placings_good(int n)
{
    int hosts[RANKS_MAX], numbered[RANKS_MAX], codes = 1;

    for (int p = 0; p < n; p++)
        codes *= 3;
    for (int code = 0; code < codes; code++) {
        for (int p = 0, rest = code; p < n; p++, rest /= 3)
            hosts[p] = rest % 3;
        placing_number(n, hosts, numbered);
        if (memcmp(hosts, numbered, (size_t)n * sizeof hosts[0]) == 0
            && !placing_good(n, hosts))
            return false;
    }
    return true;
}

/* Up to 6 ranks in all ways, some of 10, and 7 to 17 ranks dealt to five places
 * of three hosts.
 */
static bool unequal_good(void)
{
    static const int some[][RANKS_MAX] = {
        { 0, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, { 3, 2, 1, 0, 0, 0, 0, 0, 0, 0 },
        { 0, 0, 0, 0, 0, 1, 1, 1, 1, 2 }, { 9, 8, 7, 9, 6, 5, 9, 8, 9, 9 },
        { 0, 0, 0, 0, 0, 0, 1, 1, 1, 1 }, { 0, 1, 0, 1, 0, 1, 0, 0, 0, 0 },
        { 2, 2, 2, 1, 1, 1, 0, 0, 0, 0 }, { 1, 1, 0, 0, 0, 0, 0, 2, 2, 2 }
    };

    int dealt[RANKS_MAX];

    for (int p = 0; p < RANKS_MAX; p++)
        dealt[p] = p % 5 % 3;
    for (int n = 3; n <= RANKS_MAX; n++)
        if (n <= 6 ? !placings_good(n) : !placing_good(n, dealt))
            return false;
    for (size_t i = 0; i < DTN_COUNT(some); i++)
        if (!placing_good(10, some[i]))
            return false;
    return true;
}

/* Messages of 1 to 9 chunks through trees of hosts, equal and not, the root
 * anywhere.  The proof takes as long as there are elements: only few ranks have
 * narrow ones, and all three sizes.
 */
static bool chunks_good(void)
{
    static const struct { int n; int hosts[RANKS_MAX]; } on[] = {
        { 2, { 0, 1 } }, { 3, { 0, 1, 1 } }, { 4, { 0, 0, 1, 1 } },
        { 5, { 0, 1, 2, 2, 1 } }, { 6, { 0, 0, 1, 1, 2, 2 } },
        { 7, { 0, 0, 0, 1, 1, 2, 2 } },
        { 8, { 0, 0, 1, 1, 2, 2, 3, 3 } },
        { 9, { 0, 1, 2, 3, 4, 0, 1, 2, 3 } },
        { 12, { 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5 } }
    };
    bool good = true;

    for (size_t i = 0; i < DTN_COUNT(on); i++) {
        const bool few = on[i].n < 7;

        for (int root = 0; good && root < on[i].n; root += 1 + on[i].n / 7)
            for (size_t kib = 10; good && kib <= 70; kib += few ? 30 : 60) {
                const enum dtensor_dtype dtype = !few ? DTENSOR_C128
                    : root % 2 || on[i].n > 4 ? DTENSOR_F64 : DTENSOR_BF16;

                now.call = (struct dtn_call){ .coll = now.emitter->coll,
                    .n = on[i].n, .hosts = on[i].hosts, .root = root,
                    .dtype = dtype,
                    .redop = root % 3 ? DTENSOR_AVG : DTENSOR_SUM };
                now.call.count = (kib << 10) / dtensor_dtype_size(dtype) - 5;
                good = case_good(false)
                    && (!case_in_place_ok(now.call.coll) || case_good(true));
            }
    }
    return good;
}

static bool by_trees(void)
{
    return now.emitter->algorithm == DTN_ALG_RAILS
        && (now.emitter->coll == DTN_COLL_BROADCAST
            || now.emitter->coll == DTN_COLL_REDUCE);
}

int main(void)
{
    clock_t begin = clock();

    heap_keep();
    for (now.emitter = dtn_emitters; now.emitter->emit; now.emitter++) {
        if (now.emitter->needs != DTN_REACH_HOST)
            continue;
        ok(equal_good(), "%s %s: right for 1 to %d ranks on equal hosts",
           dtn_coll_name(now.emitter->coll), now.emitter->name, RANKS_MAX);
        if (by_trees())
            ok(chunks_good(), "%s: right in several chunks",
               dtn_coll_name(now.emitter->coll));
        if (now.emitter->hosts == DTN_HOSTS_EQUAL)
            continue;
        ok(unequal_good(), "%s %s: right for 3 to %d ranks on unequal hosts",
           dtn_coll_name(now.emitter->coll), now.emitter->name, RANKS_MAX);
    }
    note("%d cases in %.1f s", ncases,
         (double)(clock() - begin) / CLOCKS_PER_SEC);
    return done();
}

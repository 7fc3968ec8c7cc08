/* test_emitters.c - every emitter is proven right for many shapes
 *
 * Every row of dtn_emitters, 1 to 17 ranks, every root, even and uneven blocks
 * with empty ones among them, apart and in place, two rounds over the same
 * buffers (three for the last count).
 *
 * Without this test, an algorithm could be wrong for a number of ranks that
 * nobody here runs.
 */
#include "base/compiler.h"
#include "cluster/cluster.h"
#include "cluster/sections.h"
#include "coll/choose.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/model.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/sched/coll_cases.h"
#include "tests/support/heap.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

static struct coll_case now;
static int ncases, nhidden;      /* checked; with steps for private memory   */

static const char *row_name(const struct dtn_emitter *emitter)
{
    static char name[80];

    snprintf(name, sizeof name, "%s %s%s%s", dtn_coll_name(emitter->coll),
             dtn_word_text(dtn_algorithm_words, emitter->algorithm),
             emitter->needs == DTN_REACH_MAP ? " mapped" : "",
             emitter->max_bytes == DTN_EAGER_MAX ? " eager" : "");
    return name;
}

/* One call; the first that fails is shown. */
static bool case_good(bool in_place, int rounds)
{
    const size_t most = now.emitter->max_bytes == DTN_EAGER_MAX
                      ? dtn_eager_bytes(now.call.eager_bytes)
                      : now.emitter->max_bytes;
    struct dtensor_error err;
    int rc;

    if (dtn_call_edge_bytes(&now.call) > most)
        return true;
    ncases++;
    rc = case_emit(&now, &err);
    if (rc == 0)
        rc = case_check(&now, rounds, in_place, &err);
    nhidden += now.scheds[0].nprivate > 0;
    if (rc == 0)
        rc = case_check_hidden(&now, rounds, in_place, &err);
    if (rc != 0) {
        note("%s: n %d, root %d, count %zu%s%s: %s", row_name(now.emitter),
             now.call.n, now.call.root, now.call.count,
             now.call.counts ? " uneven" : "", in_place ? " in place" : "",
             err.text);
        for (int r = 0; r < now.call.n && r < 4; r++)
            dtn_sched_print(&now.scheds[r], stdout);
    }
    case_fini(&now);
    return rc == 0;
}

static bool case_places(int rounds)
{
    return case_good(false, rounds)
        && (!case_in_place_ok(now.call.coll) || case_good(true, rounds));
}

static bool rooted(enum dtn_coll coll)
{
    return dtn_coll_infos[coll].in_at_root || dtn_coll_infos[coll].out_at_root;
}

static bool reducing(enum dtn_coll coll)
{
    return dtn_coll_infos[coll].reduces;
}

static bool blocked(enum dtn_coll coll)
{
    return dtn_coll_infos[coll].in == DTN_HOLDS_EACH
           || dtn_coll_infos[coll].out == DTN_HOLDS_EACH
           || coll == DTN_COLL_PAIRS;
}

/* Five lines and a bit are more blocks than one. */
static bool even_good(int n)
{
    const size_t counts[] = { 0, 1, 2, (size_t)n - 1, (size_t)n, (size_t)n + 1,
                              296 / dtensor_dtype_size(now.call.dtype) };
    int nroots = rooted(now.call.coll) ? n : 1;

    now.call.counts = NULL;
    for (size_t i = 0; i < DTN_COUNT(counts); i++)
        for (now.call.root = 0; now.call.root < nroots; now.call.root++) {
            now.call.count = counts[i];
            if (!case_places(i + 1 < DTN_COUNT(counts) ? 2 : 3))
                return false;
        }
    now.call.root = 0;
    return true;
}

/* Has it another way for what does not go with a signal? */
static bool carries(enum dtn_algorithm algorithm)
{
    return algorithm == DTN_ALG_TREE || algorithm == DTN_ALG_DOUBLING
        || algorithm == DTN_ALG_BRUCK;
}

/* Beyond what goes with a signal, from the first and the last root. */
static bool tall_good(int n)
{
    if (blocked(now.call.coll) && n > 9)
        return true;              /* 17 x 17 x 521 cells take too long        */
    now.call.counts = NULL;
    now.call.count = DTN_EAGER_MAX / dtensor_dtype_size(now.call.dtype) + 9;
    for (now.call.root = 0; now.call.root < n; now.call.root += n - 1) {
        if (!case_good(false, 2))
            return false;
        if (n == 1 || !rooted(now.call.coll))
            break;
    }
    now.call.root = 0;
    return true;
}

/* How many READY are awaited, with so many elements?  Eager messages need none.
 */
static int case_asks(size_t count)
{
    struct coll_case c = now;
    struct dtensor_error err;
    int asks = 0;

    c.call.count = count;
    if (case_emit(&c, &err) != 0)
        return -1;
    for (int r = 0; r < c.call.n; r++)
        for (int s = 0; s < c.scheds[r].nsteps; s++)
            asks += c.scheds[r].steps[s].tag == DTN_TAG_READY
                 && c.scheds[r].steps[s].op == DTN_OP_WAIT;
    case_fini(&c);
    return asks;
}

/* The same where the transport keeps longer messages: as for one element. */
static bool longer_good(void)
{
    bool good = true;

    now.call = (struct dtn_call){ .coll = now.emitter->coll,
                                  .dtype = DTENSOR_F64,
                                  .count = DTN_EAGER_MAX / sizeof(double) + 9,
                                  .eager_bytes = DTN_KEPT_MAX };
    for (now.call.n = 2; good && now.call.n <= 5; now.call.n++)
        good = case_good(false, 2)
            && case_asks(now.call.count) == case_asks(1);
    return good;
}

/* Patterns of uneven blocks, some empty: by pattern number.  The last has some
 * that do not go with a signal.
 */
static size_t uneven_count(int pattern, int r, int n)
{
    switch (pattern) {
    case 4:  return r % 4 == 2 ? DTN_EAGER_MAX / sizeof(double) + 1
                  : (size_t)r % 3;
    case 0:  return (size_t)(r * 7 + 3) % 5;       /* 3 0 2 4 1 ...          */
    case 1:  return r % n == n - 1 ? 40 : 0;       /* all in the last        */
    case 2:  return r % 3 == 0 ? 0 : (size_t)r % 9;
    default: return (size_t)(r * 31 + 11) % 29;
    }
}

static bool uneven_good(int n)
{
    static size_t counts[CASE_RANKS_MAX * CASE_RANKS_MAX];
    bool pairs = now.call.coll == DTN_COLL_ALL_TO_ALL
              || now.call.coll == DTN_COLL_PAIRS;
    int total = pairs ? n * n : n;

    now.call.counts = counts;
    for (int pattern = 0; pattern < (n <= 3 ? 5 : 4); pattern++) {
        for (int r = 0; r < total; r++)
            counts[r] = uneven_count(pattern, r, n);
        now.call.root = rooted(now.call.coll) ? pattern * 3 % n : 0;
        if (!case_places(2))
            return false;
    }
    now.call.counts = NULL;
    now.call.root = 0;
    return true;
}

/* Large enough for blocks to be pulled, folded together, and cut in chunks; of
 * calls with a block for each rank all blocks together.
 */
static bool large_good(void)
{
    static const size_t counts[] = { 10007, 300007, 30011 };
    bool direct = now.emitter->algorithm == DTN_ALG_DIRECT;
    bool ring = now.emitter->algorithm == DTN_ALG_RING;
    bool twotree = now.emitter->algorithm == DTN_ALG_TWOTREE;

    now.call.dtype = DTENSOR_F64;
    for (size_t i = 0; i < (twotree ? 3 : ring || direct ? 2 : 1); i++)
        for (now.call.n = 2; now.call.n <= (i == 2 ? 9 : 3); now.call.n++) {
            now.call.count = blocked(now.call.coll)
                           ? counts[i] / (size_t)now.call.n + 1 : counts[i];
            now.call.root = now.call.n - 1;
            if (!case_good(case_in_place_ok(now.call.coll), 2))
                return false;
        }
    return true;
}

/* What partial results are made of: the elements themselves; sums that are
 * divided at the end; wider ones, up to eight times.
 */
static bool types_good(int n)
{
    static const struct {
        enum dtensor_dtype dtype;
        enum dtensor_redop op;
    } types[] = {
        { DTENSOR_F64, DTENSOR_AVG }, { DTENSOR_F64, DTENSOR_SUM },
        { DTENSOR_BF16, DTENSOR_SUM }, { DTENSOR_F8E5M2, DTENSOR_AVG },
        { DTENSOR_U64, DTENSOR_AVG }, { DTENSOR_I8, DTENSOR_AVG }
    };
    const int ntypes = (int)DTN_COUNT(types);
    const bool reduces = reducing(now.emitter->coll);
    bool good = true;

    now.call.n = n;
    for (int t = 0; good && t < ntypes; t++) {
        if (reduces ? n > 4 && n % ntypes != t : t > 0)
            continue;
        now.call.dtype = types[t].dtype;
        now.call.redop = types[t].op;
        good = even_good(n)
            && (!carries(now.emitter->algorithm) || tall_good(n))
            && (!blocked(now.emitter->coll) || uneven_good(n));
    }
    return good;
}

static void test_row(const struct dtn_emitter *emitter)
{
    bool good = true;

    now.emitter = emitter;
    now.call = (struct dtn_call){ .coll = emitter->coll,
                                  .dtype = DTENSOR_F64 };
    for (int n = 1; good && n <= CASE_RANKS_MAX; n++)
        good = types_good(n);
    ok(good, "%s: right for 1 to %d ranks, every root, even and uneven%s, in "
       "repeated rounds", row_name(emitter), CASE_RANKS_MAX,
       case_in_place_ok(emitter->coll) ? ", apart and in place" : "");
    if (emitter->max_bytes == DTN_EAGER_MAX || carries(emitter->algorithm))
        ok(longer_good(), "%s: with no more READY, where longer messages are "
           "eager", row_name(emitter));
    if (emitter->max_bytes > DTN_EAGER_MAX
        && emitter->coll != DTN_COLL_BARRIER)
        ok(large_good(), "%s: right when large", row_name(emitter));
}

/* Small elements: blocks of bytes that are not whole lines. */
static void test_bytes(void)
{
    bool good = true;

    for (now.emitter = dtn_emitters; good && now.emitter->emit; now.emitter++) {
        now.call = (struct dtn_call){ .coll = now.emitter->coll, .n = 3,
                                      .root = 1, .dtype = DTENSOR_I8,
                                      .redop = DTENSOR_BOR };
        for (now.call.count = 40; good && now.call.count < 200;
             now.call.count += 13)
            good = case_places(2);
    }
    ok(good, "all emitters: right for blocks of odd bytes");
}

/* --------------------------------------------------------------- choosing */

/* n ranks on one host, or of two hosts' each if they load from their own; one
 * host each if from nobody.
 */
static void model_of(struct dtn_model *model, int n)
{
    static const struct dtensor_cluster cluster = {
        .transport = { .intra_node = DTN_WIRE_SHM, .inter_node = DTN_WIRE_RC },
        .redistribute.max_scratch_bytes = SIZE_MAX
    };
    const struct dtn_tuning *tuning = model->tuning;

    dtn_model_costs(&cluster, model);
    model->tuning = tuning;
    model->hosts = model->reach == DTN_REACH_MAP ? 1
                 : model->reach == DTN_REACH_PUT ? n : (n + 1) / 2;
    model->locals = model->reach == DTN_REACH_MAP ? n
                  : model->reach == DTN_REACH_PUT ? 1 : 2;
    model->ranks_per_device = model->locals;
}

static const struct dtn_emitter *chosen(enum dtn_coll coll, int n,
                                        size_t count, enum dtn_reach reach,
                                        const struct dtn_tuning tuning[])
{
    struct dtn_call call = { .coll = coll, .n = n, .count = count,
                             .dtype = DTENSOR_F32 };
    struct dtn_model model = { .reach = reach, .tuning = tuning };
    struct dtn_choice pick;

    model_of(&model, n);
    dtn_choose(&call, &model, &pick);
    return pick.emitter;
}

static void test_choose(void)
{
    struct dtn_tuning tuning[DTN_NTUNED] = {
        [DTN_TUNED_ALLREDUCE] = { .n = 3, .entry = {
            { 0, DTN_ALG_TREE }, { 4096, DTN_ALG_DIRECT },
            { 65536, DTN_ALG_RING } } },
        [DTN_TUNED_BROADCAST] = { .n = 1, .entry = { { 0, DTN_ALG_DIRECT } } }
    };
    bool always = true;

    for (int coll = 0; coll < DTN_COLL_EXCHANGE; coll++)
        for (int n = 1; n < 40; n += 3)
            for (size_t count = 0; count < 100000; count = 3 * count + 1)
                for (int reach = 0; reach <= DTN_REACH_MAP; reach++)
                    always = always
                        && chosen((enum dtn_coll)coll, n, count, reach, NULL)
                        && (int)chosen((enum dtn_coll)coll, n, count, reach,
                                       NULL)->needs <= reach;
    ok(always, "there is an emitter for every call and reach, which needs no "
       "more");
    ok(chosen(DTN_COLL_ALLREDUCE, 4, 2, DTN_REACH_MAP, NULL)->max_bytes
       == DTN_EAGER_MAX, "8 bytes over 4 ranks go in the signal");
    ok(chosen(DTN_COLL_ALLREDUCE, 4, 2048, DTN_REACH_MAP, NULL)->needs
       == DTN_REACH_MAP, "8 KiB over 4 ranks that map go direct");
    ok(chosen(DTN_COLL_ALLREDUCE, 4, 1 << 14, DTN_REACH_HOST, NULL)->algorithm
       == DTN_ALG_HIERARCHICAL, "64 KiB over hosts by hierarchy");
    ok(chosen(DTN_COLL_ALLREDUCE, 4, 20, DTN_REACH_HOST, tuning)->algorithm
       == DTN_ALG_TREE, "unless [tuning] says otherwise");
    ok(chosen(DTN_COLL_ALLREDUCE, 64, 2, DTN_REACH_PUT, NULL)->algorithm
       == DTN_ALG_DOUBLING, "8 bytes over 64 hosts take recursive doubling");
    ok(chosen(DTN_COLL_ALLREDUCE, 64, 1 << 16, DTN_REACH_PUT, NULL)->algorithm
       == DTN_ALG_HALVING, "256 KiB Rabenseifner's");
    ok(chosen(DTN_COLL_ALL_TO_ALL, 64, 2, DTN_REACH_PUT, NULL)->algorithm
       == DTN_ALG_BRUCK, "an all-to-all of 8 bytes for each of them Bruck's");
    ok(chosen(DTN_COLL_ALL_TO_ALL, 64, 1 << 12, DTN_REACH_PUT, NULL)->algorithm
       == DTN_ALG_DIRECT, "of 16 KiB goes to all at once");
    ok(chosen(DTN_COLL_ALL_TO_ALL, 64, 1 << 16, DTN_REACH_PUT, NULL)->algorithm
       == DTN_ALG_PAIRWISE, "of 256 KiB by pairs, for links");
    ok(chosen(DTN_COLL_BROADCAST, 64, 1 << 20, DTN_REACH_PUT, NULL)->algorithm
       == DTN_ALG_TWOTREE, "a broadcast of 4 MiB two trees");
    ok(chosen(DTN_COLL_ALLREDUCE, 4, 2, DTN_REACH_MAP, tuning)->algorithm
       == DTN_ALG_TREE, "[tuning] is obeyed for the smallest sizes");
    ok(chosen(DTN_COLL_ALLREDUCE, 4, 16384, DTN_REACH_MAP, tuning)->algorithm
       == DTN_ALG_RING, "[tuning] is obeyed from its last entry on");
    ok(chosen(DTN_COLL_BROADCAST, 4, 2048, DTN_REACH_PUT, tuning)
       == chosen(DTN_COLL_BROADCAST, 4, 2048, DTN_REACH_PUT, NULL),
       "[tuning] asking for what cannot run here gives the built-in choice");
    ok(strcmp(dtn_coll_name(DTN_COLL_REDUCE_SCATTER), "reduce_scatter") == 0
       && strcmp(dtn_word_text(dtn_algorithm_words, DTN_ALG_RING),
                 "ring") == 0,
       "collectives and algorithms have names");
}

/* How many puts does the ring make of a broadcast of 2 MiB over n ranks? */
static int ring_puts(int n)
{
    struct dtensor_error err;
    int puts = 0;

    now.emitter = dtn_emitters;
    while (now.emitter->coll != DTN_COLL_BROADCAST
           || now.emitter->algorithm != DTN_ALG_RING)
        now.emitter++;
    now.call = (struct dtn_call){ .coll = DTN_COLL_BROADCAST, .n = n,
                                  .dtype = DTENSOR_F64, .count = 1 << 18 };
    if (case_emit(&now, &err) != 0)
        return -1;
    for (int r = 0; r < n; r++)
        for (int s = 0; s < now.scheds[r].nsteps; s++)
            puts += now.scheds[r].steps[s].op == DTN_OP_PUT;
    case_fini(&now);
    return puts;
}

int main(void)
{
    clock_t begin = clock();

    heap_keep();
    for (const struct dtn_emitter *e = dtn_emitters; e->emit; e++)
        test_row(e);
    test_bytes();
    test_choose();
    ok(ring_puts(2) == 1 && ring_puts(3) == 2 * 32, "a chain of two ranks has "
       "one chunk, since nobody forwards; one of three has 32");
    ok(nhidden >= 50, "%d of %d cases have steps for private memory too",
       nhidden, ncases);
    note("%d cases in %.1f s", ncases,
         (double)(clock() - begin) / CLOCKS_PER_SEC);
    return done();
}

/* test_fingerprints.c - different calls have different fingerprints
 *
 * With 32 bits, 19 of them for counts, fingerprints collided: 9 pairs of the
 * first 4,000 counts collided, and so did sends whose sizes differ by a
 * Fibonacci number.  Each of these pairs is called here, over shared memory
 * and tcp: all ranks must get EMISMATCH with both counts before a byte is
 * written to another buffer.  Then a million calls are compared without
 * ranks, and a million pairs of calls that differ in one thing only; any 12 of
 * the 51 bits are equal in one pair of 4096, as those of independent numbers
 * are, so all 51 are equal in one of 2*10^15.  Last, two ranks with forged
 * equal fingerprints find from READY that the memory is too small.
 *
 * Without this test, two different calls could pass as equal and overwrite
 * memory.
 */
#include "base/compiler.h"
#include "base/wait.h"
#include "coll/exec.h"
#include "coll/execs.h"
#include "job/ctx.h"
#include "job/group.h"
#include "mesh/mesh.h"
#include "redist/plan.h"
#include "sched/call.h"
#include "sched/fingerprint.h"
#include "dtensor.h"
#include "tests/support/rand.h"
#include "tests/support/world.h"

#include <stdbool.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>

enum { GUARD = 1 << 14 };         /* bytes on either side of a buffer         */

/* What one test makes its ranks do. */
struct pair {
    size_t count[2];              /* of the others, of the last rank          */
    bool message;                 /* a send and a recv                        */
};

/* A buffer with guards, in memory that peers map. */
static float *guarded(const struct world *world, size_t count)
{
    struct dtensor_error err;
    unsigned char *mem;
    void *got;

    need(dtensor_alloc(world->ctx, count * 4 + 2 * GUARD, &got, &err) == 0,
         "%s", err.text);
    mem = got;
    memset(mem, 0x5a, count * 4 + 2 * GUARD);
    memset(mem + GUARD, 0, count * 4);
    return (float *)(mem + GUARD);
}

static void untouched(const float *buf, size_t count)
{
    const unsigned char *low = (const unsigned char *)buf - GUARD;
    const unsigned char *high = (const unsigned char *)(buf + count);

    for (int i = 0; i < GUARD; i++)
        need(low[i] == 0x5a && high[i] == 0x5a, "byte %d next to a buffer was "
             "overwritten", i);
}

static void worded(const struct world *world, int rc, const char *one,
                   size_t a, const char *other, size_t b)
{
    char words[2][64];

    snprintf(words[0], sizeof words[0], "%s %zu f32", one, a);
    snprintf(words[1], sizeof words[1], "%s %zu f32", other, b);
    need(rc == DTENSOR_EMISMATCH, "rc is %s: %s", dtensor_errname(rc),
         rc ? world->err.text : "");
    need(strstr(world->err.text, words[0]) && strstr(world->err.text, words[1]),
         "\"%s\" and \"%s\" are not both in: %s", words[0], words[1],
         world->err.text);
}

/* An allreduce of another count on the last rank. */
static void summed(int rank, int n, void *arg)
{
    const struct pair *pair = arg;
    const size_t count = pair->count[rank == n - 1];
    struct world world;
    float *in, *out;
    int rc;

    world_open(&world);
    in = guarded(&world, count);
    out = guarded(&world, count);
    rc = dtensor_allreduce(world.mesh, in, out, count, DTENSOR_F32,
                           DTENSOR_SUM, &world.err);
    worded(&world, rc, "allreduce of", pair->count[0], "allreduce of",
           pair->count[1]);
    untouched(in, count);
    untouched(out, count);
    dtensor_fini(world.ctx);
}

/* Rank 0 sends so many, rank 1 receives as many. */
static void passed(int rank, int n, void *arg)
{
    const struct pair *pair = arg;
    const size_t count = pair->count[rank];
    struct world world;
    float *buf;
    int rc;

    (void)n;
    world_open(&world);
    buf = guarded(&world, count);
    rc = rank == 0 ? dtensor_send(world.mesh, 1, buf, count, DTENSOR_F32,
                                  &world.err)
                   : dtensor_recv(world.mesh, 0, buf, count, DTENSOR_F32,
                                  &world.err);
    worded(&world, rc, "send of", pair->count[0], "recv of", pair->count[1]);
    untouched(buf, count);
    dtensor_fini(world.ctx);
}

static void swapped(int rank, int n, void *arg)
{
    const struct pair *pair = arg;
    size_t sends[2] = { 1, rank == 0 ? pair->count[0] : 1 };
    size_t gets[2] = { rank == 1 ? pair->count[1] : 1, 1 };
    struct world world;
    float *in, *out;
    int rc;

    (void)n;
    world_open(&world);
    in = guarded(&world, sends[0] + sends[1]);
    out = guarded(&world, gets[0] + gets[1]);
    rc = dtensor_all_to_allv(world.mesh, in, sends, out, gets, DTENSOR_F32,
                             &world.err);
    need(rc == DTENSOR_EMISMATCH, "rc is %s: %s", dtensor_errname(rc),
         rc ? world.err.text : "");
    untouched(out, gets[0] + gets[1]);
    dtensor_fini(world.ctx);
}

static void test_pair(const char *wire, int n, rank_main_f *fn,
                      const char *what, size_t a, size_t b)
{
    struct pair pair = { .count = { a, b } };
    int bad;

    setenv("DTN_CLUSTER", ranks_file(wire, n, "op_timeout = 60s\n"), 1);
    bad = ranks_run(n, 30, fn, &pair, NULL);
    ok(bad == 0, "%s, %d ranks: %s of %zu against %zu is EMISMATCH, both are "
       "told, nothing else is touched", wire, n, what, a, b);
    unlink(getenv("DTN_CLUSTER"));
}

/* ------------------------------------------------- what used to collide --- */

/* The 19 bits that a count had on the world of n ranks. */
static uint32_t old_hash(int n, size_t count)
{
    const int ranks[] = { 0, 1, 2, 3 };
    const uint32_t group = XXH32(ranks, (size_t)n * sizeof(int), (uint32_t)n);
    const uint64_t value = count;
    const uint32_t hash = XXH32(&value, sizeof value, group);

    return (hash ^ hash >> 19) & 0x7ffff;
}

static void test_counts(const char *wire)
{
    enum { MOST = 4000 };
    static uint32_t hash[MOST + 1];
    int pairs = 0;

    for (size_t a = 1; a <= MOST; a++) {
        hash[a] = old_hash(2, a);
        for (size_t b = 1; b < a; b++)
            if (hash[a] == hash[b]) {
                test_pair(wire, 2, summed, "allreduce", b, a);
                pairs++;
            }
    }
    ok(pairs == 9, "%d pairs of the first 4000 counts had the same 19 bits",
       pairs);
    ok(old_hash(4, 100306) == old_hash(4, 100834), "so had 100306 and 100834");
    test_pair(wire, 4, summed, "allreduce", 100306, 100834);
}

/* Sizes that differ by a Fibonacci number. */
static void test_messages(const char *wire)
{
    static const size_t fibonacci[] = { 1597, 832040, 1346269, 5702887 };

    test_pair(wire, 2, passed, "send", 2346269, 1000000);
    test_pair(wire, 2, swapped, "all_to_allv", 2346269, 1000000);
    for (size_t i = 0; i < DTN_COUNT(fibonacci); i++) {
        test_pair(wire, 2, passed, "send", 20000 + fibonacci[i], 20000);
        test_pair(wire, 2, passed, "send", 20000, 20000 + fibonacci[i]);
        test_pair(wire, 2, swapped, "all_to_allv", 20000 + fibonacci[i], 20000);
    }
}

/* -------------------------------------------------- as if hashes agreed --- */

/* Both ranks are told that their calls have the same fingerprint. */
static void agreed(int rank, int n, void *arg)
{
    const struct pair *pair = arg;
    const size_t count = pair->count[rank == n - 1];
    struct dtn_call call = { .coll = DTN_COLL_ALLREDUCE, .count = count,
                             .dtype = DTENSOR_F32, .redop = DTENSOR_SUM,
                             .n = n, .me = rank };
    struct world world;
    struct dtn_exec *exec;
    uint64_t fingerprint;
    float *in, *out;
    int rc;

    world_open(&world);
    in = guarded(&world, count);
    out = guarded(&world, count);
    need(dtn_call_exec(&world.mesh->group, &call, &exec, &fingerprint,
                       &world.err) == 0, "%s", world.err.text);
    rc = dtn_exec_run(exec, in, out, 42, &world.err);
    need(rc == DTENSOR_EMISMATCH, "rc is %s: %s", dtensor_errname(rc),
         rc ? world.err.text : "");
    untouched(in, count);
    untouched(out, count);
    dtn_exec_destroy(exec);
    dtensor_fini(world.ctx);
}

/* ------------------------------------------------------------- no ranks --- */

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* How many of these are there twice? */
static int twice(uint64_t value[], size_t n)
{
    int found = 0;

    qsort(value, n, sizeof *value, by_value);
    for (size_t i = 1; i < n; i++)
        found += value[i] == value[i - 1];
    return found;
}

static unsigned digit(size_t *number, unsigned base)
{
    const unsigned d = (unsigned)(*number % base);

    *number /= base;
    return d;
}

/* The i-th of all calls: another i is another call. */
static uint64_t call_of(size_t i)
{
    struct dtn_group group = { .n = 4 };
    struct dtn_call call = { .n = 4 };
    uint32_t number;

    call.coll = (enum dtn_coll)digit(&i, DTN_COLL_BARRIER);
    call.dtype = (enum dtensor_dtype)digit(&i, 5);
    call.redop = (enum dtensor_redop)digit(&i, 3);
    call.root = (int)digit(&i, 4);
    call.divisor = (int)digit(&i, 2) * 4;
    group.hash = 1000 + digit(&i, 3);
    number = digit(&i, 16);
    call.count = i;
    return dtn_fingerprint_numbered(dtn_call_fingerprint(&group, &call),
                                    number);
}

/* A message of so many bytes as number t between two ranks, and in a group. */
static uint64_t message_of(size_t i)
{
    const uint64_t turn = 1 + digit(&i, 1000);

    return dtn_fingerprint_mix(DTN_MIX_MESSAGE, i)
         ^ dtn_fingerprint_mix(DTN_MIX_TURN, turn);
}

static uint64_t edge_of(size_t i)
{
    const uint32_t number = 1 + digit(&i, 1000);

    return dtn_fingerprint_numbered(dtn_fingerprint_mix(DTN_MIX_BYTES, 4 * i),
                                    number);
}

static uint64_t *numbered(uint64_t value[], size_t n, uint64_t of(size_t i))
{
    for (size_t i = 0; i < n; i++)
        value[i] = of(i);
    return value;
}

/* A plausible call, and its number among those over its ranks. */
struct plausible {
    struct dtn_call call;
    uint64_t group;
    uint32_t number;
};

static uint64_t plausible_fingerprint(const struct plausible *p)
{
    const struct dtn_group group = { .n = p->call.n, .hash = p->group };

    return dtn_fingerprint_numbered(dtn_call_fingerprint(&group, &p->call),
                                    p->number);
}

/* Sizes of tensors are round, counts of a loop are not. */
static size_t plausible_count(uint64_t *state)
{
    const size_t round = (size_t)1 << rand_below(state, 31);

    switch (rand_below(state, 3)) {
    case 0: return round;
    case 1: return round * (size_t)(1 + rand_below(state, 100));
    default: return 1 + (size_t)(rand_next(state) % (2 * round));
    }
}

static struct plausible plausible_next(uint64_t *state)
{
    static const enum dtensor_dtype dtype[] = { DTENSOR_F32, DTENSOR_F64,
                                                DTENSOR_I32, DTENSOR_BF16 };
    struct plausible p = { .call.n = 1 << (1 + rand_below(state, 8)) };

    p.call.coll = (enum dtn_coll)rand_below(state, DTN_COLL_BARRIER);
    p.call.dtype = dtype[rand_below(state, 4)];
    p.call.redop = (enum dtensor_redop)rand_below(state, 3);
    p.call.root = rand_below(state, p.call.n);
    p.call.count = plausible_count(state);
    p.group = rand_next(state);
    p.number = 1 + (uint32_t)rand_below(state, 1000000);
    return p;
}

/* Change one thing in the way that a mistake does; the readable bits, which
 * differ by themselves, stay as they are.
 */
static void plausible_mistake(struct plausible *p, uint64_t *state)
{
    static const size_t by[] = { 1, 2, 3, 4, 8, 64, 4096, 832040, 1346269 };

    switch (rand_below(state, 6)) {
    case 0:
        p->call.count += by[rand_below(state, (int)DTN_COUNT(by))];
        break;
    case 1:
        p->call.count = 2 * p->call.count;
        break;
    case 2:
        p->call.root = (p->call.root + 1) % p->call.n;
        break;
    case 3:
        p->call.divisor = p->call.n;
        break;
    case 4:
        p->group = rand_next(state);
        break;
    default:
        p->number += 1 + (uint32_t)rand_below(state, 3);
        break;
    }
}

static void test_mistakes(void)
{
    enum { PAIRS = 1000000, BITS = 12, WINDOWS = 4 };
    const uint64_t seed = rand_seed(4711);
    const int expected = PAIRS >> BITS;
    int equal = 0, window[WINDOWS] = { 0 };
    uint64_t state = seed;

    for (int i = 0; i < PAIRS; i++) {
        struct plausible one = plausible_next(&state), other = one;
        uint64_t differs;

        plausible_mistake(&other, &state);
        differs = plausible_fingerprint(&one) ^ plausible_fingerprint(&other);
        equal += differs == 0;
        for (int w = 0; w < WINDOWS; w++)
            window[w] += (differs >> (w * BITS) & ((1 << BITS) - 1)) == 0;
    }
    ok(equal == 0, "%d pairs of calls, each with one mistake: none missed "
       "(seed %llu)", PAIRS, (unsigned long long)seed);
    for (int w = 0; w < WINDOWS; w++)       /* 6 standard deviations          */
        ok(window[w] > expected - 94 && window[w] < expected + 94, "bits %d to "
           "%d are equal in %d of them, %d expected: all 51 in one pair of "
           "2*10^15", w * BITS, (w + 1) * BITS - 1, window[w], expected);
}

/* Redistributes of two shapes' neighbours between all placements. */
static int specs_twice(uint64_t value[], size_t n)
{
    static const char *const placed[] = { "S(0)", "S(1)", "R", "P", "P(max)" };
    struct dtensor_ctx *ctx;
    struct dtensor_spec src, dst;
    struct dtensor_error err;

    if (dtensor_init_offline(NULL, 4, 4, &ctx, &err) != 0)
        return -1;
    for (size_t k = 0; k < n; k++) {
        size_t i = k;
        const char *from = placed[digit(&i, 5)], *to = placed[digit(&i, 3)];
        const int64_t shape[2] = { 1 + digit(&i, 40), 1 + (int64_t)i };

        if (dtensor_spec_init(&src, ctx, "world", from, DTENSOR_F32, 2, shape,
                              &err) != 0
            || dtensor_spec_init(&dst, ctx, "world", to, DTENSOR_F32, 2, shape,
                                 &err) != 0)
            return -1;
        value[k] = dtn_redist_hash(&src, &dst, DTN_NO_ROOT);
    }
    dtensor_fini(ctx);
    return twice(value, n);
}

static void test_pure(void)
{
    const size_t million = 1000000;
    uint64_t *value = malloc(million * sizeof *value);

    if (!value)
        exit(99);
    ok(twice(numbered(value, million, call_of), million) == 0,
       "of a million calls no two have the same fingerprint");
    ok(twice(numbered(value, million, message_of), million) == 0,
       "nor of a million messages");
    ok(twice(numbered(value, million, edge_of), million) == 0,
       "nor of a million blocks of all_to_allv");
    free(value);
}

/* The shortest of many times of 10,000 fingerprints, each of a call that is new
 * to it, so that nothing of it is known before.  One takes 15 ns, and 25 beside
 * another program on the same core.
 */
static void test_time(void)
{
    enum { TIMES = 100, CALLS = 10000 };
    int64_t start, ns, best = INT64_MAX;
    uint64_t sum = 0;

    for (size_t t = 0; t < TIMES; t++) {
        start = dtn_now_ns();
        for (size_t i = 0; i < CALLS; i++)
            sum += call_of(t * CALLS + i);
        ns = dtn_now_ns() - start;
        best = ns < best ? ns : best;
    }
    ok(timeless() || best < 60 * CALLS, "the fingerprint of a call takes "
       "%.1f ns, less than 60%s", (double)best / CALLS, sum ? "" : "?");
}

/* Usage: test_collide [rc] */
int main(int argc, char **argv)
{
    uint64_t *value = malloc(20000 * sizeof *value);

    if (argc > 1) {
        test_counts(argv[1]);
        test_messages(argv[1]);
        test_pair(argv[1], 2, agreed, "allreduce with equal hashes", 1460,
                  3177);
        free(value);
        return done();
    }
    test_pure();
    test_time();
    test_mistakes();
    ok(specs_twice(value, 20000) == 0, "nor of 20,000 redistributes");
    free(value);
    test_counts("shm");
    test_counts("tcp");
    test_messages("shm");
    test_messages("tcp");
    test_pair("shm", 2, agreed, "allreduce with equal hashes", 1460, 3177);
    test_pair("tcp", 2, agreed, "allreduce with equal hashes", 1460, 3177);
    test_pair("shm", 4, agreed, "allreduce with equal hashes", 100306, 100834);
    test_pair("tcp", 4, agreed, "allreduce with equal hashes", 100306, 100834);
    return done();
}

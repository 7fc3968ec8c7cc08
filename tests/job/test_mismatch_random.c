/* test_mismatch_random.c - pairs of calls that differ, at random
 *
 * Two to four ranks over shared memory or tcp; one of them makes another call:
 * another collective, count, type, reduction or root, another size of a
 * message or of a block, another shape or placement.  All ranks must get
 * EMISMATCH and name the same rank in the same words, with both calls, and
 * must not write beyond their buffers.  Each rank runs all cases of its job in
 * one process.  DTN_TEST_MISMATCHES sets the number of cases (240); TEST_SEED
 * selects others.
 *
 * Without this test, a pair of calls that nobody thought of could pass as
 * equal.
 */
#include "base/compiler.h"
#include "sched/call.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/world.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { RANKS = 4, GUARD = 4096, ELEMS = 1 << 18, WORDS = 512 };

/* What one rank got. */
struct got {
    int rc, culprit, touched;
    char words[WORDS];
};

/* All cases of one job. */
struct job_cases {
    int n, cases;
    uint64_t seed;
    struct got *got;              /* [cases][RANKS], shared                   */
    const char *wire;
};

enum what { COUNT, TYPE, REDUCTION, ROOT, COLLECTIVE, MESSAGE, BLOCKS, SHAPE,
            NWHAT };

struct random_case {
    enum what what;
    bool warm, arena;             /* they have met; memory that peers map     */
    int odd;
    struct dtensor_call call[2];  /* of the others, of the odd one            */
    size_t count[2];              /* of messages and blocks                   */
    int64_t shape[2][2];
    const char *to[2];
};

static unsigned dice(uint64_t *seed, unsigned n)
{
    return (unsigned)rand_below(seed, (int)n);
}

/* Small, of one line, of 4 KiB and around it, large. */
static size_t random_count(uint64_t *seed)
{
    static const size_t about[] = { 1, 11, 1000, 4096, 50000 };

    return about[dice(seed, DTN_COUNT(about))] + dice(seed, 50);
}

static void random_call(uint64_t *seed, int n, struct dtensor_call *call)
{
    static const enum dtensor_dtype dtypes[] = { DTENSOR_F32, DTENSOR_I32,
                                                 DTENSOR_F16 };
    static const enum dtensor_redop ops[] = { DTENSOR_SUM, DTENSOR_MAX };

    *call = (struct dtensor_call){
        .coll = (enum dtensor_collective)dice(seed, DTENSOR_BARRIER),
        .root = (int)dice(seed, (unsigned)n), .count = random_count(seed),
        .dtype = dtypes[dice(seed, 3)], .op = ops[dice(seed, 2)]
    };
    if (call->coll != DTENSOR_ALLREDUCE && call->coll != DTENSOR_BROADCAST
        && call->coll != DTENSOR_REDUCE)
        call->count = 1 + call->count / 2;
}

static bool has_root(const struct dtensor_call *call)
{
    return call->coll == DTENSOR_BROADCAST || call->coll == DTENSOR_REDUCE
        || call->coll == DTENSOR_GATHER || call->coll == DTENSOR_SCATTER;
}

static bool reduces(const struct dtensor_call *call)
{
    return call->coll == DTENSOR_ALLREDUCE || call->coll == DTENSOR_REDUCE
        || call->coll == DTENSOR_REDUCE_SCATTER;
}

/* Make the odd one's call another one. */
static void random_other(uint64_t *seed, int n, struct random_case *c)
{
    struct dtensor_call *call = &c->call[1];

    *call = c->call[0];
    if (c->what == ROOT && has_root(call))
        call->root = (call->root + 1 + (int)dice(seed, (unsigned)n - 1)) % n;
    else if (c->what == REDUCTION && reduces(call))
        call->op = call->op == DTENSOR_SUM ? DTENSOR_MAX : DTENSOR_SUM;
    else if (c->what == TYPE)
        call->dtype = call->dtype == DTENSOR_F32 ? DTENSOR_I32 : DTENSOR_F32;
    else if (c->what == COLLECTIVE)
        call->coll = (enum dtensor_collective)
            ((call->coll + 1 + dice(seed, DTENSOR_BARRIER)) % DTENSOR_BARRIER);
    else
        call->count = call->count > 1 && dice(seed, 2) ? call->count - 1
                    : call->count + 1 + dice(seed, 2000);
    if (c->what == COLLECTIVE && call->coll == c->call[0].coll)
        call->count++;
}

static void random_draw(uint64_t *seed, int n, struct random_case *c)
{
    *c = (struct random_case){ .what = (enum what)dice(seed, NWHAT),
                               .warm = dice(seed, 2), .arena = dice(seed, 2),
                               .odd = (int)dice(seed, (unsigned)n) };
    random_call(seed, n, &c->call[0]);
    random_other(seed, n, c);
    c->count[0] = random_count(seed);
    do
        c->count[1] = dice(seed, 2) ? c->count[0] + 1 + dice(seed, 9)
                                    : random_count(seed);
    while (c->count[1] == c->count[0]);
    for (int d = 0; d < 2; d++)
        c->shape[0][d] = c->shape[1][d] = 4 + dice(seed, 60);
    c->to[0] = c->to[1] = "S(1)";
    if (dice(seed, 2))
        c->shape[1][1] += 1 + dice(seed, 4);
    else
        c->to[1] = "R";
}

/* ------------------------------------------------------------ the ranks --- */

struct buffers {
    unsigned char *in, *out;
};

static unsigned char *buffer_make(struct world *world, bool arena)
{
    static unsigned char own[2][4 * ELEMS + 2 * GUARD];
    static int turn;
    void *mem = own[turn++ % 2];

    if (arena)
        need(dtensor_alloc(world->ctx, sizeof own[0], &mem, &world->err) == 0,
             "%s", world->err.text);
    memset(mem, 0x5a, GUARD);
    return (unsigned char *)mem + GUARD;
}

/* Bytes next to a buffer of so many that were overwritten. */
static int buffer_touched(const unsigned char *buf, size_t bytes)
{
    int n = 0;

    for (int i = 1; i <= GUARD; i++)
        n += buf[-i] != 0x5a;
    for (size_t i = bytes; i < bytes + GUARD; i++)
        n += buf[i] != 0x5a;
    return n;
}

static int case_message(struct world *w, const struct random_case *c,
                        struct buffers *b, size_t *bytes)
{
    const int other = (c->odd + 1) % w->n;

    *bytes = 4 * c->count[w->rank == c->odd];
    memset(b->out, 0, *bytes);
    memset(b->out + *bytes, 0x5a, GUARD);
    if (w->rank == c->odd)
        return dtensor_send(w->mesh, other, b->in, c->count[1], DTENSOR_F32,
                            &w->err);
    if (w->rank == other)
        return dtensor_recv(w->mesh, c->odd, b->out, c->count[0], DTENSOR_F32,
                            &w->err);
    return dtensor_barrier(w->mesh, &w->err);
}

/* The odd one sends another count to the next rank than that one expects, and
 * if the count is odd it expects another one from there.
 */
static int case_blocks(struct world *w, const struct random_case *c,
                       struct buffers *b, size_t *bytes)
{
    const int next = (c->odd + 1) % w->n;
    size_t sent[RANKS], got[RANKS], all = 0;

    for (int r = 0; r < w->n; r++) {
        sent[r] = got[r] = c->count[0];
        if (w->rank == c->odd && r == next)
            sent[r] = c->count[1];
        if (w->rank == c->odd && r == next && c->count[0] % 2)
            got[r] = c->count[1];
        all += got[r];
    }
    *bytes = 4 * all;
    memset(b->out + *bytes, 0x5a, GUARD);
    return dtensor_all_to_allv(w->mesh, b->in, sent, b->out, got, DTENSOR_F32,
                               &w->err);
}

static int case_shape(struct world *w, const struct random_case *c)
{
    const bool odd = w->rank == c->odd;
    struct dtensor *from = NULL, *to = NULL;
    struct dtensor_spec spec;
    int rc = dtensor_spec_init(&spec, w->ctx, "world", "S(0)", DTENSOR_F32, 2,
                               c->shape[odd], &w->err);

    if (rc == 0)
        rc = dtensor_zeros(&spec, &from, &w->err);
    need(rc == 0, "zeros: %s", w->err.text);
    rc = dtensor_redistribute(from, c->to[odd], &to, &w->err);
    dtensor_destroy(to);
    dtensor_destroy(from);
    return rc;
}

static int case_call(struct world *w, const struct random_case *c,
                     struct buffers *b, size_t *bytes)
{
    const struct dtensor_call *call = &c->call[w->rank == c->odd];
    size_t elem = dtensor_dtype_size(call->dtype), blocks = 1;

    if (call->coll == DTENSOR_ALLGATHER || call->coll == DTENSOR_ALL_TO_ALL
        || (call->coll == DTENSOR_GATHER && call->root == w->rank))
        blocks = (size_t)w->n;
    *bytes = call->count * elem * blocks;
    memset(b->out + *bytes, 0x5a, GUARD);
    return dtensor_call_run(w->mesh, call, b->in, b->out, &w->err);
}

static void case_run(const struct random_case *c, struct got *got)
{
    struct buffers b;
    struct world w;
    size_t bytes = 0;
    const char *words;
    int rc;

    world_open(&w);
    b.in = buffer_make(&w, c->arena);
    b.out = buffer_make(&w, c->arena);
    memset(b.out, 0x5a, GUARD);
    if (c->warm)
        need(dtensor_barrier(w.mesh, &w.err) == 0, "%s", w.err.text);
    rc = c->what == MESSAGE ? case_message(&w, c, &b, &bytes)
       : c->what == BLOCKS ? case_blocks(&w, c, &b, &bytes)
       : c->what == SHAPE ? case_shape(&w, c) : case_call(&w, c, &b, &bytes);
    for (int i = 0; i < 3 && rc == 0; i++)
        rc = dtensor_barrier(w.mesh, &w.err);
    got->rc = rc;
    got->culprit = rc ? w.err.rank : -1;
    need(rc == 0 || !strstr(w.err.text, "call 0:"), "no call: %s", w.err.text);
    words = rc ? strstr(w.err.text, ": rank ") : NULL;
    snprintf(got->words, sizeof got->words, "%s", words ? words
             : rc ? w.err.text : "success");
    got->touched = buffer_touched(b.out, bytes);
    if (c->arena) {
        dtensor_free(w.ctx, b.in - GUARD);
        dtensor_free(w.ctx, b.out - GUARD);
    }
    dtensor_fini(w.ctx);
}

static void cases_rank(int rank, int n, void *arg)
{
    const struct job_cases *job = arg;
    uint64_t seed = job->seed;
    struct random_case c;
    char name[64];

    for (int i = 0; i < job->cases; i++) {
        random_draw(&seed, n, &c);
        snprintf(name, sizeof name, "mis-%d-%llu-%d", (int)getppid(),
                 (unsigned long long)job->seed,
                 i);
        setenv("DTN_JOB", name, 1);
        case_run(&c, &job->got[i * RANKS + rank]);
    }
}

/* ---------------------------------------------------------- the verdict --- */

/* Do the two sides differ?  ": rank 1 on n0 called THIS, rank 0 on n0 called
 * THAT (all ...", or "(a send ...".
 */
static bool words_differ(const char *words)
{
    const char *one = strstr(words, " called "), *other, *end;

    other = one ? strstr(one + 8, " called ") : NULL;
    end = other ? strstr(other, " (a") : NULL;
    return end && strncmp(one, other, (size_t)(end - other)) != 0;
}

static const char *case_wrong(const struct got *got, int n)
{
    for (int r = 0; r < n; r++) {
        if (got[r].rc != DTENSOR_EMISMATCH)
            return "not EMISMATCH";
        if (got[r].touched)
            return "memory was overwritten";
        if (got[r].culprit != got[0].culprit)
            return "other culprits";
        if (strcmp(got[r].words, got[0].words) != 0)
            return "other words";
    }
    return words_differ(got[0].words) ? NULL : "both sides alike";
}

static void case_show(const struct got *got, int n, const struct random_case *c,
                      const char *why)
{
    note("%s: what %d, odd %d, warm %d, arena %d, %zu for %zu, %s %zu for %s "
         "%zu", why, (int)c->what, c->odd, c->warm, c->arena, c->count[1],
         c->count[0], dtn_coll_name((enum dtn_coll)c->call[1].coll),
         c->call[1].count, dtn_coll_name((enum dtn_coll)c->call[0].coll),
         c->call[0].count);
    for (int r = 0; r < n; r++)
        note("  rank %d: %s culprit %d, touched %d %s", r,
             dtensor_errname(got[r].rc), got[r].culprit, got[r].touched,
             got[r].words);
}

static void test_cases(const char *wire, int n, int cases, uint64_t seed)
{
    struct job_cases job = { .n = n, .cases = cases, .seed = seed,
                             .wire = wire };
    size_t bytes = (size_t)cases * RANKS * sizeof *job.got;
    struct random_case c;
    int bad, wrong = 0, named = 0, calls = 0;

    job.got = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (job.got == MAP_FAILED)
        exit(99);
    setenv("DTN_CLUSTER", ranks_file(wire, n, "op_timeout = 20s\n"), 1);
    bad = ranks_run(n, 60 + cases, cases_rank, &job, NULL);
    for (int i = 0; i < cases && bad == 0; i++) {
        const struct got *got = &job.got[i * RANKS];
        const char *why = case_wrong(got, n);

        random_draw(&seed, n, &c);
        if (why && wrong++ < 3)
            case_show(got, n, &c, why);
        if (c.what < MESSAGE || c.what == SHAPE) {
            calls++;
            named += got[0].culprit == c.odd;
        }
    }
    ok(bad == 0 && wrong == 0, "%s, %d ranks: %d mismatched pairs of calls are "
       "told alike on all (%d are not)", wire, n, cases, wrong);
    note("%s, %d ranks: the odd one was named in %d of %d", wire, n, named,
         calls);
    munmap(job.got, bytes);
    unlink(getenv("DTN_CLUSTER"));
}

/* Usage: test_mismatches [rc] */
int main(int argc, char **argv)
{
    const char *text = getenv("DTN_TEST_MISMATCHES");
    const int all = rounds_of(text ? atoi(text) : 240);
    uint64_t seed = rand_seed(1);

    for (int n = 2; n <= RANKS; n++) {
        if (argc > 1) {
            test_cases(argv[1], n, all / 3 + 1, seed++);
            continue;
        }
        test_cases("shm", n, all / 6 + 1, seed++);
        test_cases("tcp", n, all / 6 + 1, seed++);
    }
    return done();
}

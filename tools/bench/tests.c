/* tests.c - the table of tests
 *
 * Bytes are counted as nccl-tests does: for a test with a block per rank, all
 * blocks.  busbw = algbw x factor makes figures comparable between tests and
 * group sizes: an allreduce of S bytes over n ranks must bring 2S(n-1)/n bytes
 * into each, so 4 ranks that finish 1 MB in 100 us have algbw 10 and busbw 15
 * GB/s.  With one rank nothing has to move and busbw is 0.
 *
 * Blocks of unequal size, in the tests that end in v, have the same total:
 * position r has r + 1 shares of it, so that 4 ranks have 10, 20, 30 and 40 %.
 * What position p of an all-to-all has for position r is block p + r (modulo
 * n), so that all ranks send and get as much.
 */
#include "tools/bench/bench.h"
#include "tools/bench/flat.h"
#include "tools/bench/job.h"
#include "tools/bench/options.h"
#include "tools/bench/pattern.h"
#include "tools/bench/redistribute.h"
#include "tools/bench/session.h"
#include "tools/bench/tests.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

/* ------------------------------------------------------- busbw factors --- */

static double factor_allreduce(int n)
{
    return 2.0 * (n - 1) / n;
}

static double factor_blocks(int n)
{
    return (double)(n - 1) / n;
}

static double factor_rooted(int n)
{
    return n > 1;
}

static double factor_barrier(int n)
{
    (void)n;
    return 0;
}

/* -------------------------------------------------------------- blocks --- */

/* Elements before block r of n, which have r + 1 shares of n(n + 1) / 2. */
static size_t uneven_before(uint64_t total, int r, int n)
{
    uint64_t shares = (uint64_t)n * (uint64_t)(n + 1) / 2;
    uint64_t before = (uint64_t)r * (uint64_t)(r + 1) / 2;

    return total / shares * before + total % shares * before / shares;
}

size_t test_block(const struct flat *f, int p, int r)
{
    const struct bench_case *c = f->job.c;
    int n = f->job.b->group;
    uint64_t total = c->count * (uint64_t)n;

    if (!(c->test->flags & TEST_UNEVEN))
        return c->count;
    if (c->test->coll == DTENSOR_ALL_TO_ALL)
        r = (p + r) % n;
    return uneven_before(total, r + 1, n) - uneven_before(total, r, n);
}

/* The first element of that block. */
static size_t block_at(const struct flat *f, int p, int r)
{
    size_t at = 0;

    for (int k = 0; k < r; k++)
        at += test_block(f, p, k);
    return at;
}

/* --------------------------------------------------------------- calls --- */

/* In the way that --nonblocking or --persistent asks for. */
static int call_collective(struct flat *f, struct dtensor_error *err)
{
    const struct dtensor_mesh *mesh = f->job.b->mesh;
    struct dtensor_request *request = NULL;
    int rc;

    if (f->persistent)
        rc = dtensor_persistent_start(f->persistent, &request, err);
    else if (f->job.b->opt->nonblocking)
        rc = dtensor_call_start(mesh, &f->call, f->in, f->out, &request, err);
    else
        return dtensor_call_run(mesh, &f->call, f->in, f->out, err);
    return rc ? rc : dtensor_wait(request, err);
}

/* Around the ring: to the next position, from the one before. */
static int call_sendrecv(struct flat *f, struct dtensor_error *err)
{
    const struct bench *b = f->job.b;
    const struct bench_case *c = f->job.c;
    int n = b->group;
    int rc = dtensor_group_begin(b->ctx, err), ended;

    if (rc)
        return rc;
    rc = dtensor_send(b->mesh, (b->position + 1) % n, f->in, c->count,
                      c->dtype, err);
    if (rc == 0)
        rc = dtensor_recv(b->mesh, (b->position + n - 1) % n, f->out, c->count,
                          c->dtype, err);
    ended = dtensor_group_end(b->ctx, rc ? NULL : err);
    return rc ? rc : ended;
}

/* ---------------------------------------------------- expected results --- */
/* Segment s of the result; false when there is none. */

static bool expect_reduced(const struct flat *f, int s, struct segment *seg)
{
    *seg = (struct segment){ PATTERN_REDUCED, 0, 0, f->job.c->count };
    return s == 0;
}

static bool expect_gathered(const struct flat *f, int s, struct segment *seg)
{
    *seg = (struct segment){ s, 0, block_at(f, 0, s), test_block(f, 0, s) };
    return s < f->job.b->group;
}

/* This rank's block of what `source` has. */
static bool expect_own(const struct flat *f, int s, int source,
                       struct segment *seg)
{
    int me = f->job.b->position;

    *seg = (struct segment){
        source, block_at(f, 0, me), 0, test_block(f, 0, me)
    };
    return s == 0;
}

static bool expect_own_reduced(const struct flat *f, int s,
                               struct segment *seg)
{
    return expect_own(f, s, PATTERN_REDUCED, seg);
}

static bool expect_own_of_root(const struct flat *f, int s,
                               struct segment *seg)
{
    return expect_own(f, s, (int)f->job.b->opt->root, seg);
}

static bool expect_all_to_all(const struct flat *f, int s, struct segment *seg)
{
    int me = f->job.b->position;

    *seg = (struct segment){
        s, block_at(f, s, me), block_at(f, me, s), test_block(f, me, s)
    };
    return s < f->job.b->group;
}

static bool expect_root(const struct flat *f, int s, struct segment *seg)
{
    *seg = (struct segment){ (int)f->job.b->opt->root, 0, 0, f->job.c->count };
    return s == 0;
}

static bool expect_before(const struct flat *f, int s, struct segment *seg)
{
    int n = f->job.b->group;

    *seg = (struct segment){
        (f->job.b->position + n - 1) % n, 0, 0, f->job.c->count
    };
    return s == 0;
}

static bool at_root(const struct flat *f)
{
    return f->job.b->position == f->job.b->opt->root;
}

static bool expect_reduced_at_root(const struct flat *f, int s,
                                   struct segment *seg)
{
    return at_root(f) && expect_reduced(f, s, seg);
}

static bool expect_gathered_at_root(const struct flat *f, int s,
                                    struct segment *seg)
{
    return at_root(f) && expect_gathered(f, s, seg);
}

static bool expect_nothing(const struct flat *f, int s, struct segment *seg)
{
    (void)f;
    (void)s;
    (void)seg;
    return false;
}

/* --------------------------------------------------------------- table --- */

const struct bench_test bench_tests[] = {
    { "allreduce", DTENSOR_ALLREDUCE, TEST_REDUCES, 1, 1,
      factor_allreduce, flat_open, call_collective, expect_reduced },
    { "allgather", DTENSOR_ALLGATHER, 0, 1, TEST_GROUP,
      factor_blocks, flat_open, call_collective, expect_gathered },
    { "reduce_scatter", DTENSOR_REDUCE_SCATTER, TEST_REDUCES, TEST_GROUP, 1,
      factor_blocks, flat_open, call_collective, expect_own_reduced },
    { "all_to_all", DTENSOR_ALL_TO_ALL, 0, TEST_GROUP, TEST_GROUP,
      factor_blocks, flat_open, call_collective, expect_all_to_all },
    { "broadcast", DTENSOR_BROADCAST, TEST_IN_PLACE, 1, 1,
      factor_rooted, flat_open, call_collective, expect_root },
    { "reduce", DTENSOR_REDUCE, TEST_REDUCES, 1, 1,
      factor_rooted, flat_open, call_collective, expect_reduced_at_root },
    { "gather", DTENSOR_GATHER, 0, 1, TEST_GROUP,
      factor_blocks, flat_open, call_collective, expect_gathered_at_root },
    { "scatter", DTENSOR_SCATTER, 0, TEST_GROUP, 1,
      factor_blocks, flat_open, call_collective, expect_own_of_root },
    { "allgatherv", DTENSOR_ALLGATHER, TEST_UNEVEN, 1, TEST_GROUP,
      factor_blocks, flat_open, call_collective, expect_gathered },
    { "reduce_scatterv", DTENSOR_REDUCE_SCATTER, TEST_REDUCES | TEST_UNEVEN,
      TEST_GROUP, 1, factor_blocks, flat_open, call_collective,
      expect_own_reduced },
    { "all_to_allv", DTENSOR_ALL_TO_ALL, TEST_UNEVEN, TEST_GROUP, TEST_GROUP,
      factor_blocks, flat_open, call_collective, expect_all_to_all },
    { "gatherv", DTENSOR_GATHER, TEST_UNEVEN, 1, TEST_GROUP,
      factor_blocks, flat_open, call_collective, expect_gathered_at_root },
    { "scatterv", DTENSOR_SCATTER, TEST_UNEVEN, TEST_GROUP, 1,
      factor_blocks, flat_open, call_collective, expect_own_of_root },
    { "barrier", DTENSOR_BARRIER, 0, 0, 0,
      factor_barrier, flat_open, call_collective, expect_nothing },
    { "sendrecv", DTENSOR_NCOLLECTIVES, 0, 1, 1,
      factor_rooted, flat_open, call_sendrecv, expect_before },
    { "redistribute", DTENSOR_NCOLLECTIVES, 0, 1, 1,
      NULL, redistribute_open, NULL, NULL },
};
const int bench_ntests = BENCH_COUNT(bench_tests);

const struct bench_test *test_find(const char *name)
{
    for (int i = 0; i < bench_ntests; i++)
        if (strcmp(bench_tests[i].name, name) == 0)
            return &bench_tests[i];
    return NULL;
}

void test_size(const struct bench_test *test, uint64_t bytes,
               size_t elem_bytes, int group, struct bench_case *c)
{
    bool blocks = test->in_blocks == TEST_GROUP ||
                  test->out_blocks == TEST_GROUP;
    uint64_t unit = elem_bytes * (blocks ? (uint64_t)group : 1);

    c->count = bytes < unit ? 1 : bytes / unit;
    if (test->in_blocks == 0 && test->out_blocks == 0)
        c->count = 0;
    c->bytes = c->count * unit;
}

/* tests.c - the table of tests
 *
 * Bytes are counted as nccl-tests does: for a test with a block per rank, all
 * blocks.  busbw = algbw x factor makes figures comparable between tests and
 * group sizes: an allreduce of S bytes over n ranks must bring 2S(n-1)/n bytes
 * into each, so 4 ranks that finish 1 MB in 100 us have algbw 10 and busbw 15
 * GB/s.  With one rank nothing has to move and busbw is 0.
 */
#include "tools/bench/bench.h"

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

/* --------------------------------------------------------------- calls --- */

static int call_allreduce(struct flat *f, struct dtensor_error *err)
{
    const struct bench_case *c = f->job.c;

    return dtensor_allreduce(f->job.b->mesh, f->in, f->out, c->count, c->dtype,
                             c->redop, err);
}

static int call_allgather(struct flat *f, struct dtensor_error *err)
{
    const struct bench_case *c = f->job.c;

    return dtensor_allgather(f->job.b->mesh, f->in, f->out, c->count, c->dtype,
                             err);
}

static int call_reduce_scatter(struct flat *f, struct dtensor_error *err)
{
    const struct bench_case *c = f->job.c;

    return dtensor_reduce_scatter(f->job.b->mesh, f->in, f->out, c->count,
                                  c->dtype, c->redop, err);
}

static int call_all_to_all(struct flat *f, struct dtensor_error *err)
{
    const struct bench_case *c = f->job.c;

    return dtensor_all_to_all(f->job.b->mesh, f->in, f->out, c->count,
                              c->dtype, err);
}

static int call_broadcast(struct flat *f, struct dtensor_error *err)
{
    const struct bench_case *c = f->job.c;

    return dtensor_broadcast(f->job.b->mesh, (int)f->job.b->opt->root, f->out,
                             c->count, c->dtype, err);
}

static int call_reduce(struct flat *f, struct dtensor_error *err)
{
    const struct bench_case *c = f->job.c;

    return dtensor_reduce(f->job.b->mesh, (int)f->job.b->opt->root, f->in,
                          f->out, c->count, c->dtype, c->redop, err);
}

static int call_barrier(struct flat *f, struct dtensor_error *err)
{
    return dtensor_barrier(f->job.b->mesh, err);
}

/* ---------------------------------------------------- expected results --- */
/* Segment s of the result; false when there is none. */

static bool expect_allreduce(const struct flat *f, int s, struct segment *seg)
{
    *seg = (struct segment){ PATTERN_REDUCED, 0, 0, f->job.c->count };
    return s == 0;
}

static bool expect_allgather(const struct flat *f, int s, struct segment *seg)
{
    size_t count = f->job.c->count;

    *seg = (struct segment){ s, 0, (size_t)s * count, count };
    return s < f->job.b->group;
}

static bool expect_reduce_scatter(const struct flat *f, int s,
                                  struct segment *seg)
{
    size_t count = f->job.c->count;

    *seg = (struct segment){
        PATTERN_REDUCED, (uint64_t)f->job.b->position * count, 0, count
    };
    return s == 0;
}

static bool expect_all_to_all(const struct flat *f, int s, struct segment *seg)
{
    size_t count = f->job.c->count;

    *seg = (struct segment){
        s, (uint64_t)f->job.b->position * count, (size_t)s * count, count
    };
    return s < f->job.b->group;
}

static bool expect_broadcast(const struct flat *f, int s, struct segment *seg)
{
    *seg = (struct segment){ (int)f->job.b->opt->root, 0, 0, f->job.c->count };
    return s == 0;
}

static bool expect_reduce(const struct flat *f, int s, struct segment *seg)
{
    *seg = (struct segment){ PATTERN_REDUCED, 0, 0, f->job.c->count };
    return s == 0 && f->job.b->position == f->job.b->opt->root;
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
    { "allreduce", true, false, 1, 1, factor_allreduce,
      flat_open, call_allreduce, expect_allreduce },
    { "allgather", false, false, 1, TEST_GROUP, factor_blocks,
      flat_open, call_allgather, expect_allgather },
    { "reduce_scatter", true, false, TEST_GROUP, 1, factor_blocks,
      flat_open, call_reduce_scatter, expect_reduce_scatter },
    { "all_to_all", false, false, TEST_GROUP, TEST_GROUP, factor_blocks,
      flat_open, call_all_to_all, expect_all_to_all },
    { "broadcast", false, true, 1, 1, factor_rooted,
      flat_open, call_broadcast, expect_broadcast },
    { "reduce", true, false, 1, 1, factor_rooted,
      flat_open, call_reduce, expect_reduce },
    { "barrier", false, false, 0, 0, factor_barrier,
      flat_open, call_barrier, expect_nothing },
    { "redistribute", false, false, 1, 1, NULL,
      redistribute_open, NULL, NULL },
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

/* test_blocks.c - collectives of blocks of any size, run by real processes
 *
 * Gather, scatter, all-gather, reduce-scatter and all-to-all with blocks of
 * unequal, empty and large sizes, over shared memory and TCP, on memory that
 * peers reach and on memory that is staged; on the world, on one dimension of
 * a mesh and on two of them flattened.  Element i of what rank r gives is
 * 1000003 r + i, so that every misplaced element shows.  `test_blocks rc 3`
 * runs over one wire only, with 3 ranks at most.
 *
 * Without this test, a collective with counts could put a block in the wrong
 * place as soon as blocks differ in size.
 */
#include "base/compiler.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 8, COUNT_MAX = 70000 };

struct job {
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *mesh;  /* that the calls are made on           */
    int n, me;                        /* in the mesh                          */
    bool registered;
    struct dtensor_error err;
};

struct setup {
    const char *wire;
    bool registered;
};

#define good(call) need((call) == 0, "%s", job->err.text)

static int64_t value(int r, size_t i)
{
    return (int64_t)1000003 * r + (int64_t)i;
}

static int64_t *buffer(struct job *job, size_t count)
{
    size_t bytes = (count + 1) * sizeof(int64_t);
    void *mem;

    if (!job->registered)
        mem = calloc(1, bytes);
    else
        good(dtensor_alloc(job->ctx, bytes, &mem, &job->err));
    return mem;
}

static void drop(struct job *job, void *mem)
{
    if (job->registered)
        dtensor_free(job->ctx, mem);
    else
        free(mem);
}

static int64_t *given(struct job *job, size_t count)
{
    int64_t *in = buffer(job, count);

    for (size_t i = 0; i < count; i++)
        in[i] = value(job->me, i);
    return in;
}

/* Block sizes by pattern: mixed, all in one, empty ones, some large. */
static size_t size_of(int pattern, int r, int n)
{
    switch (pattern) {
    case 0:  return (size_t)(r * 7 + 3) % 5;
    case 1:  return r == n - 1 ? 40 : 0;
    case 2:  return r % 3 == 1 ? 0 : (size_t)r + 1;
    case 3:  return r % 2 ? 600 + (size_t)r : (size_t)r;
    case 4:  return r == 1 % n ? COUNT_MAX : 3;
    default: return 513;
    }
}

static size_t start_of(const size_t counts[], int r)
{
    size_t start = 0;

    for (int q = 0; q < r; q++)
        start += counts[q];
    return start;
}

/* Is out[] blocks of counts[], block r being what rank r has from at[r] on? */
static void expect(const struct job *job, const int64_t out[],
                   const size_t counts[], const size_t at[], const char *what)
{
    for (int r = 0; r < job->n; r++)
        for (size_t i = 0, o = start_of(counts, r); i < counts[r]; i++, o++)
            need(out[o] == value(r, at[r] + i), "%s of %d (%s): element %zu "
                 "of block %d is %" PRId64, what, job->n,
                 dtensor_last_plan(job->ctx), i, r, out[o]);
}

static void try_gathers(struct job *job, const size_t counts[], int root)
{
    static const size_t zero[RANKS];
    size_t total = start_of(counts, job->n), own = start_of(counts, job->me);
    int64_t *in = given(job, counts[job->me]), *out = buffer(job, total);

    good(dtensor_allgatherv(job->mesh, in, out, counts, DTENSOR_I64,
                            &job->err));
    expect(job, out, counts, zero, "allgatherv");
    memset(out, 0, total * sizeof *out);
    good(dtensor_gatherv(job->mesh, root, in, job->me == root ? out : NULL,
                         counts, DTENSOR_I64, &job->err));
    if (job->me == root)
        expect(job, out, counts, zero, "gatherv");
    memset(out, 0, total * sizeof *out);
    memcpy(out + own, in, counts[job->me] * sizeof *in);
    good(dtensor_gatherv(job->mesh, root, job->me == root ? out + own : in,
                         out, counts, DTENSOR_I64, &job->err));
    if (job->me == root)
        expect(job, out, counts, zero, "gatherv in place");
    drop(job, in);
    drop(job, out);
}

static void try_scatters(struct job *job, const size_t counts[], int root)
{
    size_t total = start_of(counts, job->n), own = start_of(counts, job->me);
    size_t mine = counts[job->me];
    int64_t *in = given(job, total), *out = buffer(job, mine), sum;

    good(dtensor_scatterv(job->mesh, root, job->me == root ? in : NULL, out,
                          counts, DTENSOR_I64, &job->err));
    for (size_t i = 0; i < mine; i++)
        need(out[i] == value(root, own + i), "scatterv: element %zu is %"
             PRId64, i, out[i]);
    good(dtensor_reduce_scatterv(job->mesh, in, out, counts, DTENSOR_I64,
                                 DTENSOR_SUM, &job->err));
    for (size_t i = 0; i < mine; i++) {
        sum = 0;
        for (int r = 0; r < job->n; r++)
            sum += value(r, own + i);
        need(out[i] == sum, "reduce_scatterv: element %zu is %" PRId64, i,
             out[i]);
    }
    memset(out, 0, mine * sizeof *out);
    good(dtensor_scatterv(job->mesh, root, in, job->me == root ? in + own : out,
                          counts, DTENSOR_I64, &job->err));
    for (size_t i = 0; i < mine; i++)
        need((job->me == root ? in + own : out)[i] == value(root, own + i),
             "scatterv in place: element %zu", i);
    drop(job, in);
    drop(job, out);
}

/* Each rank knows its own row and column only. */
static void try_all_to_all(struct job *job, int pattern)
{
    size_t out_counts[RANKS], in_counts[RANKS], at[RANKS];
    int64_t *in, *out;

    for (int r = 0; r < job->n; r++) {
        in_counts[r] = size_of(pattern, job->me * 3 + r, RANKS * 2);
        out_counts[r] = size_of(pattern, r * 3 + job->me, RANKS * 2);
        at[r] = 0;
        for (int q = 0; q < job->me; q++)
            at[r] += size_of(pattern, r * 3 + q, RANKS * 2);
    }
    in = given(job, start_of(in_counts, job->n));
    out = buffer(job, start_of(out_counts, job->n));
    good(dtensor_all_to_allv(job->mesh, in, in_counts, out, out_counts,
                             DTENSOR_I64, &job->err));
    expect(job, out, out_counts, at, "all_to_allv");
    drop(job, in);
    drop(job, out);
}

static void try_even(struct job *job, size_t count, int root)
{
    size_t n = (size_t)job->n, all[RANKS], at[RANKS] = { 0 };
    int64_t *in = given(job, n * count), *out = buffer(job, n * count);

    for (int r = 0; r < job->n; r++)
        all[r] = count;
    good(dtensor_gather(job->mesh, root, in, out, count, DTENSOR_I64,
                        &job->err));
    if (job->me == root)
        expect(job, out, all, at, "gather");
    good(dtensor_scatter(job->mesh, root, in, out, count, DTENSOR_I64,
                         &job->err));
    for (size_t i = 0; i < count; i++)
        need(out[i] == value(root, (size_t)job->me * count + i), "scatter: "
             "element %zu", i);
    drop(job, in);
    drop(job, out);
}

static void try_all(struct job *job)
{
    size_t counts[RANKS];

    job->n = dtensor_mesh_size(job->mesh);
    job->me = dtensor_mesh_index(job->mesh, dtensor_rank(job->ctx));
    for (int pattern = 0; pattern < 6; pattern++) {
        int root = pattern % job->n;

        for (int r = 0; r < job->n; r++)
            counts[r] = size_of(pattern, r, job->n);
        try_gathers(job, counts, root);
        try_scatters(job, counts, root);
        try_all_to_all(job, pattern);
        try_even(job, size_of(pattern, 1, RANKS), root);
    }
}

static void blocks_main(int rank, int n, void *arg)
{
    const struct setup *setup = arg;
    struct job job_here = { .registered = setup->registered }, *job = &job_here;
    const struct dtensor_mesh *cube, *part;

    (void)rank;
    good(dtensor_init(NULL, &job->ctx, &job->err));
    good(dtensor_mesh_find(job->ctx, "world", &job->mesh, &job->err));
    try_all(job);
    if (n == RANKS) {
        good(dtensor_mesh_create(job->ctx, 3, (int[]){ 2, 2, 2 }, "a,b,c", NULL,
                                 &cube, &job->err));
        good(dtensor_mesh_slice(cube, "b", &job->mesh, &job->err));
        try_all(job);
        good(dtensor_mesh_slice(cube, "a,c", &part, &job->err));
        good(dtensor_mesh_flatten(part, NULL, &job->mesh, &job->err));
        try_all(job);
    }
    dtensor_fini(job->ctx);
}

static void run(const struct setup *setup, int n)
{
    const char *path = ranks_file(setup->wire, n, "connect_timeout = 20s\n");

    setenv("DTN_CLUSTER", path, 1);
    ok(ranks_run(n, 120, blocks_main, (void *)(uintptr_t)setup, NULL) == 0,
       "%d ranks over %s, %s memory: blocks of any size reach their places%s",
       n, setup->wire, setup->registered ? "registered" : "foreign",
       n == RANKS ? ", also on a dimension and on two flattened" : "");
    unlink(path);
}

/* --------------------------------------------------------------- bad input */

static void refused(struct job *job, int rc, const char *words)
{
    need(rc == DTENSOR_EINVAL && strstr(job->err.text, words),
         "expected EINVAL with \"%s\", got %s: %s", words, dtensor_errname(rc),
         rc ? job->err.text : "");
}

static void bad_main(int rank, int n, void *arg)
{
    struct job job_here = { 0 }, *job = &job_here;
    const size_t huge[] = { SIZE_MAX / 2, SIZE_MAX / 2 }, some[] = { 2, 3 };
    const size_t even[] = { 4, 4 };
    const struct dtensor_mesh *w;
    int64_t x[16] = { 0 }, y[16];
    struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE,
                                 .dtype = DTENSOR_I64, .counts = some };

    (void)n;
    (void)arg;
    good(dtensor_init(NULL, &job->ctx, &job->err));
    good(dtensor_mesh_find(job->ctx, "world", &w, &job->err));
    memset(y, 7, sizeof y);
    refused(job, dtensor_allgatherv(w, x, y, NULL, DTENSOR_I64, &job->err),
            "counts is NULL");
    refused(job, dtensor_all_to_allv(w, x, some, y, NULL, DTENSOR_I64,
                                     &job->err), "go together");
    refused(job, dtensor_all_to_allv(w, x, huge, y, huge, DTENSOR_I64,
                                     &job->err), "overflow");
    refused(job, dtensor_all_to_allv(w, x, some, y, even, DTENSOR_I64,
                                     &job->err), "itself");
    refused(job, dtensor_all_to_allv(w, x, some, x + 1, some, DTENSOR_I64,
                                     &job->err), "overlap");
    refused(job, dtensor_allgatherv(w, x, y, huge, DTENSOR_U8, &job->err),
            "overflow");
    refused(job, dtensor_allgatherv(w, x + 1, x, even, DTENSOR_I64, &job->err),
            "overlap");
    refused(job, dtensor_reduce_scatterv(w, x, y, some, DTENSOR_F32,
                                         DTENSOR_BAND, &job->err),
            "no reduction band for f32");
    refused(job, dtensor_gather(w, 2, x, y, 1, DTENSOR_I64, &job->err),
            "0 to 1");
    refused(job, dtensor_gather(w, 0, NULL, y, 1, DTENSOR_I64, &job->err),
            "`in` is NULL");
    refused(job, dtensor_scatter(w, rank, x, NULL, 1, DTENSOR_I64, &job->err),
            "`out` is NULL");
    refused(job, dtensor_gatherv(w, rank, x, x + 1, some, DTENSOR_I64,
                                 &job->err), "overlap");
    refused(job, dtensor_scatter(w, 0, x, y, SIZE_MAX / 8, DTENSOR_I64,
                                 &job->err), "overflow");
    refused(job, dtensor_gather(w, 0, x, y, 1, (enum dtensor_dtype)99,
                                &job->err), "no dtype 99");
    refused(job, dtensor_call_run(w, &call, x, y, &job->err), "takes a count");
    call.coll = (enum dtensor_collective)DTENSOR_NCOLLECTIVES;
    refused(job, dtensor_call_run(w, &call, x, y, &job->err), "no collective");
    for (int i = 0; i < 16; i++)
        need(y[i] == INT64_C(0x0707070707070707), "out was touched at %d", i);
    good(dtensor_barrier(w, &job->err));
    dtensor_fini(job->ctx);
}

int main(int argc, char **argv)
{
    static const struct setup setups[] = {
        { "shm", true }, { "shm", false }, { "tcp", true }, { "tcp", false },
        { "rc", true }, { "rc", false }
    };
    static const int sizes[] = { 1, 2, 3, RANKS };
    const char *only = argc > 1 ? argv[1] : NULL;
    const int most = argc > 2 ? atoi(argv[2]) : RANKS;

    for (size_t s = 0; s < DTN_COUNT(setups); s++)
        for (size_t i = 0; i < DTN_COUNT(sizes); i++)
            if (only ? strcmp(setups[s].wire, only) == 0 && sizes[i] <= most
                     : strcmp(setups[s].wire, "rc") != 0)
                run(&setups[s], sizes[i]);
    unsetenv("DTN_CLUSTER");
    ok(ranks_run(2, 30, bad_main, NULL, NULL) == 0,
       "bad counts, roots, buffers "
       "and types are refused in words, with the result untouched");
    return done();
}

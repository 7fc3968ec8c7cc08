/* test_group_packs.c - which collectives of a group run as one
 *
 * Four ranks make groups of equal collectives.  Short ones are one call, over
 * tcp up to 64 KiB together; by shared memory, where a copy that peers read
 * costs more than a message, long ones run alone.  The calls that ran are
 * counted.  Sizes, and so the decisions, take turns; results are compared with
 * those outside of a group.
 *
 * Without this test, each of ten short collectives could have messages of its
 * own, or a group of long ones take four times as long as they take alone.
 */
#include "base/compiler.h"
#include "dtensor.h"
#include "tests/support/job.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4, MOST = 10, LONGEST = 9000 };

static const struct row {
    enum dtensor_collective coll;
    int n;                        /* calls in the group                       */
    size_t count;                 /* f32 of a block                           */
    uint64_t calls[2];            /* that run, by shm and over tcp            */
} rows[] = {
    { DTENSOR_ALLREDUCE, MOST, 5, { 1, 1 } },
    { DTENSOR_ALLREDUCE, 4, 8192, { 4, 2 } },
    { DTENSOR_ALLREDUCE, 1, 5, { 1, 1 } },
    { DTENSOR_ALLGATHER, MOST, 5, { 1, 1 } },
    { DTENSOR_ALLGATHER, 4, 4096, { 4, 4 } },
    { DTENSOR_ALL_TO_ALL, 6, 2, { 1, 1 } },
    { DTENSOR_BROADCAST, 3, 7, { 1, 1 } },
    { DTENSOR_ALLREDUCE, 2, 9000, { 2, 2 } },
    { DTENSOR_REDUCE_SCATTER, 3, 5, { 1, 1 } },
    { DTENSOR_ALLREDUCE, 3, 0, { 3, 3 } }
};

static struct job *job;
static const struct dtensor_mesh *world;
static float *in, *out, *expected;     /* [MOST * RANKS * LONGEST]            */

static float *numbers(void)
{
    void *mem;

    good(dtensor_alloc(job->ctx, MOST * RANKS * LONGEST * sizeof *in, &mem,
                       &job->err));
    return mem;
}

static void call(const struct row *row, int i, float *to)
{
    const struct dtensor_call made = { .coll = row->coll, .count = row->count,
                                       .dtype = DTENSOR_F32,
                                       .op = DTENSOR_SUM };
    const size_t at = (size_t)i * RANKS * row->count;

    good(dtensor_call_run(world, &made, in + at, to + at, &job->err));
}

/* Schedules that have run: lines of collectives. */
static uint64_t schedules(void)
{
    struct dtensor_debug_line line;
    uint64_t runs = 0;

    for (int i = 0; dtensor_debug_line(job->ctx, i, &line, NULL) == 0; i++)
        if (strcmp(line.what, "collective") == 0)
            runs += line.count.calls;
    return runs;
}

static void group(const struct row *row, bool started)
{
    struct dtensor_request *request = NULL;

    good(dtensor_group_begin(job->ctx, &job->err));
    for (int i = 0; i < row->n; i++)
        call(row, i, out);
    if (!started) {
        good(dtensor_group_end(job->ctx, &job->err));
        return;
    }
    good(dtensor_group_start(job->ctx, &request, &job->err));
    good(dtensor_wait(request, &job->err));
}

static void run(const struct row *row, uint64_t calls, int round)
{
    const size_t all = (size_t)row->n * RANKS * row->count;

    for (size_t k = 0; k < all; k++) {
        in[k] = (float)((k * 7 + (size_t)round) % 101
                        + 200 * (size_t)job->rank);
        out[k] = expected[k] = -1;
    }
    for (int i = 0; i < row->n; i++)
        call(row, i, expected);
    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    group(row, round % 2);
    good(dtensor_debug_end(job->ctx, &job->err));
    need(schedules() == calls, "%d of %zu: %d schedules, not %d", row->n,
         row->count, (int)schedules(), (int)calls);
    need(memcmp(out, expected, all * sizeof *out) == 0,
         "%d of %zu: other results", row->n, row->count);
}

static void rank_main(int rank, int n, void *arg)
{
    const char *wire = arg;
    struct job the_job;

    job = &the_job;
    job_open(job, rank, n, NULL);
    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    in = numbers();
    out = numbers();
    expected = numbers();
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < DTN_COUNT(rows); i++)
            run(&rows[i], rows[i].calls[strcmp(wire, "tcp") == 0], round);
    dtensor_free(job->ctx, in);
    dtensor_free(job->ctx, out);
    dtensor_free(job->ctx, expected);
    dtensor_fini(job->ctx);
}

int main(void)
{
    static const char *const wires[] = { "shm", "tcp" };

    for (int i = 0; i < 2; i++) {
        const char *path = ranks_file(wires[i], RANKS, NULL);

        setenv("DTN_CLUSTER", path, 1);
        ok(ranks_run(RANKS, 60, rank_main, (void *)(uintptr_t)wires[i],
                     NULL) == 0,
           "%s: collectives of a group are one call where that costs less",
           wires[i]);
        unlink(path);
    }
    return done();
}

/* test_private_memory.c - private memory is passed to peers in every way there
 * is
 *
 * Real ranks over shared memory, with buffers of malloc() that do not begin at
 * a cache line.  The first runs of a plan try every way four times, and stage
 * small buffers in up to 64 places, one after the other.  Each run must be
 * right, and equal sums must have equal bits; dtensor_copied_bytes() tells
 * which runs were staged.  Then the fastest way is kept; if ranks found
 * different ones, from the run after on, and where other programs take the CPUs
 * the window is left once or twice.  Staging buffers larger than max_scratch
 * are not kept.
 *
 * Without this test, one way of copying could be wrong, and only the timing of
 * a machine would decide whether users meet it.
 */
#include "coll/exec/exec.h"
#include "coll/execs.h"
#include "coll/request.h"
#include "coll/state.h"
#include "device/memory.h"
#include "job/bounce.h"
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/support/world.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 16, BUSY = 4, MAX_SCRATCH = 64 << 10 };

/* No fewer than the runs of the trials. */
static int tried(size_t count)
{
    const size_t bytes = count * sizeof(double);

    return bytes >= 4 << 20 ? 2 * 4
         : bytes > 256 << 10 ? 5 * 4 : 5 * 4 + 64 + 3;
}

/* More: a way is kept for some of them. */
static int runs_of(size_t count)
{
    return tried(count) + 13;
}

static double *room(size_t count, void **mem)
{
    *mem = malloc((count + 1) * sizeof(double));
    need(*mem != NULL, "no room");
    return (double *)*mem + 1;
}

/* Element i of what rank r has. */
static double term(int r, size_t i)
{
    return (double)((i * 2654435761u + (size_t)r * 40503u) % 100003) / 7.0;
}

static void fill(double *in, size_t count, int rank)
{
    for (size_t i = 0; i < count; i++)
        in[i] = term(rank, i);
}

static void need_term(const double *out, size_t count, int r, int run)
{
    for (size_t i = 0; i < count; i++)
        need(out[i] == term(r, i), "run %d, from rank %d: element %zu is %g",
             run, r, i, out[i]);
}

/* Sums: within rounding, and the bits of the first run. */
static void sums(struct world *w, size_t count)
{
    void *mem[3];
    double *in = room(count, &mem[0]), *out = room(count, &mem[1]);
    double *first = room(count, &mem[2]);

    for (int run = 0; run < runs_of(count); run++) {
        fill(in, count, w->rank);
        memset(out, 0xff, count * sizeof *out);
        need(dtensor_allreduce(w->mesh, in, out, count, DTENSOR_F64,
                               DTENSOR_SUM, &w->err) == 0, "%s", w->err.text);
        if (run == 0)
            memcpy(first, out, count * sizeof *out);
        need(memcmp(first, out, count * sizeof *out) == 0, "run %d of %zu: "
             "other bits than the first", run, count);
        for (size_t i = 0; i < count; i++) {
            double sum = 0;

            for (int r = 0; r < w->n; r++)
                sum += term(r, i);
            need(out[i] > sum - 1e-6 && out[i] < sum + 1e-6,
                 "run %d of %zu: element %zu is %g, not %g", run, count, i,
                 out[i], sum);
        }
    }
    for (int i = 0; i < 3; i++)
        free(mem[i]);
}

/* A call, or the start of a persistent one. */
static int copy_run(struct world *w, const struct dtensor_call *call,
                    struct dtensor_persistent *persistent, const void *in,
                    void *out)
{
    struct dtensor_request *request;
    int rc;

    if (!persistent)
        return dtensor_call_run(w->mesh, call, in, out, &w->err);
    rc = dtensor_persistent_start(persistent, &request, &w->err);
    return rc != 0 ? rc : dtensor_wait(request, &w->err);
}

/* Copies: staged in all ways but one, and after the trials one is kept. */
static void copies(struct world *w, size_t count, bool kept_ready)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLGATHER,
                                       .count = count, .dtype = DTENSOR_F64 };
    struct dtensor_persistent *persistent = NULL;
    void *mem[2];
    double *in = room(count, &mem[0]);
    double *out = room(count * (size_t)w->n, &mem[1]);
    uint64_t before, copied, kept = 0;
    int nstaged = 0, nchanges = 0;

    fill(in, count, w->rank);
    if (kept_ready)
        need(dtensor_persistent_create(w->mesh, &call, in, out, &persistent,
                                       &w->err) == 0, "%s", w->err.text);
    for (int run = 0; run < runs_of(count); run++) {
        memset(out, 0xff, count * (size_t)w->n * sizeof *out);
        before = dtensor_copied_bytes(w->ctx);
        need(copy_run(w, &call, persistent, in, out) == 0, "%s", w->err.text);
        copied = dtensor_copied_bytes(w->ctx) - before;
        for (int r = 0; r < w->n; r++)
            need_term(out + (size_t)r * count, count, r, run);
        need(copied == 0 || copied == count * sizeof *in
             || (run == tried(count) && copied == 2 * count * sizeof *in),
             "run %d copied %" PRIu64 " bytes", run, copied);
        nstaged += run < FIRST && copied > 0;
        nchanges += run > tried(count) && copied != kept;
        need(nchanges <= BUSY, "run %d goes another way", run);
        kept = copied;
    }
    need(count * sizeof *in >= 4 << 20 || nstaged >= FIRST * 3 / 4,
         "%d of %d runs of %zu were staged", nstaged, FIRST, count);
    dtensor_persistent_destroy(persistent);
    free(mem[0]);
    free(mem[1]);
}

/* In place at the root, and into a buffer elsewhere. */
static void broadcasts(struct world *w, size_t count)
{
    void *mem;
    double *buf = room(count, &mem);

    for (int run = 0; run < runs_of(count); run++) {
        fill(buf, count, w->rank + run);
        need(dtensor_broadcast(w->mesh, 1, buf, count, DTENSOR_F64, &w->err)
             == 0, "%s", w->err.text);
        need_term(buf, count, 1 + run, run);
    }
    free(mem);
}

/* What a call gives element i of OUT. */
static double given(const struct world *w, enum dtensor_collective coll,
                    size_t count, size_t i)
{
    const size_t mine = (size_t)w->rank * count;
    double sum = 0;

    if (coll == DTENSOR_ALLGATHER)
        return term((int)(i / count), i % count);
    if (coll == DTENSOR_ALL_TO_ALL)
        return term((int)(i / count), mine + i % count);
    for (int r = 0; r < w->n; r++)
        sum += term(r, coll == DTENSOR_REDUCE_SCATTER ? mine + i : i);
    return sum;
}

/* Input and result are the same memory. */
static void in_place(struct world *w, size_t count)
{
    void *mem;
    double *buf = room(count, &mem);

    for (int run = 0; run < runs_of(count); run++) {
        fill(buf, count, w->rank);
        need(dtensor_allreduce(w->mesh, buf, buf, count, DTENSOR_F64,
                               DTENSOR_SUM, &w->err) == 0, "%s", w->err.text);
        for (size_t i = 0; i < count; i++)
            need(buf[i] == given(w, DTENSOR_ALLREDUCE, count, i), "in place, "
                 "run %d of %zu: element %zu is %g", run, count, i, buf[i]);
    }
    free(mem);
}

/* Only the ranks other than `shown` have private memory: those that have none
 * learn from them that data go through the window, or that no sums are put.
 * Rank 1 has only private results.  -1: no rank has private memory.
 */
static void mixed(struct world *w, int shown, size_t count)
{
    static const enum dtensor_collective colls[] = {
        DTENSOR_ALLREDUCE, DTENSOR_ALLGATHER, DTENSOR_REDUCE_SCATTER,
        DTENSOR_ALL_TO_ALL
    };
    const size_t all = count * (size_t)w->n;
    void *mem[2];
    double *in = room(all, &mem[0]), *out = room(all, &mem[1]);
    void *lent[2] = { in, out };

    for (int i = 0; i < 2 && (w->rank == shown || shown < 0); i++)
        need(dtensor_alloc(w->ctx, all * sizeof *in, &lent[i], &w->err) == 0,
             "%s", w->err.text);
    if (w->rank == 1 && shown >= 0 && w->rank != shown)
        need(dtensor_alloc(w->ctx, all * sizeof *in, &lent[0], &w->err) == 0,
             "%s", w->err.text);
    for (size_t c = 0; c < sizeof colls / sizeof *colls; c++)
        for (int run = 0; run < runs_of(count); run++) {
            const struct dtensor_call call = {
                .coll = colls[c], .count = count, .dtype = DTENSOR_F64,
                .op = DTENSOR_SUM };
            const size_t got = call.coll == DTENSOR_ALLREDUCE
                || call.coll == DTENSOR_REDUCE_SCATTER ? count : all;

            fill(lent[0], all, w->rank);
            memset(lent[1], 0xff, all * sizeof *out);
            need(dtensor_call_run(w->mesh, &call, lent[0], lent[1], &w->err)
                 == 0, "%s", w->err.text);
            for (size_t i = 0; i < got; i++)
                need(((double *)lent[1])[i] == given(w, call.coll, count, i),
                     "collective %d, run %d: element %zu is %g", call.coll,
                     run, i, ((double *)lent[1])[i]);
        }
    for (int i = 0; i < 2; i++) {
        if (lent[i] != (i == 0 ? in : out))
            dtensor_free(w->ctx, lent[i]);
        free(mem[i]);
    }
}

/* What of the arena is taken after runs that stage more than max_scratch. */
static void bounded(int rank, int n, void *arg)
{
    enum { COUNT = 100000 };
    const size_t bytes = COUNT * sizeof(double);
    struct world w;
    void *mem;
    size_t used;
    bool staged = false;

    world_open(&w);
    need(dtensor_alloc(w.ctx, bytes, &mem, &w.err) == 0, "%s", w.err.text);
    need(dtensor_allreduce(w.mesh, mem, mem, COUNT, DTENSOR_F64, DTENSOR_SUM,
                           &w.err) == 0, "%s", w.err.text);
    used = w.ctx->arena.extents.used_bytes;
    for (int run = 0; run < 3; run++) {
        uint64_t copied = dtensor_copied_bytes(w.ctx);

        sums(&w, COUNT);
        staged |= dtensor_copied_bytes(w.ctx) - copied > bytes;
        need(w.ctx->arena.extents.used_bytes <= used + MAX_SCRATCH,
             "%zu bytes are kept", w.ctx->arena.extents.used_bytes - used);
    }
    need(staged, "nothing was staged");
    dtensor_fini(w.ctx);
}

static void lend(int rank, int n, void *arg)
{
    static const size_t counts[] = { 1001, 3000, 5003, 40001, 600000 };
    struct world w;

    world_open(&w);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        sums(&w, counts[i]);
        copies(&w, counts[i], false);
        copies(&w, counts[i], true);
        broadcasts(&w, counts[i]);
    }
    in_place(&w, 1001);
    in_place(&w, 3000);
    mixed(&w, 0, 1001);
    mixed(&w, n - 1, 3000);
    mixed(&w, 0, 40001);
    mixed(&w, n - 1, 100003);
    dtensor_fini(w.ctx);
}

/* Fewer elements than ranks, and blocks of no elements. */
static void few(int rank, int n, void *arg)
{
    struct world w;

    world_open(&w);
    for (size_t count = 1; count < 20; count++) {
        in_place(&w, count);
        mixed(&w, 0, count);
        mixed(&w, -1, count);
    }
    dtensor_fini(w.ctx);
}

/* After one part of 32 KiB: parts of 64 KiB take turns, and none lies across
 * two of them.  The trials of staging in turns rely on this: a part that a peer
 * has not touched yet costs it page faults.
 */
static void parts(int rank, int n, void *arg)
{
    const size_t whole = 64 << 10;
    unsigned char *seen[64];
    struct dtn_bounce *bounce;
    struct world w;
    int nparts;

    world_open(&w);
    nparts = dtn_bounce_parts(w.ctx, whole);
    need(nparts > 1 && nparts < 64, "%d parts", nparts);
    bounce = dtn_bounce_take_next(w.ctx, DTN_BOUNCE_IN, &dtn_host, whole / 2);
    need(bounce != NULL, "no part");
    dtn_bounce_give(w.ctx, bounce);
    for (int i = 0; i < 3 * nparts; i++) {
        bounce = dtn_bounce_take_next(w.ctx, DTN_BOUNCE_IN, &dtn_host, whole);
        need(bounce != NULL, "no part");
        if (i < nparts)
            seen[i] = bounce->mem;
        need(bounce->mem == seen[i % nparts], "call %d has another part", i);
        dtn_bounce_give(w.ctx, bounce);
    }
    dtensor_fini(w.ctx);
}

/* The executable of the last call. */
static struct dtn_exec *last_exec(struct world *w)
{
    return ((struct dtn_cached_exec *)dtn_coll_of(w->ctx)->execs.newest)->exec;
}

/* Each rank found another method to be the fastest: all use that of rank 0. */
static void agreed(int rank, int n, void *arg)
{
    enum { COUNT = 8192 };
    static double in[COUNT], out[COUNT];
    struct world w;

    world_open(&w);
    for (int run = 0; run < runs_of(COUNT) + 4; run++) {
        if (run == runs_of(COUNT))
            last_exec(&w)->trials.best = DTN_METHOD_STAGED + rank;
        fill(in, COUNT, rank);
        need(dtensor_allreduce(w.mesh, in, out, COUNT, DTENSOR_F64,
                               DTENSOR_MAX, &w.err) == 0, "%s", w.err.text);
        for (int i = 0; i < COUNT; i++)
            need(out[i] >= term(rank, (size_t)i), "run %d: element %d is %g",
                 run, i, out[i]);
    }
    need(last_exec(&w)->trials.best == DTN_METHOD_STAGED, "rank %d uses method "
         "%d", rank, last_exec(&w)->trials.best);
    dtensor_fini(w.ctx);
}

static void run(int n, const char *more, rank_main_f *fn, const char *claim)
{
    const char *path = ranks_file("shm", n, more);

    setenv("DTN_CLUSTER", path, 1);
    ok(ranks_run(n, 120, fn, NULL, NULL) == 0, "%d ranks: %s", n, claim);
    unlink(path);
}

int main(void)
{
    for (int n = 2; n <= 3; n++)
        run(n, NULL, lend, "staged, streamed and fetched memory, then the way "
            "that is kept");
    run(1, NULL, parts, "parts of bounce buffers take turns");
    run(3, NULL, agreed, "ranks that found different ways agree");
    run(3, "[tuning]\nintra_latency_ns = 1\nintra_bandwidth = 1K\n", few,
        "few elements, by loads from the peers' memory");
    run(2, "[redistribute]\nmax_scratch = 64K\n", bounded, "no more than "
        "max_scratch to stage in is kept");
    return done();
}

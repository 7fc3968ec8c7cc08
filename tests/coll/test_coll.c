/* test_coll.c - every collective, run by real processes
 *
 * Inputs are small whole numbers, so that any order of reduction gives the
 * same bits, and every element is compared with the naive fold.  Each set of
 * ranks runs over every transport of this machine, with memory that peers
 * reach and with memory that must be staged, in place and not.
 *
 * `test_coll rc 3` runs over one wire only, with 3 ranks at most; `test_coll
 * member` is one rank of the job that DTN_CLUSTER and its kin describe.
 *
 * Without this test, an algorithm could pass the checker and still give wrong
 * results when real ranks run it.
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "base/reduce.h"
#include "cluster/sections.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "dtensor.h"
#include "tests/support/naive.h"
#include "tests/support/ranks.h"
#include "tests/support/rdma.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

enum { COUNT_MAX = 70000, RANKS_MAX = 7 };

struct setup {
    const char *wire;             /* of the cluster file                      */
    const char *tuning;           /* algorithms, of which each collective has */
                                  /* the first that there is; NULL: its choice
                                   */
    bool registered;
};

struct world {
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *mesh;
    int rank, n;
    bool registered;
    struct dtensor_error err;
};

/* ------------------------------------------------------------- clusters --- */

/* The first of the algorithms by which the collective is done; else the last.
 */
static const char *tuning_of(const char *algorithms, enum dtn_coll coll)
{
    static char words[100];
    char *word, *next = words;

    snprintf(words, sizeof words, "%s", algorithms);
    while ((word = strsep(&next, " ")) && next)
        for (const struct dtn_emitter *e = dtn_emitters; e->emit; e++)
            if (e->coll == coll
                && strcmp(dtn_word_text(dtn_algorithm_words, e->algorithm),
                          word) == 0)
                return word;
    return word;
}

/* Write a cluster file of n local ranks; its path stays valid. */
static const char *cluster_file(const struct setup *setup, int n)
{
    static const enum dtn_coll tuned[] = {
        DTN_COLL_ALLREDUCE, DTN_COLL_ALLGATHER, DTN_COLL_REDUCE_SCATTER,
        DTN_COLL_ALL_TO_ALL, DTN_COLL_BROADCAST, DTN_COLL_REDUCE
    };
    char more[500];
    size_t at = (size_t)snprintf(more, sizeof more, "connect_timeout = 20s\n"
                                 "%s", setup->tuning ? "[tuning]\n" : "");

    for (size_t i = 0; setup->tuning && i < DTN_COUNT(tuned); i++)
        at += (size_t)snprintf(more + at, sizeof more - at, "%s = 0-inf:%s\n",
                               dtn_coll_name(tuned[i]),
                               tuning_of(setup->tuning, tuned[i]));
    return ranks_file(setup->wire, n, more);
}

static void world_open(struct world *world, const char *path, bool registered)
{
    int rc = dtensor_init(path, &world->ctx, &world->err);

    need(rc == 0, "init: %s", world->err.text);
    rc = dtensor_mesh_find(world->ctx, "world", &world->mesh, &world->err);
    need(rc == 0, "mesh: %s", world->err.text);
    world->rank = dtensor_rank(world->ctx);
    world->n = dtensor_world_size(world->ctx);
    world->registered = registered;
}

static void *buffer_get(struct world *world, size_t size)
{
    void *mem;

    if (!world->registered)
        return calloc(1, size ? size : 1);
    need(dtensor_alloc(world->ctx, size, &mem, &world->err) == 0, "alloc: %s",
         world->err.text);
    return mem;
}

static void buffer_put(struct world *world, void *mem)
{
    if (world->registered)
        dtensor_free(world->ctx, mem);
    else
        free(mem);
}

/* -------------------------------------------------------------- oracles --- */

/* What is averaged of integers: of any size, for no sum may wrap. */
static bool is_wide(enum dtensor_dtype dtype, enum dtensor_redop op)
{
    return op == DTENSOR_AVG && !dtn_dtype_is_float(dtype);
}

static uint64_t wide_input(int rank, size_t i)
{
    const uint64_t mixed = (uint64_t)rank * 31 + i * 7 + i / 11;

    return i % 4 == 0 ? UINT64_MAX : i % 4 == 1 ? UINT64_C(0x7f7f7f7f7f7f7f7f)
         : i % 4 == 2 ? UINT64_C(0x8080808080808080) - mixed % 3
         : mixed * UINT64_C(0x9e3779b97f4a7c15);
}

/* What rank `rank` puts into element i of its input.  The floats of 8 bits
 * hold all integers up to 8 only.
 */
static double input(int rank, size_t i, enum dtensor_dtype dtype,
                    enum dtensor_redop op)
{
    size_t mixed = (size_t)rank * 31 + i * 7 + i / 11;

    if (op != DTENSOR_PROD && dtn_dtype_is_float(dtype) &&
        dtensor_dtype_size(dtype) == 1)
        return (double)(mixed % 2);
    return op == DTENSOR_PROD ? (double)(mixed % 2 + 1)
                              : (double)(mixed % 5 + (size_t)rank % 2);
}

static void fill(enum dtensor_dtype dtype, void *buf, int rank, size_t from,
                 size_t count, enum dtensor_redop op)
{
    for (size_t i = 0; i < count; i++)
        if (is_wide(dtype, op))
            dtn_store_int(dtype, buf, i, (int64_t)wide_input(rank, from + i));
        else
            dtn_store(dtype, buf, i, input(rank, from + i, dtype, op));
}

/* The average of n terms, in 128 bits. */
static void expect_average(int n, enum dtensor_dtype dtype,
                           const void *const terms[], size_t count, void *out)
{
    for (size_t i = 0; i < count; i++) {
        dtn_i128 sum = 0;

        for (int r = 0; r < n; r++) {
            const int64_t term = dtn_load_int(dtype, terms[r], i);

            sum += dtype == DTENSOR_U64 ? (dtn_i128)(uint64_t)term : term;
        }
        dtn_store_int(dtype, out, i, (int64_t)(sum / n));
    }
}

/* The reduction over all ranks of elements [from, from + count). */
static void expect_reduced(int n, enum dtensor_dtype dtype,
                           enum dtensor_redop op, size_t from, size_t count,
                           void *out)
{
    size_t bytes = count * dtensor_dtype_size(dtype);
    const void *terms[RANKS_MAX];

    for (int r = 0; r < n; r++) {
        void *term = malloc(bytes + 1);

        fill(dtype, term, r, from, count, op);
        terms[r] = term;
    }
    if (is_wide(dtype, op))
        expect_average(n, dtype, terms, count, out);
    else
        naive_reduce(dtype, op, out, terms, n, count);
    if (op == DTENSOR_AVG && dtn_dtype_is_float(dtype))
        dtn_scale(dtype, out, count, n);
    for (int r = 0; r < n; r++)
        free((void *)(uintptr_t)terms[r]);
}

static void compare(const struct world *world, enum dtensor_dtype dtype,
                    const void *got, const void *want, size_t count,
                    const char *what)
{
    size_t elem = dtensor_dtype_size(dtype);

    if (memcmp(got, want, count * elem) == 0)
        return;
    for (size_t i = 0; i < count; i++)
        need(memcmp((const char *)got + i * elem, (const char *)want + i * elem,
                    elem) == 0, "%s of %zu %s, %d ranks (%s): element %zu is "
             "%g, expected %g", what, count, dtensor_dtype_name(dtype),
             world->n, dtensor_last_plan(world->ctx), i,
             dtn_load(dtype, got, i), dtn_load(dtype, want, i));
}

/* ---------------------------------------------------------- collectives --- */

static void try_reductions(struct world *world, size_t count,
                           enum dtensor_dtype dtype, enum dtensor_redop op)
{
    size_t n = (size_t)world->n, bytes = count * dtensor_dtype_size(dtype);
    char *in = buffer_get(world, bytes), *out = buffer_get(world, bytes);
    char *all = buffer_get(world, n * bytes), *want = malloc(bytes + 1);
    int root = (int)(count % n), rc;

    fill(dtype, in, world->rank, 0, count, op);
    expect_reduced(world->n, dtype, op, 0, count, want);
    rc = dtensor_allreduce(world->mesh, in, out, count, dtype, op, &world->err);
    need(rc == 0, "allreduce: %s", world->err.text);
    compare(world, dtype, out, want, count, "allreduce");

    memset(out, 0, bytes);
    rc = dtensor_reduce(world->mesh, root, in, world->rank == root ? out : NULL,
                        count, dtype, op, &world->err);
    need(rc == 0, "reduce: %s", world->err.text);
    if (world->rank == root)
        compare(world, dtype, out, want, count, "reduce");

    rc = dtensor_allreduce(world->mesh, in, in, count, dtype, op, &world->err);
    need(rc == 0, "allreduce in place: %s", world->err.text);
    compare(world, dtype, in, want, count, "allreduce in place");

    fill(dtype, all, world->rank, 0, n * count, op);
    rc = dtensor_reduce_scatter(world->mesh, all, out, count, dtype, op,
                                &world->err);
    need(rc == 0, "reduce_scatter: %s", world->err.text);
    expect_reduced(world->n, dtype, op, (size_t)world->rank * count, count,
                   want);
    compare(world, dtype, out, want, count, "reduce_scatter");
    buffer_put(world, in);
    buffer_put(world, out);
    buffer_put(world, all);
    free(want);
}

static void try_moves(struct world *world, size_t count,
                      enum dtensor_dtype dtype)
{
    size_t n = (size_t)world->n, bytes = count * dtensor_dtype_size(dtype);
    size_t me = (size_t)world->rank;
    char *in = buffer_get(world, n * bytes), *out = buffer_get(world,
                                                               n * bytes);
    char *want = malloc(n * bytes + 1);
    int root = (int)((count + 1) % n), rc;

    fill(dtype, in, world->rank, 0, n * count, DTENSOR_SUM);
    for (size_t r = 0; r < n; r++)
        fill(dtype, want + r * bytes, (int)r, 0, count, DTENSOR_SUM);
    rc = dtensor_allgather(world->mesh, in, out, count, dtype, &world->err);
    need(rc == 0, "allgather: %s", world->err.text);
    compare(world, dtype, out, want, n * count, "allgather");

    memset(out, 0, n * bytes);
    memcpy(out + me * bytes, in, bytes);
    rc = dtensor_allgather(world->mesh, out + me * bytes, out, count, dtype,
                           &world->err);
    need(rc == 0, "allgather in place: %s", world->err.text);
    compare(world, dtype, out, want, n * count, "allgather in place");

    for (size_t r = 0; r < n; r++)
        fill(dtype, want + r * bytes, (int)r, me * count, count, DTENSOR_SUM);
    rc = dtensor_all_to_all(world->mesh, in, out, count, dtype, &world->err);
    need(rc == 0, "all_to_all: %s", world->err.text);
    compare(world, dtype, out, want, n * count, "all_to_all");

    fill(dtype, want, root, 0, count, DTENSOR_SUM);
    rc = dtensor_broadcast(world->mesh, root, in, count, dtype, &world->err);
    need(rc == 0, "broadcast: %s", world->err.text);
    compare(world, dtype, in, want, count, "broadcast");
    buffer_put(world, in);
    buffer_put(world, out);
    free(want);
}

/* Every collective with every count, dtype and reduction; where `some` a third
 * of them, each dtype and reduction with three of the counts.
 * The first call makes the schedule.  Each dtype and reduction is called a
 * second time with one of the counts: that call finds the schedule in the
 * cache, which is too small for the schedules of a whole round.
 */
static void all_collectives(int rank, int n, void *arg)
{
    static const size_t counts[] = { 0, 1, 2, 5, 12, 13, 100, 1000, 4099 };
    const struct setup *setup = arg;
    const bool some = n > 4 || setup->tuning;
    struct world world;

    world_open(&world, getenv("DTN_CLUSTER"), setup->registered);
    for (int c = 0; c < (int)DTN_COUNT(counts); c++) {
        for (int op = 0; op < DTENSOR_NREDOPS; op++)
            for (int t = 0; t < DTENSOR_NDTYPES; t++)
                if (dtn_redop_ok(op, t) && (counts[c] < 1000 || t < 2)
                    && (!some || (op + t) % 3 == c % 3) && rounds_pick())
                    for (int call = (op + t) % 7 == c % 7; call >= 0; call--)
                        try_reductions(&world, counts[c], t, op);
        for (int t = 0; t < DTENSOR_NDTYPES; t++)
            if ((!some || t % 3 == c % 3) && rounds_pick())
                for (int call = t % 7 == c % 7; call >= 0; call--)
                    try_moves(&world, counts[c], t);
        need(dtensor_barrier(world.mesh, &world.err) == 0, "barrier: %s",
             world.err.text);
    }
    try_reductions(&world, COUNT_MAX, DTENSOR_F32, DTENSOR_SUM);
    try_moves(&world, COUNT_MAX, DTENSOR_BF16);
    dtensor_fini(world.ctx);
}

static void run_setup(const struct setup *setup, int n)
{
    const char *path = cluster_file(setup, n);
    int bad;

    setenv("DTN_CLUSTER", path, 1);
    bad = ranks_run(n, 120, all_collectives, (void *)(uintptr_t)setup, NULL);
    ok(bad == 0, "%d ranks over %s%s%s, %s memory: every collective, dtype and "
       "reduction is exact", n, setup->wire, setup->tuning ? " by " : "",
       setup->tuning ? setup->tuning : "",
       setup->registered ? "registered" : "foreign");
    unlink(path);
}

/* ------------------------------------------------------------ arguments --- */

static void arguments(int rank, int n, void *arg)
{
    struct world world;
    const struct dtensor_mesh *one;
    const int ranks[] = { 1 };
    float x[8] = { 0 };

    world_open(&world, NULL, false);
    need(dtensor_allreduce(world.mesh, x, x + 1, 4, DTENSOR_F32, DTENSOR_SUM,
                           &world.err) == DTENSOR_EINVAL
         && strstr(world.err.text, "overlap"), "overlap: %s", world.err.text);
    need(dtensor_allreduce(world.mesh, x, x, 4, DTENSOR_F32, DTENSOR_BXOR,
                           &world.err) == DTENSOR_EINVAL, "bxor of floats");
    need(dtensor_allreduce(world.mesh, NULL, x, 4, DTENSOR_F32, DTENSOR_SUM,
                           &world.err) == DTENSOR_EINVAL, "NULL buffer");
    need(dtensor_broadcast(world.mesh, n, x, 4, DTENSOR_F32,
                           &world.err) == DTENSOR_EINVAL
         && strstr(world.err.text, "0 to 1"), "root: %s", world.err.text);
    need(dtensor_allgather(world.mesh, x, x, SIZE_MAX / 2, DTENSOR_F64,
                           &world.err) == DTENSOR_EINVAL, "overflow");
    need(dtensor_mesh_create(world.ctx, 1, (int[]){ 1 }, NULL, ranks, &one,
                             &world.err) == 0, "mesh: %s", world.err.text);
    if (rank == 0)
        need(dtensor_barrier(one, &world.err) == DTENSOR_EINVAL
             && strstr(world.err.text, "not in this mesh"), "outside: %s",
             world.err.text);
    else
        need(dtensor_barrier(one, &world.err) == 0, "%s", world.err.text);
    need(dtensor_barrier(world.mesh, &world.err) == 0, "the context is good "
         "after bad arguments: %s", world.err.text);
    dtensor_fini(world.ctx);
}

static const struct setup setups[] = {
    { "shm", NULL, true }, { "shm", NULL, false }, { "shm", "ring", true },
    { "shm", "tree", false }, { "shm", "hierarchical", true },
    { "shm", "halving pairwise bruck twotree", true },
    { "shm", "doubling bruck ring", false },
    { "shm", "twotree halving bruck", true },
    { "tcp", NULL, true }, { "tcp", "ring", false },
    { "tcp", "halving pairwise bruck twotree", true },
    { "rc", NULL, true }, { "rc", "ring", false }, { "rc", "tree", true },
    { "rc", "halving pairwise bruck twotree", true }
};

/* Every setup of this wire. */
static void run_wire(const char *wire, int most)
{
    static const int sizes[] = { 1, 2, 3, 4, 7 };
    const char *absent = strcmp(wire, "rc") == 0 ? rdma_absent() : NULL;

    if (absent) {
        skip("collectives over rc", absent);
        return;
    }
    for (size_t s = 0; s < DTN_COUNT(setups); s++)
        for (size_t i = 0; i < DTN_COUNT(sizes); i++)
            if (strcmp(setups[s].wire, wire) == 0 && sizes[i] <= most
                && (!setups[s].tuning || !strchr(setups[s].tuning, ' ')
                    || sizes[i] == 3 || sizes[i] == 4)
                && (s == 0 || sizes[i] != 2 || most < 4))
                run_setup(&setups[s], sizes[i]);
}

int main(int argc, char **argv)
{
    static const char *const wires[] = { "shm", "tcp", "rc" };
    static const struct setup member = { .registered = true };
    const char *only = argc > 1 ? argv[1] : "";
    int most = argc > 2 ? atoi(argv[2]) : RANKS_MAX;

    if (strcmp(only, "member") == 0) {
        all_collectives(0, 0, (void *)(uintptr_t)&member);
        return 0;
    }
    for (size_t w = 0; w < DTN_COUNT(wires); w++)
        if (!*only || strcmp(only, wires[w]) == 0)
            run_wire(wires[w], most);
    unsetenv("DTN_CLUSTER");
    ok(ranks_run(2, 30, arguments, NULL, NULL) == 0, "bad arguments are EINVAL "
       "in words, and leave the context good");
    return done();
}

/* test_batch_choice.c - which tensors of a batch are exchanged together
 *
 * A tensor is packed with others if that costs less than messages of its own.
 * Batches of tensors from 64 B to 7 MB are made: the small ones share an
 * exchange, the large ones have plans of their own, with one limit between
 * them, which is higher over tcp.  All ranks choose alike, also if their parts
 * differ or they are not in the mesh.  The elements are those of plans that run
 * one by one.
 *
 * Without this test, a batch of large tensors could take three times as long as
 * its plans, or ranks that choose differently could wait for each other.
 */
#include "base/compiler.h"
#include "redist/batch.h"
#include "dtensor.h"
#include "tests/support/ranks.h"
#include "tests/support/world.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COPIES = 4, ROUNDS = 3, MOST = 32 };

/* What a rank chose, of each tensor. */
struct choice {
    uint8_t alone[MOST];
};

/* Tensors of one batch. */
struct tensors {
    int n;
    struct dtensor_spec src[MOST], dst[MOST];
    struct dtensor *from[MOST], *to[MOST], *expected[MOST];
    struct dtensor_batch *batch;
};

#define good(call) need((call) == 0, "%s", w->err.text)

/* Other numbers in each element of each rank, terms too. */
static void part_fill(const struct world *w, struct dtensor *t,
                      enum dtensor_dtype dtype)
{
    void *part = dtensor_to_local(t);
    const size_t n = dtensor_local_bytes(t) / dtensor_dtype_size(dtype);

    for (size_t i = 0; i < n; i++)
        if (dtype == DTENSOR_F64)
            ((double *)part)[i] = 1000000.0 * w->rank + (double)i;
        else
            ((int32_t *)part)[i] = 1000000 * w->rank + (int32_t)i;
}

static void tensors_add(struct world *w, struct tensors *t,
                        const struct dtensor_mesh *mesh,
                        enum dtensor_dtype dtype, const char *const way[2],
                        const int64_t shape[2])
{
    const int i = t->n++;

    good(dtensor_spec_on(&t->src[i], mesh, way[0], dtype, 2, shape, &w->err));
    good(dtensor_spec_on(&t->dst[i], mesh, way[1], dtype, 2, shape, &w->err));
    good(dtensor_zeros(&t->src[i], &t->from[i], &w->err));
    part_fill(w, t->from[i], dtype);
    good(dtensor_zeros(&t->dst[i], &t->to[i], &w->err));
    good(dtensor_zeros(&t->dst[i], &t->expected[i], &w->err));
}

static void tensors_destroy(struct tensors *t)
{
    dtensor_batch_destroy(t->batch);
    for (int i = 0; i < t->n; i++) {
        dtensor_destroy(t->from[i]);
        dtensor_destroy(t->to[i]);
        dtensor_destroy(t->expected[i]);
    }
}

/* The elements are those of plans that run one by one. */
static void tensors_run(struct world *w, struct tensors *t)
{
    for (int i = 0; i < t->n; i++)
        good(dtensor_redistribute_into(t->from[i], t->expected[i], &w->err));
    for (int round = 0; round < ROUNDS; round++) {
        good(dtensor_batch_run(t->batch, (const struct dtensor *const *)t->from,
                               t->to, &w->err));
        for (int i = 0; i < t->n; i++) {
            const size_t bytes = dtensor_local_bytes(t->to[i]);
            void *mem = dtensor_to_local(t->to[i]);

            need(bytes == 0 || memcmp(mem, dtensor_to_local(t->expected[i]),
                                      bytes) == 0, "tensor %d differs", i);
            if (bytes > 0)
                memset(mem, 0xee, bytes);
        }
    }
}

/* Make the batch.  All ranks of the world have chosen the same. */
static struct choice tensors_choose(struct world *w, struct tensors *t)
{
    struct choice mine = { { 0 } }, all[4];

    good(dtensor_batch_create(t->n, t->src, t->dst, &t->batch, &w->err));
    for (int i = 0; i < t->n; i++)
        mine.alone[i] = t->batch->item[i].alone != NULL;
    need(w->n <= 4, "room for the choices of 4 ranks");
    good(dtensor_allgather(w->mesh, &mine, all, sizeof mine, DTENSOR_U8,
                           &w->err));
    for (int r = 0; r < w->n; r++)
        need(memcmp(&all[r], &mine, sizeof mine) == 0, "rank %d chose other "
             "tensors", r);
    return mine;
}

/* ------------------------------------------------------------ the limit --- */

/* Are COPIES tensors with `side` rows of `side` f64 packed? */
static bool side_joins(struct world *w, int64_t side, bool runs)
{
    static const char *const way[2] = { "S(0)", "S(1)" };
    struct tensors t = { .n = 0 };
    struct choice choice;

    for (int i = 0; i < COPIES; i++)
        tensors_add(w, &t, w->mesh, DTENSOR_F64, way,
                    (int64_t[]){ side, side });
    choice = tensors_choose(w, &t);
    for (int i = 1; i < COPIES; i++)
        need(choice.alone[i] == choice.alone[0], "equal tensors part");
    if (runs)
        tensors_run(w, &t);
    tensors_destroy(&t);
    return !choice.alone[0];
}

/* Sides 4 to 1,316: 64 B to 7 MB on each of two ranks.  Up to 256 B they join,
 * the largest do not; of 56 and 110 KB it depends on the wire.
 */
static void limit_main(int rank, int n, void *arg)
{
    const bool far = strcmp(arg, "tcp") == 0;
    struct world w_here, *w = &w_here;
    bool joined = true;

    (void)rank;
    (void)n;
    world_open(w);
    for (int side = 4, k = 0; side < 1500; side = side * 14142 / 10000, k++) {
        const bool joins = side_joins(w, side, k % 4 == 0);
        const int bytes = side * side * 4;

        need(joined || !joins, "%d B join, but not the half", bytes);
        need(joins || bytes > 256, "%d B do not join", bytes);
        need(!joins || bytes < 6 << 20, "%d B join", bytes);
        need(bytes < 50000 || bytes > 120000 || joins == far,
             "%d B over %s: %d", bytes, (const char *)arg, joins);
        joined = joins;
    }
    dtensor_fini(w->ctx);
}

/* ------------------------------------------------------------- mixtures --- */

static const struct {
    const char *way[2];
    int64_t shape[2];
} mixed[] = {
    { { "S(0)", "S(1)" }, { 4, 4 } },     { { "S(0)", "S(1)" }, { 512, 512 } },
    { { "S(1)", "S(0)" }, { 3, 5 } },     { { "S(0)", "R" }, { 1, 3 } },
    { { "P", "S(0)" }, { 5, 2 } },        { { "P", "S(1)" }, { 300, 500 } },
    { { "S(0)", "R" }, { 700, 400 } },    { { "R", "S(0)" }, { 7, 7 } },
    { { "S(0)", "S(1)" }, { 2, 7 } },     { { "P", "S(0)" }, { 2, 2 } },
    { { "S(1)", "S(0)" }, { 901, 300 } }, { { "P", "R" }, { 4, 4 } },
    { { "S(0)", "S(0)" }, { 9, 9 } },
};

/* Small and large, uneven and empty parts; one tensor of another dtype, which
 * has nobody to join.  The last rank is not in the mesh.
 */
static void mixed_main(int rank, int n, void *arg)
{
    struct tensors t = { .n = 0 };
    struct world w_here, *w = &w_here;
    const struct dtensor_mesh *mesh = NULL;
    const int members = n - 1;
    struct choice choice;

    (void)rank;
    (void)arg;
    world_open(w);
    good(dtensor_mesh_create(w->ctx, 1, &members, NULL, NULL, &mesh, &w->err));
    for (size_t i = 0; i < DTN_COUNT(mixed); i++)
        tensors_add(w, &t, mesh, DTENSOR_F64, mixed[i].way, mixed[i].shape);
    tensors_add(w, &t, mesh, DTENSOR_I32, mixed[0].way, mixed[0].shape);
    choice = tensors_choose(w, &t);
    need(!choice.alone[0] && !choice.alone[2] && !choice.alone[3]
         && !choice.alone[8], "small ones join");
    need(choice.alone[t.n - 1], "one cannot join itself");
    tensors_run(w, &t);
    tensors_destroy(&t);
    dtensor_fini(w->ctx);
}

int main(void)
{
    static const char *const wires[] = { "shm", "tcp" };

    for (size_t i = 0; i < DTN_COUNT(wires); i++) {
        void *wire = (void *)(uintptr_t)wires[i];
        const char *path = ranks_file(wires[i], 2, NULL);

        setenv("DTN_CLUSTER", path, 1);
        ok(ranks_run(2, 60, limit_main, wire, NULL) == 0,
           "%s: small tensors are packed, large ones are not", wires[i]);
        unlink(path);
        path = ranks_file(wires[i], 4, NULL);
        setenv("DTN_CLUSTER", path, 1);
        ok(ranks_run(4, 60, mixed_main, NULL, NULL) == 0,
           "%s: tensors of all sizes in one batch", wires[i]);
        unlink(path);
    }
    return done();
}

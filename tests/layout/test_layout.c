/* test_layout.c - which box of a tensor a rank holds
 *
 * Every shape and placement is compared with lists of indices that are cut as
 * the definition says.
 *
 * Without this test, a rank could hold elements twice or not at all when sizes
 * do not divide.
 */
#include "base/compiler.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "dtensor.h"
#include "tests/support/mesh_job.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- chunks --- */

static void test_chunk_table(void)
{
    static const struct { int N, n; const char *want; } t[] = {
        { 5, 2, "(3,0)(2,3)" },
        { 5, 3, "(2,0)(2,2)(1,4)" },
        { 5, 4, "(2,0)(2,2)(1,4)(0,5)" },
        { 5, 8, "(1,0)(1,1)(1,2)(1,3)(1,4)(0,5)(0,5)(0,5)" },
        { 10, 8, "(2,0)(2,2)(2,4)(2,6)(2,8)(0,10)(0,10)(0,10)" },
        { 13, 4, "(4,0)(4,4)(4,8)(1,12)" },
        { 11, 8, "(2,0)(2,2)(2,4)(2,6)(2,8)(1,10)(0,11)(0,11)" },
        { 2, 4, "(1,0)(1,1)(0,2)(0,2)" },
        { 4, 3, "(2,0)(2,2)(0,4)" },
        { 0, 2, "(0,0)(0,0)" },
        { 8, 4, "(2,0)(2,2)(2,4)(2,6)" },
    };
    char text[200], claim[40];
    int64_t start, size;

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        size_t used = 0;

        for (int r = 0; r < t[i].n; r++) {
            dtn_chunk(t[i].N, t[i].n, r, &start, &size);
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "(%d,%d)", (int)size, (int)start);
        }
        snprintf(claim, sizeof claim, "%d over %d", t[i].N, t[i].n);
        is(text, t[i].want, claim);
    }
}

/* By definition: cut every ceil(N/n), one element at a time. */
static void test_chunk_brute(void)
{
    int64_t start, size;
    bool good = true;

    for (int N = 0; N <= 100; N++)
        for (int n = 1; n <= 33; n++) {
            int full = (N + n - 1) / n, next = 0;

            for (int r = 0; r < n; r++) {
                int held = 0;

                dtn_chunk(N, n, r, &start, &size);
                good = good && start == next;
                while (held < full && next < N)
                    held++, next++;
                good = good && size == held;
            }
        }
    ok(good, "0..100 over 1..33 agree with cutting one by one");
    dtn_chunk(INT64_MAX, 3, 2, &start, &size);
    ok(start + size == INT64_MAX && size == INT64_MAX / 3 - 1,
       "2^63-1 over 3 does not overflow");
    dtn_chunk(INT64_MAX - 1, 2147483647, 2147483646, &start, &size);
    ok(start + size == INT64_MAX - 1 && size >= 0,
       "nor does 2^63-2 over 2^31-1");
}

/* -------------------------------------------------------- nested shards --- */

/* "(3,0)(2,3).." of tensor dimension `dim` for every position. */
static char *layout_text(const struct dtensor_spec *spec, int dim, char *text,
                         size_t size)
{
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < spec->mesh->group.n && used < size; i++) {
        dtn_layout(spec, i, shape, offset);
        used += (size_t)snprintf(text + used, size - used, "(%d,%d)",
                                 (int)shape[dim], (int)offset[dim]);
    }
    return text;
}

static struct dtensor_spec spec_of(const struct dtensor_mesh *mesh,
                                   const char *placements, int ndim,
                                   const int64_t shape[])
{
    struct dtensor_spec spec = { .mesh = mesh, .ndim = ndim };

    memcpy(spec.shape, shape, (size_t)ndim * sizeof shape[0]);
    if (dtensor_placements_parse(mesh, placements, ndim, spec.placement,
                                 NULL) != 0 ||
        dtensor_spec_check(&spec, NULL) != 0)
        abort();
    return spec;
}

static void test_nested(void)
{
    static const struct {
        int mesh[3];
        int64_t shape[2];
        const char *placements;
        int dim;
        const char *want;
    } t[] = {
        { { 2, 2 }, { 5, 3 }, "S(0),S(0)", 0, "(2,0)(1,2)(1,3)(1,4)" },
        { { 4 }, { 5, 3 }, "S(0)", 0, "(2,0)(2,2)(1,4)(0,5)" },
        { { 4, 2 }, { 18, 2 }, "S(0),S(0)", 0,
          "(3,0)(2,3)(3,5)(2,8)(3,10)(2,13)(2,15)(1,17)" },
        { { 4, 2 }, { 13, 2 }, "S(0),S(0)", 0,
          "(2,0)(2,2)(2,4)(2,6)(2,8)(2,10)(1,12)(0,13)" },
        { { 2, 2 }, { 8, 2 }, "S(0),S(0)", 0, "(2,0)(2,2)(2,4)(2,6)" },
        { { 2, 4 }, { 4, 8 }, "S(1),S(0)", 0,
          "(1,0)(1,1)(1,2)(1,3)(1,0)(1,1)(1,2)(1,3)" },
        { { 2, 4 }, { 4, 8 }, "S(1),S(0)", 1,
          "(4,0)(4,0)(4,0)(4,0)(4,4)(4,4)(4,4)(4,4)" },
        { { 2, 2 }, { 3, 5 }, "P(max),S(-1)", 1, "(3,0)(2,3)(3,0)(2,3)" },
        { { 2, 2, 2 }, { 8, 8 }, "S(0),S(1),S(0)", 0,
          "(2,0)(2,2)(2,0)(2,2)(2,4)(2,6)(2,4)(2,6)" },
        { { 4 }, { 2, 8 }, "S(0)", 0, "(1,0)(1,1)(0,2)(0,2)" },
    };
    char text[200], claim[80];

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        int ndim = t[i].mesh[2] ? 3 : t[i].mesh[1] ? 2 : 1;
        struct dtensor_spec spec = spec_of(grid(ndim, t[i].mesh, NULL),
                                           t[i].placements, 2, t[i].shape);

        snprintf(claim, sizeof claim, "%d x %d as %s, dimension %d",
                 (int)t[i].shape[0], (int)t[i].shape[1], t[i].placements,
                 t[i].dim);
        is(layout_text(&spec, t[i].dim, text, sizeof text), t[i].want, claim);
    }
}

/* compute_local_shape_and_global_offset(), 1-D world 8, sizes 0..16. */
static void test_line(void)
{
    bool good = true;

    for (int64_t N = 0; N <= 16; N++) {
        struct dtensor_spec spec = spec_of(GRID(NULL, 8), "S(0)",
                                           1, &N);

        for (int r = 0; r < 8; r++) {
            const int64_t full = (N + 7) / 8, end = full * (r + 1);
            const int64_t begin = full * r < N ? full * r : N;
            int64_t local, offset;

            dtensor_spec_local(&spec, r, &local, &offset);
            good = good && offset == begin &&
                   offset + local == (end < N ? end : N);
        }
    }
    ok(good, "8 ranks, 0..16 elements: each has the chunk that is its own");
}

/* For every 2-D case: the boxes of a Shard-only spec tile the tensor. */
static void test_tiling(void)
{
    static const char *const placements[] = { "S(0),S(0)", "S(0),S(1)",
                                              "S(1),S(0)", "S(1),S(1)" };
    int64_t shape[2], local[2], offset[2];
    bool good = true;

    for (size_t p = 0; p < DTN_COUNT(placements); p++)
        for (int rows = 1; rows <= 8; rows++) {
            struct dtensor_spec spec;
            int covered[64] = { 0 };

            shape[0] = rows;
            shape[1] = 64 / rows;
            spec = spec_of(GRID(NULL, 2, 4), placements[p], 2,
                           shape);
            for (int r = 0; r < 8; r++) {
                dtensor_spec_local(&spec, r, local, offset);
                for (int64_t i = 0; i < local[0]; i++)
                    for (int64_t j = 0; j < local[1]; j++)
                        covered[(offset[0] + i) * shape[1] + offset[1] + j]++;
            }
            for (int64_t i = 0; i < shape[0] * shape[1]; i++)
                good = good && covered[i] == 1;
        }
    ok(good, "2 x 4, rows 1..8: every Shard pair tiles the tensor");
}

static void test_outside(void)
{
    const struct dtensor_mesh *mesh;
    struct dtensor_spec spec;
    int64_t local[2] = { 9, 9 }, offset[2];

    dtensor_mesh_create(&ctx, 1, (const int[]){ 2 }, NULL,
                        (const int[]){ 4, 5 }, &mesh, NULL);
    spec = spec_of(mesh, "R", 2, (const int64_t[]){ 3, 4 });
    dtensor_spec_local(&spec, 0, local, offset);
    ok(local[0] == 0 && local[1] == 0, "a rank outside the mesh holds nothing");
    dtensor_spec_local(&spec, 5, local, offset);
    ok(local[0] == 3 && local[1] == 4 && offset[0] == 0,
       "a replica holds everything");
    ok(dtn_local_numel(&spec, 1) == 12, "which is 12 elements");
}

/* "0-1 5" for each rank, apart by " | ": the indices along dimension 0. */
static char *runs_text(const struct dtensor_spec *spec, char *text, size_t size)
{
    struct dtensor_run run[16];
    size_t used = 0;

    text[0] = '\0';
    for (int r = 0; r < spec->mesh->group.n; r++) {
        int n = (int)dtensor_spec_runs(spec, r, 0, run, 16);

        used += (size_t)snprintf(text + used, size - used, "%s",
                                 r ? " |" : "");
        for (int i = 0; i < n; i++) {
            int64_t last = run[i].start + run[i].size - 1;

            used += (size_t)snprintf(text + used, size - used,
                                     last > run[i].start ? " %d-%d" : " %d",
                                     (int)run[i].start, (int)last);
        }
    }
    return text;
}

/* Of 2^63 - 1 elements in two pieces: a sanitized build sees sums that are too
 * large on the way.
 */
static void test_runs_large(void)
{
    const struct dtensor_mesh *mesh = GRID(NULL, 1);
    const int64_t half = INT64_C(1) << 62;
    struct dtensor_spec spec = { .mesh = mesh, .ndim = 1, .dtype = DTENSOR_U8,
                                 .shape = { INT64_MAX } };
    struct dtensor_run run[2] = { { 0, 0 }, { 0, 0 } };

    spec.placement[0] = (struct dtensor_placement){
        .kind = DTENSOR_STRIDED, .block = 2 };
    ok(dtensor_spec_runs(&spec, 0, 0, run, 2) == 1 && run[0].start == 0
       && run[0].size == INT64_MAX, "the largest tensor there is is one run");
    spec.placement[0] = (struct dtensor_placement){
        .kind = DTENSOR_CYCLIC, .block = half };
    ok(dtensor_spec_runs(&spec, 0, 0, run, 2) == 1
       && run[0].size == INT64_MAX, "cyclic too");
}

static void test_runs(void)
{
    static const struct {
        int mesh[2];
        int N;
        const char *placements;
        const char *want;
    } t[] = {
        { { 3 }, 10, "S(0)", " 0-3 | 4-7 | 8-9" },
        { { 3 }, 10, "S(0:2,3,5)", " 0-1 | 2-4 | 5-9" },
        { { 3 }, 10, "S(0:0,10,0)", " | 0-9 |" },
        { { 3 }, 10, "SS(0,2)", " 0-1 5-6 | 2-3 7-8 | 4 9" },
        { { 3 }, 10, "C(0,2)", " 0-1 6-7 | 2-3 8-9 | 4-5" },
        { { 3 }, 10, "HT(0)", " 0-1 8-9 | 2-3 6-7 | 4-5" },
        { { 4 }, 16, "HT(0)", " 0-1 14-15 | 2-3 12-13 | 4-5 10-11 | 6-9" },
        { { 1 }, 5, "HT(0)", " 0-4" },
        { { 3 }, 7, "HT(0)", " 0-1 6 | 2-3 5 | 4" },
        { { 4 }, 5, "HT(0)", " 0 4 | 1 3 | 2 |" },
        { { 2, 2 }, 12, "HT(0),HT(0)", " 0-1 11 | 2 9-10 | 3-4 8 | 5-7" },
        { { 4 }, 9, "SS(0,2)", " 0-1 5 | 2-3 6 | 4 7 | 8" },
        { { 2 }, 5, "SS(0,2)", " 0-1 3 | 2 4" },
        { { 4 }, 8, "SS(0,1)", " 0-1 | 2-3 | 4-5 | 6-7" },
        { { 4 }, 8, "SS(0,2)", " 0 4 | 1 5 | 2 6 | 3 7" },
        { { 2 }, 3, "SS(0,5)", " 0-2 |" },
        { { 2 }, 3, "C(0,5)", " 0-2 |" },
        { { 2 }, 7, "C(0,3)", " 0-2 6 | 3-5" },
        { { 2, 2 }, 8, "SS(0,2),R", " 0-1 4-5 | 0-1 4-5 | 2-3 6-7 | 2-3 6-7" },
        { { 2, 2 }, 8, "SS(0,2),S(0)", " 0-1 | 4-5 | 2-3 | 6-7" },
        { { 2, 2 }, 8, "C(0,1),C(0,1)", " 0 4 | 2 6 | 1 5 | 3 7" },
        { { 2, 2 }, 10, "S(0:4,6),S(0)", " 0-1 | 2-3 | 4-6 | 7-9" },
        { { 2, 2 }, 8, "SS(0,4),S(0:1,3)", " 0 | 2 4 6 | 1 | 3 5 7" },
        { { 1, 2 }, 6, "C(0,2),C(0,1)", " 0 2 4 | 1 3 5" },
    };
    char text[200], claim[60];
    struct dtensor_run run = { -1, -1 };
    struct dtensor_spec spec;

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        spec = spec_of(grid(t[i].mesh[1] ? 2 : 1, t[i].mesh, NULL),
                       t[i].placements, 1, (const int64_t[]){ t[i].N });
        snprintf(claim, sizeof claim, "runs of %d as %s", t[i].N,
                 t[i].placements);
        is(runs_text(&spec, text, sizeof text), t[i].want, claim);
    }
    ok(dtensor_spec_runs(&spec, 0, 0, &run, 1) == 3 && run.start == 0 &&
       run.size == 1 && dtensor_spec_runs(&spec, 1, 0, NULL, 0) == 3,
       "no more than there is room for, but all are counted");
    test_runs_large();
    ok(dtensor_spec_runs(&spec, 2, 0, &run, 1) == 0 &&
       dtensor_spec_runs(&spec, 0, 1, &run, 1) == 0,
       "none for a rank outside, or of no dimension");
}

int main(void)
{
    start(256, 0);
    test_chunk_table();
    test_chunk_brute();
    test_nested();
    test_line();
    test_tiling();
    test_outside();
    test_runs();
    dtn_slots_destroy(&ctx);
    return done();
}

/* test_order.c - shard orders, shard maps, and PyTorch's tables of layouts
 *
 * A shard order says which mesh dimension cuts first.  The tables are compared
 * with those of a real PyTorch.
 *
 * Without this test, a tensor sharded twice on one dimension could be laid out
 * in another order than PyTorch's.
 */
#include "base/compiler.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "mesh/mesh.h"
#include "dtensor.h"
#include "tests/support/mesh_job.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct dtensor_spec spec_of(const int sizes[], int ndim_mesh,
                                   const char *placements, int ndim,
                                   const int64_t shape[])
{
    struct dtensor_spec spec = { .ndim = ndim };
    struct dtensor_error err;

    memcpy(spec.shape, shape, (size_t)ndim * sizeof shape[0]);
    if (dtensor_mesh_create(&ctx, ndim_mesh, sizes, NULL, NULL, &spec.mesh,
                            &err) != 0 ||
        dtensor_placements_parse(spec.mesh, placements, ndim, spec.placement,
                                 &err) != 0 ||
        dtensor_spec_check(&spec, &err) != 0) {
        note("%s", err.text);
        abort();
    }
    return spec;
}

/* ------------------------------------------------- size and first index --- */

/* "(3,0)(2,3)..": along dimension 0, for every rank. */
static void test_tables(void)
{
    static const struct {
        int mesh[3];
        int64_t rows, cols;
        const char *placements;
        const char *want;
    } t[] = {
        { { 4, 2 }, 18, 2, "S(0),S(0)",
          "(3,0)(2,3)(3,5)(2,8)(3,10)(2,13)(2,15)(1,17)" },
        { { 4, 2 }, 13, 2, "S(0),S(0)",
          "(2,0)(2,2)(2,4)(2,6)(2,8)(2,10)(1,12)(0,13)" },
        { { 4, 2 }, 18, 2, "SS(0,2),S(0)",
          "(3,0)(3,9)(3,3)(3,12)(3,6)(3,15)(0,18)(0,18)" },
        { { 4, 2 }, 39, 2, "SS(0,3),SS(0,4)",
          "(8,0)(4,2)(8,4)(4,6)(8,8)(4,10)(3,12)(0,39)" },
        { { 4, 2 }, 18, 2, "S(0),SS(0,2)",
          "(3,0)(2,2)(3,5)(2,7)(3,10)(2,12)(2,15)(1,16)" },
        { { 4, 2, 3 }, 39, 2, "S(0),SS(0,2),S(0)",
          "(2,0)(2,2)(2,6)(2,3)(2,8)(0,39)(2,10)(2,12)(2,16)(2,13)(2,18)(0,39)"
          "(2,20)(2,22)(2,26)(2,23)(2,28)(0,39)(2,30)(2,32)(1,36)(2,33)(2,37)"
          "(0,39)" },
        { { 4, 2 }, 15, 5, "SS(0,2),S(0)",
          "(2,0)(2,8)(2,2)(2,10)(2,4)(2,12)(2,6)(1,14)" },
        { { 2, 2, 2 }, 16, 16, "SS(0,2),S(0),S(0)",
          "(2,0)(2,2)(2,8)(2,10)(2,4)(2,6)(2,12)(2,14)" },
        { { 4, 2 }, 16, 2, "SS(0,2),S(0)",
          "(2,0)(2,8)(2,2)(2,10)(2,4)(2,12)(2,6)(2,14)" },
        { { 2, 2, 2 }, 8, 2, "R,SS(0,2),S(0)",
          "(2,0)(2,4)(2,2)(2,6)(2,0)(2,4)(2,2)(2,6)" },
    };
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];
    char got[400], claim[60];

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        struct dtensor_spec spec =
            spec_of(t[i].mesh, t[i].mesh[2] ? 3 : 2, t[i].placements, 2,
                    (const int64_t[]){ t[i].rows, t[i].cols });
        size_t used = 0;

        for (int r = 0; r < dtensor_mesh_size(spec.mesh); r++) {
            dtensor_spec_local(&spec, r, shape, offset);
            used += (size_t)snprintf(got + used, sizeof got - used, "(%d,%d)",
                                     (int)shape[0], (int)offset[0]);
        }
        snprintf(claim, sizeof claim, "%d rows as %s", (int)t[i].rows,
                 t[i].placements);
        is(got, t[i].want, claim);
    }
}

/* 4096 rows on 30 x 8 as SS(0,8),S(0): 18 each, the last two groups short. */
static void test_many(void)
{
    struct dtensor_spec spec = spec_of((const int[]){ 30, 8 }, 2,
                                       "SS(0,8),S(0)", 2,
                                       (const int64_t[]){ 4096, 4096 });
    bool good = true;

    for (int dp = 0; dp < 30; dp++)
        for (int tp = 0; tp < 8; tp++) {
            int64_t shape[2], offset[2];
            int64_t size = dp < 28 ? 18 : dp == 28 ? 8 : 0;

            dtensor_spec_local(&spec, 8 * dp + tp, shape, offset);
            good = good && shape[0] == size && shape[1] == 4096 &&
                   offset[0] == (size ? tp * 512 + 18 * dp : 4096);
        }
    ok(good, "4096 rows on 30 x 8 as SS(0,8),S(0)");
}

static void test_four(void)
{
    static const int mesh[] = { 1, 2, 2, 2 };
    static const int64_t shape[] = { 16, 16 };
    struct dtensor_spec a = spec_of(mesh, 4, "SS(0,2),SS(1,2),S(0),S(1)", 2,
                                    shape);
    struct dtensor_spec b = spec_of(mesh, 4, "SS(0,2),SS(1,2),S(0),S(0)", 2,
                                    shape);
    bool good = true;

    for (int r = 0; r < 8; r++) {
        int m1 = r >> 2, m2 = r >> 1 & 1, m3 = r & 1;
        int64_t local[2], offset[2];

        dtensor_spec_local(&a, r, local, offset);
        good = good && local[0] == 8 && local[1] == 4 && offset[0] == 8 * m2 &&
               offset[1] == 8 * m3 + 4 * m1;
        dtensor_spec_local(&b, r, local, offset);
        good = good && local[0] == 4 && local[1] == 8 &&
               offset[0] == 8 * m2 + 4 * m3 && offset[1] == 4 * m1;
    }
    ok(good, "16 x 16 on 1 x 2 x 2 x 2, two strided dimensions");
}

/* --------------------------------------------------------------- orders --- */

static void test_encode(void)
{
    static const struct { int place[3]; const char *want; } t[] = {
        { { 0, 1, 2 }, "S(0),S(0),S(0)" },
        { { 1, 2, 0 }, "SS(0,2),SS(0,2),S(0)" },
        { { 1, 0, 2 }, "SS(0,3),S(0),S(0)" },
        { { 2, 1, 0 }, "SS(0,6),SS(0,2),S(0)" },
        { { 0, 2, 1 }, "S(0),SS(0,2),S(0)" },
        { { 2, 0, 1 }, "SS(0,6),S(0),S(0)" },
    };
    char text[60];

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        struct dtensor_spec spec = spec_of((const int[]){ 4, 3, 2 }, 3,
                                           "S(0),S(0),S(0)", 1,
                                           (const int64_t[]){ 31 });
        int place[3] = { 9, 9, 9 };

        text[0] = '\0';
        if (dtensor_spec_set_order(&spec, t[i].place, NULL) == 0)
            dtensor_placements_format(spec.mesh, spec.placement, text,
                                      sizeof text);
        is(text, t[i].want, "an order as strided shards");
        ok(dtensor_spec_order(&spec, place, NULL) == 0 &&
           memcmp(place, t[i].place, sizeof place) == 0, "and back");
    }
}

/* Order (1, 0) of S(0),S(0) cuts by mesh dimension 1 first: as S(0),S(0) does
 * on the mesh with its dimensions exchanged.  Every length.
 */
static void test_meaning(void)
{
    static const int turned[] = { 0, 2, 4, 6, 1, 3, 5, 7 };
    bool good = true;

    for (int64_t N = 0; N <= 40; N++) {
        struct dtensor_spec a = spec_of((const int[]){ 4, 2 }, 2, "S(0),S(0)",
                                        1, &N);
        struct dtensor_spec b = spec_of((const int[]){ 2, 4 }, 2, "S(0),S(0)",
                                        1, &N);

        dtensor_spec_set_order(&a, (const int[]){ 1, 0 }, NULL);
        for (int r = 0; r < 8 && N % 8 == 0; r++) {
            int64_t size[2], offset[2];

            dtensor_spec_local(&b, r, &size[0], &offset[0]);
            dtensor_spec_local(&a, turned[r], &size[1], &offset[1]);
            good = good && size[0] == size[1] && offset[0] == offset[1];
        }
    }
    ok(good, "cut by the second mesh dimension first, even lengths");
}

static void test_bad_orders(void)
{
    static const struct { const char *placements, *want; } t[] = {
        { "SS(0,3),S(0)", "spec: placement 0 is in no shard order: of the mesh "
          "dimensions to its right, none that shard tensor dimension 0 make "
          "its factor" },
        { "S(0),SS(0,2)", "spec: placement 1 is in no shard order: of the mesh "
          "dimensions to its right, none that shard tensor dimension 0 make "
          "its factor" },
        { "SS(0,2),S(1)", "spec: placement 0 is in no shard order: of the mesh "
          "dimensions to its right, none that shard tensor dimension 0 make "
          "its factor" },
        { "C(0,2),R", "spec: placement 0 is in no shard order: of the mesh "
          "dimensions to its right, none that shard tensor dimension 0 make "
          "its factor" },
    };
    struct dtensor_spec spec;
    struct dtensor_error err;
    int place[2] = { 7, 7 };

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        spec = spec_of((const int[]){ 4, 2 }, 2, t[i].placements, 2,
                       (const int64_t[]){ 9, 9 });
        err.text[0] = '\0';
        dtensor_spec_order(&spec, place, &err);
        is(err.text, t[i].want, "not decodable");
    }
    ok(place[0] == 7, "and the result is untouched");
    dtensor_spec_set_order(&spec, (const int[]){ 0, 0 }, &err);
    is(err.text, "spec: placement 0 is not S(dimension), and only these can be "
       "put in another order", "refused");
    spec = spec_of((const int[]){ 4, 2 }, 2, "S(1),S(1)", 2,
                   (const int64_t[]){ 9, 9 });
    dtensor_spec_set_order(&spec, (const int[]){ 0, 0 }, &err);
    is(err.text, "spec: the order of the mesh dimensions that shard tensor "
       "dimension 1 is none (give them 0, 1, ... once each)", "refused");
    spec = spec_of((const int[]){ 4, 2 }, 2, "R,S(1)", 2,
                   (const int64_t[]){ 9, 9 });
    ok(dtensor_spec_order(&spec, place, NULL) == 0 && place[0] == -1 &&
       place[1] == 0, "a mesh dimension that cuts nothing has no place");
}

/* ----------------------------------------------------------------- maps --- */

static void test_maps(void)
{
    struct dtensor_spec spec = spec_of((const int[]){ 2, 4 }, 2, "S(1),S(0)",
                                       3, (const int64_t[]){ 18, 20, 30 });
    int map[3] = { 7, 7, 7 }, shards[3];
    struct dtensor_error err;

    ok(dtensor_spec_dim_map(&spec, map, &err) == 0 && map[0] == 1 &&
       map[1] == 0 && map[2] == -1, "S(1),S(0): dim_map is 1, 0, -1");
    dtensor_spec_num_shards(&spec, shards);
    ok(shards[0] == 4 && shards[1] == 2 && shards[2] == 1,
       "and there are 4, 2 and 1 shards");
    spec = spec_of((const int[]){ 2, 4 }, 2, "C(1,2),SS(1,2)", 3,
                   (const int64_t[]){ 18, 20, 30 });
    map[0] = 7;
    dtensor_spec_dim_map(&spec, map, &err);
    is(err.text, "spec: tensor dimension 1 is sharded by mesh dimensions 0 and "
       "1, which no dim_map can say (see dtensor_spec_num_shards)", "refused");
    dtensor_spec_num_shards(&spec, shards);
    ok(map[0] == 7 && shards[0] == 1 && shards[1] == 8, "but 8 shards");
}

int main(void)
{
    start(256, 0);
    test_tables();
    test_many();
    test_four();
    test_encode();
    test_meaning();
    test_bad_orders();
    test_maps();
    dtn_slots_destroy(&ctx);
    return done();
}

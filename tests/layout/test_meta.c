/* test_meta.c - shapes and strides of wholes and parts
 *
 * The strides of the parts of 256 ranks are those of every placement of
 * (4,4,4) on an 8 x 8 x 4 mesh, there and back.
 *
 * Without this test, a part that is handed in from outside could be read with
 * wrong strides.
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

static struct dtensor_meta meta_of(int64_t a, int64_t b, int64_t c, int64_t i,
                                   int64_t j, int64_t k)
{
    return (struct dtensor_meta){ DTENSOR_F32, 3, { a, b, c }, { i, j, k } };
}

static bool same(const struct dtensor_meta *a, const struct dtensor_meta *b)
{
    return a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, sizeof a->shape) == 0 &&
           memcmp(a->stride, b->stride, sizeof a->stride) == 0;
}

/* ------------------------------------------------------------------- meta */

static void test_tables(void)
{
    static const int sizes[] = { 2, 3, 4 };
    const struct dtensor_mesh *mesh = grid(3, sizes, NULL);
    const struct dtensor_meta local = meta_of(2, 3, 1, 3, 1, 1);
    struct dtensor_placement p[3];
    struct dtensor_meta whole;

    dtensor_placements_parse(mesh, "S(0),S(1),S(2)", 3, p, NULL);
    ok(dtensor_meta_global(mesh, p, &local, &whole, NULL) == 0 &&
       whole.shape[0] == 4 && whole.shape[1] == 9 && whole.shape[2] == 4 &&
       whole.stride[0] == 36 && whole.stride[1] == 1 && whole.stride[2] == 3,
       "parts of (2,3,1) with strides (3,1,1) on 2x3x4: (4,9,4), (36,1,3)");
    dtensor_placements_parse(mesh, "R,P,S(-1)", 3, p, NULL);
    ok(dtensor_meta_global(mesh, p, &local, &whole, NULL) == 0 &&
       whole.shape[0] == 2 && whole.shape[1] == 3 && whole.shape[2] == 4,
       "R and P leave shapes as they are");
}

static void test_round_trips(void)
{
    static const int sizes[] = { 8, 8, 4 };
    const struct dtensor_mesh *mesh = grid(3, sizes, NULL);
    const struct dtensor_meta local = meta_of(4, 4, 4, 16, 4, 1);
    int good = 0;

    for (int code = 0; code < 64; code++) {
        struct dtensor_placement p[3] = { { .kind = DTENSOR_SHARD } };
        struct dtensor_meta whole, back, rows;
        struct dtensor_spec spec = { .mesh = mesh, .dtype = DTENSOR_F32,
                                     .ndim = 3 };

        for (int m = 0, c = code; m < 3; m++, c /= 4)
            p[m] = (struct dtensor_placement){
                .kind = c % 4 == 3 ? DTENSOR_REPLICATE : DTENSOR_SHARD,
                .dim = c % 4 % 3 };
        if (dtensor_meta_global(mesh, p, &local, &whole, NULL) != 0 ||
            dtensor_meta_local(mesh, p, &whole, &back, NULL) != 0)
            continue;
        memcpy(spec.shape, whole.shape, sizeof spec.shape);
        memcpy(spec.placement, p, sizeof p);
        dtensor_spec_meta(&spec, -1, &rows);
        good += same(&back, &local) && same(&rows, &whole);
        dtensor_spec_meta(&spec, 77, &rows);
        good += same(&rows, &local);
    }
    ok(good == 128, "256 ranks, all 64 placements of (4,4,4): there and back, "
       "and what the spec says");
}

/* Every refusal leaves the result alone. */
static void test_refusals(void)
{
    static const int sizes[] = { 4 };
    static const struct { const char *placements; int64_t rows; int dim;
                          const char *words; } t[] = {
        { "SS(0,2)", 8, 0, "is not S(dimension)" },
        { "C(0,2)", 8, 0, "is not S(dimension)" },
        { "S(0:1,2,3,2)", 8, 0, "is not S(dimension)" },
        { "S(0)", 7, 0, "do not divide by the 4 ranks" },
        { "S(0)", INT64_MAX / 2, 0, "over 2^63" },
        { "S(0)", INT64_MAX / 32, 0, "over 2^63" },
        { "S(0)", -1, 0, "expected 0 or more" },
        { "S(0)", 8, 5, "has 3 dimensions" },
    };
    const struct dtensor_mesh *mesh = grid(1, sizes, NULL);

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        struct dtensor_meta in = meta_of(t[i].rows, 2, 2, 4, 2, 1);
        struct dtensor_meta out = meta_of(9, 9, 9, 9, 9, 9), was = out;
        struct dtensor_placement p[1];
        struct dtensor_error err = { .text = "" };
        int rc;

        dtensor_placements_parse(mesh, t[i].placements, 3, p, NULL);
        p[0].dim += t[i].dim;
        rc = strstr(t[i].words, "divide")
           ? dtensor_meta_local(mesh, p, &in, &out, &err)
           : dtensor_meta_global(mesh, p, &in, &out, &err);
        ok(rc == DTENSOR_EINVAL && strstr(err.text, t[i].words) &&
           same(&out, &was), "refused: %s", err.text);
    }
}

int main(void)
{
    start(256, 0);
    test_tables();
    test_round_trips();
    test_refusals();
    dtn_slots_destroy(&ctx);
    return done();
}

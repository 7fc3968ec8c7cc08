/* test_pieces.c - every redistribute of small tensors, against brute force
 *
 * All ranks are buffers of this process (pieces_oracle.h).  The phases of each
 * redistribute are carried out piece by piece, and every element is compared
 * with the definition.
 *
 * Without this test, the lists of pieces would be checked only together with
 * the transport, and an error would be hard to place.
 */
#include "base/compiler.h"
#include "mesh/mesh.h"
#include "redist/phases.h"
#include "dtensor.h"
#include "tests/redist/pieces_oracle.h"
#include "tests/support/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Placement number `code` of a tensor of `ndim` dimensions: R, P, S(0).. */
static void place(struct dtensor_spec *spec, int code, enum dtensor_redop op)
{
    for (int m = 0; m < spec->mesh->ndim; m++) {
        int p = code % (spec->ndim + 2);

        code /= spec->ndim + 2;
        spec->placement[m] = (struct dtensor_placement){
            .kind = p == 0 ? DTENSOR_REPLICATE : p == 1 ? DTENSOR_PARTIAL
                                                        : DTENSOR_SHARD,
            .dim = p < 2 ? 0 : p - 2, .op = op
        };
    }
}

static void all_placements(struct dtensor_spec *src, enum dtensor_redop from,
                           enum dtensor_redop to, int every)
{
    struct dtensor_spec dst = *src;
    int n = 1, i = 0;

    for (int m = 0; m < src->mesh->ndim; m++)
        n *= src->ndim + 2;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            if (i++ % every != 0)
                continue;
            place(src, a, from);
            place(&dst, b, to);
            one_case(src, &dst);
        }
}

/* All shapes of `ndim` dimensions with sizes of the list. */
static void all_shapes(const struct dtensor_mesh *mesh, int ndim,
                       enum dtensor_redop from, enum dtensor_redop to,
                       int every)
{
    static const int64_t sizes[] = { 0, 1, 2, 3, 5, 7, 8 };
    enum { N = DTN_COUNT(sizes) };
    struct dtensor_spec spec = { mesh, DTENSOR_F64, ndim, { 0 }, { { 0 } } };

    for (int i = 0; i < N; i++)
        for (int j = 0; j < (ndim > 1 ? N : 1); j++) {
            spec.shape[0] = sizes[i];
            spec.shape[1] = sizes[j];
            all_placements(&spec, from, to, every);
        }
}

static void test_two_dims(void)
{
    for (int a = 1; a <= 8; a++)
        for (int b = 1; a * b <= 8; b++)
            all_shapes(GRID(NULL, a, b), 1, DTENSOR_SUM, DTENSOR_SUM, 1);
    claim("2-D meshes, vectors: every placement pair is right and frugal");
    for (int a = 1; a <= 8; a++)
        for (int b = 1; a * b <= 8; b++)
            all_shapes(GRID(NULL, a, b), 2, DTENSOR_SUM, DTENSOR_SUM,
                       a * b == 1 ? 64 : 3);
    claim("2-D meshes, matrices: every third placement pair is right");
}

static void test_three_dims(void)
{
    static const int meshes[][3] = { { 2, 2, 2 }, { 2, 1, 3 }, { 1, 2, 4 },
                                     { 3, 2, 1 } };
    static const int64_t shapes[][3] = { { 5, 3, 2 }, { 8, 4, 2 }, { 1, 7, 3 },
                                         { 2, 0, 3 } };
    struct dtensor_spec spec = { .dtype = DTENSOR_F64 };

    for (size_t m = 0; m < DTN_COUNT(meshes); m++) {
        spec.mesh = GRID(NULL, meshes[m][0], meshes[m][1], meshes[m][2]);
        all_shapes(spec.mesh, 1, DTENSOR_SUM, DTENSOR_SUM, 1);
        spec.ndim = 2;
        for (size_t s = 0; s < DTN_COUNT(shapes); s++) {
            memcpy(spec.shape, shapes[s], sizeof shapes[s]);
            all_placements(&spec, DTENSOR_SUM, DTENSOR_SUM, 7);
        }
    }
    claim("3-D meshes, vectors and matrices");
    for (size_t s = 0; s < DTN_COUNT(shapes); s++) {
        memcpy(spec.shape, shapes[s], sizeof shapes[s]);
        spec.ndim = 3;
        spec.mesh = GRID(NULL, 2, 3);
        all_placements(&spec, DTENSOR_SUM, DTENSOR_SUM, 1);
    }
    claim("3-D tensors on 2 x 3");
}

/* Every reduction, and every pair of two. */
static void test_reductions(void)
{
    static const enum dtensor_redop ops[] = { DTENSOR_SUM, DTENSOR_AVG,
                                              DTENSOR_PROD, DTENSOR_MIN,
                                              DTENSOR_MAX };
    static const enum dtensor_dtype dtypes[] = { DTENSOR_F64, DTENSOR_I64 };
    struct dtensor_spec spec = { .ndim = 1, .shape = { 5 } };

    for (size_t d = 0; d < DTN_COUNT(dtypes); d++)
        for (size_t a = 0; a < DTN_COUNT(ops); a++)
            for (size_t b = 0; b < DTN_COUNT(ops); b++) {
                spec.dtype = dtypes[d];
                spec.mesh = GRID(NULL, 3);
                all_placements(&spec, ops[a], ops[b], 1);
                spec.mesh = GRID(NULL, 2, 3);
                all_placements(&spec, ops[a], ops[b], 1);
                spec.mesh = GRID(NULL, 2, 2, 2);
                all_placements(&spec, ops[a], ops[b], 3);
            }
    claim("floats and integers: every reduction into every other");
}

/* ----------------------------------------------- the shape of the plans --- */

static void test_plan(const char *from, const char *to, const int64_t shape[2],
                      const char *want)
{
    struct dtensor_spec src = { .mesh = GRID(NULL, 2, 4), .ndim = 2,
                                .shape = { shape[0], shape[1] } };
    struct dtensor_spec dst = src;
    struct dtn_phase phase[DTN_MAX_PHASES];
    char got[64] = "";
    int n;

    if (dtensor_placements_parse(src.mesh, from, 2, src.placement, NULL) != 0 ||
        dtensor_placements_parse(dst.mesh, to, 2, dst.placement, NULL) != 0)
        abort();
    n = dtn_phases(&src, &dst, phase);
    for (int i = 0; i < n; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s%u",
                 i ? " " : "",
                 phase[i].kind == DTN_PHASE_REDUCE ? "reduce:" : "exchange",
                 phase[i].dims);
    ok(strcmp(got, want) == 0, "2 x 4: %s -> %s is \"%s\"%s%s", from, to, want,
       strcmp(got, want) ? ", not " : "", strcmp(got, want) ? got : "");
}

static void test_plans(void)
{
    static const struct { const char *from, *to, *want; } t[] = {
        { "R,R", "R,R", "" },
        { "S(0),S(1)", "S(0),S(1)", "" },
        { "S(0),R", "R,S(1)", "exchange0" },
        { "P,P", "R,R", "reduce:3" },
        { "P,R", "R,R", "reduce:1" },
        { "R,P", "R,R", "reduce:2" },
        { "P,P", "R,S(0)", "exchange0 reduce:1" },
        { "P,P", "S(0),S(0)", "exchange0" },
        { "P,S(0)", "R,R", "reduce:1 exchange0" },
        { "P,R", "R,S(1)", "exchange0 reduce:1" },
        { "P,S(0)", "P,R", "exchange0" },
        { "P,P", "P,P", "" },
        { "P(sum),R", "P(max),R", "reduce:1 exchange0" },
        { "P(sum),S(0)", "R,P(max)", "reduce:1 exchange0" },
        { "R,R", "P,P", "exchange0" },
    };
    const int64_t shape[] = { 8, 8 };

    for (size_t i = 0; i < DTN_COUNT(t); i++)
        test_plan(t[i].from, t[i].to, shape, t[i].want);
}

int main(void)
{
    start(MAX_RANKS, 0);
    note("seed %u", seed);
    for (int n = 1; n <= 8; n++) {
        all_shapes(GRID(NULL, n), 1, DTENSOR_SUM, DTENSOR_SUM, 1);
        all_shapes(GRID(NULL, n), 2, DTENSOR_SUM, DTENSOR_SUM, 1);
    }
    claim("1-D meshes of 1 to 8: every placement pair is right and frugal");
    test_two_dims();
    test_three_dims();
    test_reductions();
    test_plans();
    dtn_slots_destroy(&ctx);
    return done();
}

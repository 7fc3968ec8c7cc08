/* test_pieces_strided.c - pieces of strided, block-cyclic and chosen shards
 *
 * The cases are drawn at random from all placements, on meshes of up to 8
 * ranks and between two meshes; those of short vectors are complete.
 *
 * Without this test, a rank could send the wrong rows as soon as a shard is
 * not one range.
 */
#include "base/box.h"
#include "base/compiler.h"
#include "layout/layout.h"
#include "layout/lengths.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/phases.h"
#include "redist/pieces.h"
#include "dtensor.h"
#include "tests/redist/pieces_oracle.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------ every placement --- */

/* Lengths drawn at random for n shards of N elements. */
static const int64_t *draw_lengths(int64_t N, int n)
{
    int64_t list[MAX_RANKS] = { 0 };
    const int64_t *kept = NULL;

    for (int64_t i = 0; i < N; i++)
        list[draw((uint32_t)n)]++;
    if (dtn_lengths_keep(&ctx, list, n, &kept, NULL) != 0)
        abort();
    return kept;
}

/* Elements that placements 0..m-1 leave along `dim`, or -1 when some ranks have
 * more than others.
 */
static int64_t equal_part(const struct dtensor_spec *spec, int m, int dim)
{
    struct dtensor_spec part = *spec;
    int list[MAX_ELEMS], n = -1;

    for (int k = m; k < spec->mesh->ndim; k++)
        part.placement[k].kind = DTENSOR_REPLICATE;
    for (int r = 0; r < spec->mesh->group.n; r++) {
        int held = indices(&part, r, dim, list);

        if (r > 0 && held != n)
            return -1;
        n = held;
    }
    return n;
}

/* One placement drawn at random. */
static void place_any(struct dtensor_spec *spec, int m, enum dtensor_redop op)
{
    struct dtensor_placement *p = &spec->placement[m];
    int64_t part;

    memset(p, 0, sizeof *p);
    p->kind = (enum dtensor_placement_kind)draw(6);
    if (dtn_placement_class(p) == DTENSOR_SHARD)
        p->dim = (int)draw((uint32_t)spec->ndim);
    if (p->kind == DTENSOR_PARTIAL)
        p->op = op != DTENSOR_SUM ? op : draw(2) ? DTENSOR_SUM : DTENSOR_AVG;
    if (p->kind == DTENSOR_STRIDED || p->kind == DTENSOR_CYCLIC)
        p->block = 1 + draw(draw(4) ? 3 : 9);
    part = p->kind == DTENSOR_SHARD && draw(2) ? equal_part(spec, m, p->dim)
                                               : -1;
    if (part >= 0)
        p->sizes = draw_lengths(part, spec->mesh->size[m]);
}

static struct dtensor_spec draw_spec(const struct dtensor_mesh *mesh, int ndim,
                                     const int64_t shape[],
                                     enum dtensor_redop op)
{
    struct dtensor_spec spec;

    memset(&spec, 0, sizeof spec);
    spec.mesh = mesh;
    spec.dtype = DTENSOR_F64;
    spec.ndim = ndim;
    memcpy(spec.shape, shape, (size_t)ndim * sizeof shape[0]);
    for (int m = 0; m < mesh->ndim; m++)
        place_any(&spec, m, op);
    if (dtensor_spec_check(&spec, NULL) != 0)
        complain(&spec, &spec, "refused");
    return spec;
}

static const struct dtensor_mesh *draw_mesh(void)
{
    static const int grids[][3] = {
        { 1 }, { 2 }, { 3 }, { 5 }, { 8 }, { 2, 2 }, { 2, 3 }, { 3, 2 },
        { 1, 4 }, { 4, 2 }, { 2, 2, 2 }, { 2, 1, 3 }, { 3, 1, 2 }
    };
    const int *sizes = grids[draw(DTN_COUNT(grids))];

    return grid(sizes[2] ? 3 : sizes[1] ? 2 : 1, sizes, NULL);
}

static int draw_shape(int64_t shape[3])
{
    static const int most[] = { 60, 16, 7 };
    int ndim = 1 + (int)draw(3);

    for (int d = 0; d < ndim; d++)
        shape[d] = draw(20) ? 1 + draw((uint32_t)most[ndim - 1]) : 0;
    return ndim;
}

static void test_any_placement(void)
{
    static const enum dtensor_redop ops[] = { DTENSOR_SUM, DTENSOR_MAX };
    int64_t shape[3];

    for (int i = 0; i < 40000; i++) {
        const struct dtensor_mesh *mesh = draw_mesh();
        int ndim = draw_shape(shape);
        struct dtensor_spec src = draw_spec(mesh, ndim, shape, ops[draw(2)]);
        struct dtensor_spec dst = draw_spec(mesh, ndim, shape, ops[draw(2)]);

        one_case(&src, &dst);
    }
    claim("strided, chosen lengths, block-cyclic, sums with averages, at "
          "random");
}

/* Every vector of up to 13 elements on up to 5 ranks, every pair of S, SS and C
 * with small factors and blocks.
 */
static void test_every_cut(void)
{
    enum { CUTS = 12 };

    for (int n = 1; n <= 5; n++)
        for (int64_t N = 0; N <= 13; N++)
            for (int pair = 0; pair < CUTS * CUTS; pair++) {
                struct dtensor_spec spec[2];

                for (int i = 0; i < 2; i++) {
                    int code = i ? pair / CUTS : pair % CUTS;
                    struct dtensor_placement *p = &spec[i].placement[0];

                    memset(&spec[i], 0, sizeof spec[i]);
                    spec[i].mesh = GRID(NULL, n);
                    spec[i].dtype = DTENSOR_F64;
                    spec[i].ndim = 1;
                    spec[i].shape[0] = N;
                    p->kind = code == 0 ? DTENSOR_SHARD
                            : code == 11 ? DTENSOR_HEADTAIL
                            : code < 6 ? DTENSOR_STRIDED : DTENSOR_CYCLIC;
                    p->block = code % 11 == 0 ? 0 : (code - 1) % 5 + 1;
                }
                one_case(&spec[0], &spec[1]);
            }
    claim("every pair of cuts of vectors of 0..13 elements on 1..5 ranks");
}

/* --------------------------------------------------- between two meshes --- */

/* A grid of ranks in a random order that may leave some out. */
static const struct dtensor_mesh *shuffled(const struct dtensor_mesh *like)
{
    const struct dtensor_mesh *mesh;
    int ranks[MAX_RANKS];

    for (int i = 0; i < MAX_RANKS; i++) {
        int at = (int)draw((uint32_t)i + 1);

        ranks[i] = ranks[at];
        ranks[at] = i;
    }
    if (dtensor_mesh_create(&ctx, like->ndim, like->size, NULL, ranks, &mesh,
                            NULL) != 0)
        abort();
    return mesh;
}

/* Elements that a rank has already come from itself. */
static bool keeps_own(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, int r,
                      const struct dtn_pieces *received)
{
    int64_t numel = dtn_numel(src->ndim, src->shape), both = 0, kept = 0;
    int self = dtensor_mesh_index(src->mesh, dtensor_mesh_rank(dst->mesh, r));

    for (int64_t g = 0; self >= 0 && g < numel; g++)
        both += where(src, self, g) >= 0 && where(dst, r, g) >= 0;
    for (int i = 0; i < received->n; i++)
        if (received->list[i].source == self)
            kept += dtn_box_count(&received->list[i].box);
    return kept == both;
}

static bool between_meshes(const struct dtensor_spec *src,
                           const struct dtensor_spec *dst)
{
    int op = dtn_spec_partial(src), n = term_average(src);
    int64_t numel = dtn_numel(src->ndim, src->shape);
    struct dtn_phase phase = { .src = *src, .dst = *dst };
    struct dtn_pieces all[MAX_RANKS] = { { 0 } };
    bool good = true;

    lay_out(src, numel);
    for (int r = 0; r < dst->mesh->group.n; r++) {
        if (dtn_pieces_received(src, dst, r, &all[r], NULL) != 0)
            abort();
        for (int i = 0; i < all[r].n; i++)
            apply(&all[r].list[i], (enum dtensor_redop)(op < 0 ? 0 : op),
                  now.part[all[r].list[i].source], next.part[r]);
        for (int64_t g = 0; g < numel; g++) {
            int64_t at = where(dst, r, g);

            good = good && (at < 0 || next.part[r][at] / n == whole[g]);
        }
        good = good && (op >= 0 || keeps_own(src, dst, r, &all[r]));
    }
    good = good && sent_is_received(&phase, all);
    for (int r = 0; r < dst->mesh->group.n; r++)
        dtn_pieces_fini(&all[r]);
    return good;
}

static void test_between_meshes(void)
{
    int64_t shape[3];

    for (int i = 0; i < 4000; i++) {
        int ndim = draw_shape(shape);
        struct dtensor_spec src = draw_spec(shuffled(draw_mesh()), ndim, shape,
                                            DTENSOR_MAX);
        struct dtensor_spec dst = draw_spec(draw_mesh(), ndim, shape,
                                            DTENSOR_MAX);

        for (int m = 0; m < dst.mesh->ndim; m++)
            if (dst.placement[m].kind == DTENSOR_PARTIAL)
                dst.placement[m].kind = DTENSOR_REPLICATE;
        cases++;
        for (int64_t g = 0; g < dtn_numel(ndim, shape); g++)
            whole[g] = VALUE_UNIT * (1 + draw(1000));
        if (!between_meshes(&src, &dst))
            complain(&src, &dst, "between two meshes");
    }
    claim("between meshes of other shapes, orders and ranks");
}

/* ------------------------------------------------- specs made by hand --- */

static void test_by_hand(void)
{
    static const int sizes[] = { 2 };
    int64_t lengths[] = { 4, 1 };
    struct dtensor_error err = { 0 };
    struct dtensor_spec spec = { .dtype = DTENSOR_F32, .ndim = 2,
                                 .shape = { 3, 5 } };
    struct dtensor_spec bad;

    ok(dtensor_spec_normalize(&spec, &err) == DTENSOR_EINVAL,
       "a spec without a mesh: %s", err.text);
    if (dtensor_mesh_create(&ctx, 1, sizes, NULL, NULL, &spec.mesh, NULL) != 0)
        abort();
    spec.placement[0] = (struct dtensor_placement){
        .kind = DTENSOR_SHARD, .dim = -1, .sizes = lengths
    };
    ok(dtensor_spec_check(&spec, NULL) == DTENSOR_EINVAL,
       "dimension -1 is not what queries expect");
    bad = spec;
    bad.placement[0].dim = -3;
    ok(dtensor_spec_normalize(&bad, &err) == DTENSOR_EINVAL &&
       bad.placement[0].dim == -3 && bad.placement[0].sizes == lengths,
       "dimension -3 of 2 is refused, the spec as it was: %s", err.text);
    ok(dtensor_spec_normalize(&spec, &err) == 0 &&
       spec.placement[0].dim == 1, "dimension -1 of 2 is dimension 1");
    lengths[0] = 0;
    ok(spec.placement[0].sizes[0] == 4 && spec.placement[0].sizes[1] == 1,
       "the lengths are kept, the caller's may go");
}

int main(void)
{
    start(MAX_RANKS, 0);
    note("seed %u", seed);
    test_any_placement();
    test_every_cut();
    test_between_meshes();
    test_by_hand();
    dtn_slots_destroy(&ctx);
    return done();
}

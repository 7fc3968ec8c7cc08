/* random_stream.c - random words on stdout, those of many ranks interleaved
 *
 * `random_stream TRACKER` plays every rank of the layouts below, operation
 * after operation, and writes element i of each part in turn: what parts have
 * in common would show in a battery of tests.  Parts are uneven, empty,
 * scattered and smaller than a block; replicas are written once.  The layouts
 * come round again as u64, which takes two words for each element.  It ends
 * when nobody reads.
 */
#include "base/compiler.h"
#include "job/ctx.h"
#include "layout/layout.h"
#include "mesh/mesh.h"
#include "random/dist.h"
#include "random/fill.h"
#include "random/generator.h"
#include "random/rows.h"
#include "random/tracker.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 16, MOST = 4 * 8191 };

static const struct layout {
    int mesh_ndim, mesh_size[2];
    int ndim;
    int64_t shape[2];
    const char *placements;
    int times;                    /* operations, one after another            */
} layouts[] = {
    { 1, { 4 }, 2, { 4, 8191 }, "S(0)", 1 },
    { 2, { 2, 3 }, 2, { 7, 1001 }, "S(0),S(1)", 4 },
    { 2, { 2, 2 }, 2, { 1022, 9 }, "S(0),S(0)", 4 },
    { 1, { 4 }, 2, { 1027, 5 }, "C(0,3)", 4 },
    { 2, { 2, 2 }, 2, { 517, 3 }, "SS(0,2),S(0)", 8 },
    { 1, { 3 }, 2, { 1000, 3 }, "S(0:1,900,99)", 8 },
    { 2, { 2, 4 }, 2, { 64, 6 }, "R,S(1)", 8 },
    { 1, { 8 }, 1, { 8 }, "S(0)", 500 },
    { 2, { 4, 4 }, 2, { 5, 3 }, "S(1),S(0)", 500 },
};

static void play_rank(const struct dtensor_generator *gen,
                      const struct dtn_dist *dist,
                      const struct dtensor_spec *spec, int rank,
                      struct dtn_stream_part *draw, unsigned char *part)
{
    const size_t bytes = dtensor_dtype_size(dist->dtype);
    struct dtn_random_stream stream;
    struct dtn_rows rows;
    struct dtn_row row;

    if (dtn_stream_part_of(gen, dist, spec, rank, draw, NULL) != 0)
        exit(1);
    stream =
        dtn_random_stream_of(&gen->rule, draw->seed, draw->offset, draw->numel);
    if (!draw->global) {
        dtn_fill(&stream, dist, 0, draw->numel, part);
        return;
    }
    dtn_rows_init(&rows, spec, rank);
    while (dtn_rows_next(&rows, &row))
        dtn_fill(&stream, dist, row.global, row.count,
                 part + (size_t)row.local * bytes);
}

/* The first of those that hold the same? */
static bool is_first(const struct dtensor_spec *spec, int rank)
{
    int coord[DTENSOR_MAX_DIMS];

    dtn_mesh_coord_of(spec->mesh, rank, coord);
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (spec->placement[m].kind == DTENSOR_REPLICATE && coord[m] > 0)
            return false;
    return true;
}

/* One operation; false when nobody reads. */
static bool play(struct dtensor_generator *gen, const struct dtn_dist *dist,
                 const struct dtensor_spec *spec)
{
    static unsigned char part[RANKS][8 * MOST], woven[8 * MOST];
    const size_t bytes = dtensor_dtype_size(dist->dtype);
    int64_t count[RANKS], longest = 0;
    struct dtn_stream_part draw = { 0 };
    unsigned char *end = woven;

    for (int r = 0; r < spec->mesh->group.n; r++) {
        play_rank(gen, dist, spec, r, &draw, part[r]);
        count[r] = is_first(spec, r) ? dtn_local_numel(spec, r) : 0;
        longest = count[r] > longest ? count[r] : longest;
    }
    for (int64_t i = 0; i < longest; i++)
        for (int r = 0; r < spec->mesh->group.n; r++)
            if (i < count[r]) {
                memcpy(end, part[r] + (size_t)i * bytes, bytes);
                end += bytes;
            }
    gen->offset = draw.after;
    return fwrite(woven, 1, (size_t)(end - woven), stdout) ==
           (size_t)(end - woven);
}

/* The context is a rank's on its own; lengths that a text lists live in it. */
static struct dtensor_spec spec_of(struct dtensor_ctx *ctx,
                                   const struct layout *layout,
                                   struct dtensor_mesh *mesh)
{
    struct dtensor_spec spec = { .mesh = mesh, .ndim = layout->ndim };

    *mesh = (struct dtensor_mesh){ .ctx = ctx, .ndim = layout->mesh_ndim,
                                   .group = { .n = 1 } };
    for (int m = 0; m < mesh->ndim; m++) {
        mesh->size[m] = layout->mesh_size[m];
        mesh->group.n *= mesh->size[m];
    }
    memcpy(spec.shape, layout->shape, sizeof layout->shape);
    if (dtensor_placements_parse(mesh, layout->placements, spec.ndim,
                                 spec.placement, NULL) != 0)
        exit(1);
    return spec;
}

static void play_all(struct dtensor_generator *gen, struct dtensor_spec spec[])
{
    struct dtn_dist dist;

    for (int round = 0;; round++)
        for (size_t i = 0; i < DTN_COUNT(layouts); i++) {
            spec[i].dtype = round % 2 ? DTENSOR_U64 : DTENSOR_U32;
            dtn_dist_bits(&dist, spec[i].dtype, NULL);
            for (int k = 0; k < layouts[i].times; k++)
                if (!play(gen, &dist, &spec[i]))
                    return;
        }
}

int main(int argc, char **argv)
{
    static const char *const words[] = {
        [DTENSOR_TRACKER_GLOBAL] = "global",
        [DTENSOR_TRACKER_OFFSET] = "offset",
        [DTENSOR_TRACKER_MEGATRON] = "megatron",
        [DTENSOR_TRACKER_LOCAL] = "local"
    };
    static struct dtensor_mesh mesh[DTN_COUNT(layouts)];
    static struct dtensor_spec spec[DTN_COUNT(layouts)];
    struct dtensor_generator gen = { .seed = 20251120 };
    struct dtensor_ctx *ctx = NULL;

    for (size_t i = 0; i < DTN_COUNT(words); i++)
        if (argc > 1 && strcmp(argv[1], words[i]) == 0)
            gen.rule.tracker = (enum dtensor_tracker)i;
    if (dtensor_init(NULL, &ctx, NULL) != 0)
        return 1;
    for (size_t i = 0; i < DTN_COUNT(layouts); i++)
        spec[i] = spec_of(ctx, &layouts[i], &mesh[i]);
    play_all(&gen, spec);
    dtensor_fini(ctx);
    return 0;
}

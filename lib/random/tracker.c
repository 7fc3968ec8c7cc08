/* tracker.c - the place in the stream of a rank's part, and of the next one
 *
 * offset    Each part is filled like a tensor of its own.  Part k begins `step`
 *           after part k - 1; step is the most that the largest part may use.
 *           f32[8,16] as S(0),S(1) on 2 x 2 has parts of 32: they begin 0, 32,
 *           64, 96 after the generator's offset, and all ranks then advance it
 *           by 128.  PyTorch's rule, with compat, has no step: part k begins at
 *           ceil4(k * l), where l is the product of the lengths of the first
 *           shards, and only the last cut of a dimension counts.  f32[9,4] as
 *           SS(0,4) on 2: rows 0 1, 3 4, 6 7 are the first shard, so rank 1
 *           begins at 24.
 * global    The index of the element in the whole is its place.
 * megatron  Parts along the named mesh dimensions have their own streams, with
 *           seed + 2718 + coordinate; all others share the stream of the seed.
 * local     Each rank fills its part as if there were no other ranks.
 */
#include "random/tracker.h"
#include "base/error.h"
#include "layout/layout.h"
#include "mesh/mesh.h"
#include "random/dist.h"
#include "random/fill.h"
#include "random/generator.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

enum { MEGATRON_SEED = 2718 };

static bool shards(const struct dtensor_placement *p)
{
    return p->kind != DTENSOR_REPLICATE && p->kind != DTENSOR_PARTIAL;
}

static int64_t ceil4(int64_t x)
{
    return x > INT64_MAX - 3 ? INT64_MAX : (x + 3) / 4 * 4;
}

/* A product that saturates at INT64_MAX. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;

    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* --------------------------------------------------------------- offset --- */

/* The index of this position's part among all, and the number of parts.  Parts
 * are counted row-major over the tensor's dimensions, and from left to right in
 * a dimension that is sharded twice.
 */
static int64_t part_number(const struct dtensor_spec *spec, const int coord[],
                           int64_t *totalp)
{
    int64_t number = 0;

    *totalp = 1;
    for (int d = 0; d < spec->ndim; d++)
        for (int m = 0; m < spec->mesh->ndim; m++)
            if (shards(&spec->placement[m]) && spec->placement[m].dim == d) {
                number = number * spec->mesh->size[m] + coord[m];
                *totalp *= spec->mesh->size[m];
            }
    return number;
}

/* The l of the opening comment.  PyTorch has no user-chosen lengths, so such a
 * placement counts as S.
 */
static int64_t pytorch_part(const struct dtensor_spec *spec)
{
    int64_t first[DTENSOR_MAX_DIMS];
    struct dtn_shard shard;

    memcpy(first, spec->shape, sizeof first);
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (shards(&spec->placement[m])) {
            struct dtensor_placement p = spec->placement[m];

            p.sizes = NULL;
            dtn_shard_of(&p, spec->shape[p.dim], spec->mesh->size[m], 0,
                         &shard);
            first[p.dim] = dtn_shard_count(&shard);
        }
    return dtn_numel(spec->ndim, first);
}

void dtn_stream_offsets(const struct dtensor_random_rule *rule,
                        const struct dtn_dist *dist,
                        const struct dtensor_spec *spec, int index,
                        int64_t *startp, int64_t *endp)
{
    int coord[DTENSOR_MAX_DIMS] = { 0 };
    int64_t total, number, most, need, step;
    int64_t end = ceil4(dtn_numel(spec->ndim, spec->shape));

    if (index >= 0)
        dtn_mesh_coord_of(spec->mesh, index, coord);
    number = part_number(spec, coord, &total);
    if (rule->pytorch) {
        *startp = ceil4(times(number, pytorch_part(spec)));
        *endp = end;
        return;
    }
    most = ceil4(dtn_max_numel(spec));
    need = dtn_fill_need(rule, dist, dtn_max_numel(spec));
    step = most > need ? most : need;
    *startp = times(number, step);
    *endp = times(total, step);
    if (*endp < end)
        *endp = end;
}

/* ------------------------------------------------------------- megatron --- */

static bool list_has(const char *list, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = list; n > 0 && (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ',') && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

static uint64_t megatron_seed(const struct dtensor_generator *gen,
                              const struct dtensor_spec *spec, int index)
{
    int coord[DTENSOR_MAX_DIMS];
    uint64_t number = 0;
    bool apart = false;

    if (index < 0)
        return gen->seed;
    dtn_mesh_coord_of(spec->mesh, index, coord);
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (list_has(gen->rule.parallel_dims, spec->mesh->dim_name[m])) {
            number = number * (uint64_t)spec->mesh->size[m] +
                     (uint64_t)coord[m];
            apart |= shards(&spec->placement[m]);
        }
    return apart ? gen->seed + MEGATRON_SEED + number : gen->seed;
}

/* ----------------------------------------------------------------- draw --- */

/* The part that begins at `start`; the operation ends at `end`, both from the
 * generator's offset on.
 */
static int draw_make(const struct dtensor_generator *gen, uint64_t seed,
                     int64_t start, int64_t end, struct dtn_stream_part *draw,
                     struct dtensor_error *err)
{
    int64_t from, after;

    if (__builtin_add_overflow(gen->offset, start, &from) ||
        __builtin_add_overflow(gen->offset, end, &after) ||
        after > INT64_MAX - 3)
        return dtn_fail(err, DTENSOR_EINVAL, "random: offset %lld of the "
                        "generator has no room for %lld more numbers below "
                        "2^63 (set a new seed)", (long long)gen->offset,
                        (long long)end);
    draw->seed = seed;
    draw->offset = from;
    draw->after = after;
    return 0;
}

int dtn_stream_part_of(const struct dtensor_generator *gen,
                       const struct dtn_dist *dist,
                       const struct dtensor_spec *spec, int index,
                       struct dtn_stream_part *draw, struct dtensor_error *err)
{
    const struct dtensor_random_rule *rule = &gen->rule;
    const int64_t numel = dtn_numel(spec->ndim, spec->shape);
    int64_t start = 0, end = 0;
    uint64_t seed = gen->seed;

    *draw = (struct dtn_stream_part){
        .numel = index >= 0 ? dtn_local_numel(spec, index) : 0
    };
    switch (rule->tracker) {
    case DTENSOR_TRACKER_GLOBAL:
        draw->global = true;
        draw->numel = numel;
        end = dtn_fill_need(rule, dist, numel);
        break;
    case DTENSOR_TRACKER_OFFSET:
        dtn_stream_offsets(rule, dist, spec, index, &start, &end);
        break;
    case DTENSOR_TRACKER_MEGATRON:
        seed = megatron_seed(gen, spec, index);
        end = dtn_fill_need(rule, dist, dtn_max_numel(spec));
        break;
    case DTENSOR_TRACKER_LOCAL:
        end = dtn_fill_need(rule, dist, draw->numel);
        break;
    }
    if (rule->pytorch && index < 0)
        end = 0;                           /* skipped outside the mesh       */
    return draw_make(gen, seed, start, end, draw, err);
}

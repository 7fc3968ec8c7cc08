/* view.c - the placements of views
 *
 * A view moves nothing: the output has to lie so that each rank's part has the
 * elements, in the order, that its part of the input has.  8x16 in S(0) over 4
 * ranks as 128 is S(0); in S(1) it is SS(0,8), a chunk of each of 8 pieces; and
 * back again.  Mesh dimensions are taken from left to right, and the sizes that
 * are left for the next are kept for both sides.
 *
 * Where no placement describes the parts the view is refused, and the words
 * name a redistribute that helps.  reshape gathers there instead; so do copies
 * of one element (expand, repeat), and a mesh dimension that shards a later
 * dimension of several that are merged and split again, as in PyTorch.
 */
#include "op/view.h"
#include "op/view_map.h"
#include "op/words.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct dtensor_placement whole = { .kind = DTENSOR_REPLICATE };

/* While mesh dimensions are taken, from left to right. */
struct walk {
    const struct dtn_view_map *map;        /* of the view                     */
    int64_t in[DTENSOR_MAX_DIMS];          /* what is left of each dimension  */
    int64_t out[DTENSOR_MAX_DIMS];         /* on the rank that has most       */
    bool varies[DTENSOR_MAX_DIMS];         /* of the input: not on all ranks  */
};

/* What becomes of a placement. */
enum fate { STAYS, GATHERED, REFUSED };

static const struct dtn_view_group *group_of(const struct dtn_view_map *map,
                                             int dim)
{
    const struct dtn_view_group *group = map->group;

    while (dim < group->in || dim >= group->in + group->nin)
        group++;
    return group;
}

static int64_t product(const int64_t size[], int n)
{
    int64_t all = 1;

    for (int i = 0; i < n; i++)
        all *= size[i];
    return all;
}

/* A dimension that is sharded n times in pieces of `size` with `rest` elements
 * in each step: do all ranks get whole steps by the chunk rule of elements?
 */
static bool cut_aligned(int64_t size, int64_t rest, int n)
{
    return rest == 1 || size % n == 0;
}

/* The output dimension of a group in which `pieces` pieces, of the elements of
 * the group in order, are each sharded in n; *blockp: into how many pieces that
 * dimension is sharded before.  -1: none.
 */
static int out_dim(const struct walk *w, const struct dtn_view_group *g,
                   int64_t pieces, int n, int64_t *blockp)
{
    int64_t before = 1;

    for (int k = 0; k < g->nout && pieces % before == 0; k++) {
        const int64_t size = w->out[g->out + k], block = pieces / before;
        const int64_t rest = product(&w->out[g->out + k + 1], g->nout - k - 1);

        if (size % block == 0 && cut_aligned(size / block, rest, n)) {
            *blockp = block;
            return g->out + k;
        }
        before *= size;
    }
    return -1;
}

/* What is left of `size` elements, as `blocks` pieces, each sharded in n. */
static int64_t left_of(int64_t size, int64_t blocks, int n)
{
    return blocks * ((size / blocks + n - 1) / n);
}

/* S or SS of a dimension that is merged with others or split. */
static enum fate walk_merged(struct walk *w, const struct dtn_view_group *g,
                             const struct dtensor_placement *p, int n,
                             struct dtensor_placement *to)
{
    const int64_t block = p->kind == DTENSOR_STRIDED ? p->block : 1;
    const int64_t pieces = block * product(&w->in[g->in], p->dim - g->in);
    const int64_t rest = product(&w->in[p->dim + 1],
                                 g->in + g->nin - p->dim - 1);
    bool known = (p->kind == DTENSOR_SHARD && !p->sizes) ||
                 (p->kind == DTENSOR_STRIDED && w->in[p->dim] % block == 0 &&
                  !w->varies[p->dim]);
    int64_t blocks;
    int dim = -1;

    for (int d = g->in; d < p->dim; d++)
        known = known && !w->varies[d];
    if (known)
        dim = cut_aligned(w->in[p->dim] / block, rest, n)
            ? out_dim(w, g, pieces, n, &blocks) : -1;
    if (dim < 0)
        return p->kind == DTENSOR_SHARD && p->dim > g->in && g->nout > 1 &&
               w->map->shape[g->out] % n == 0 ? GATHERED : REFUSED;
    w->varies[p->dim] |= w->in[p->dim] / block % n != 0;
    w->in[p->dim] = left_of(w->in[p->dim], block, n);
    w->out[dim] = left_of(w->out[dim], blocks, n);
    *to = (struct dtensor_placement){
        .kind = blocks > 1 ? DTENSOR_STRIDED : DTENSOR_SHARD, .dim = dim,
        .block = blocks > 1 ? blocks : 0 };
    return STAYS;
}

/* What a placement of the input, over n ranks, becomes in the output. */
static enum fate walk_step(struct walk *w, const struct dtensor_placement *p,
                           int n, struct dtensor_placement *to)
{
    const struct dtn_view_group *g;

    *to = *p;
    if (dtn_placement_class(p) != DTENSOR_SHARD)
        return STAYS;
    g = group_of(w->map, p->dim);
    if (g->kind == DTN_VIEW_SPREAD)
        return GATHERED;
    if (g->kind == DTN_VIEW_DROP)
        return REFUSED;
    if (g->nin > 1 || g->nout > 1)
        return walk_merged(w, g, p, n, to);
    to->dim = g->out;
    return STAYS;
}

/* All mesh dimensions; -1, or the first that is refused.  `gathers`: what
 * cannot stay is gathered instead.
 */
static int walk(const struct dtn_view_map *map, bool gathers,
                struct dtensor_spec *want, struct dtensor_spec *out)
{
    struct walk w = { .map = map };

    memcpy(w.in, want->shape, sizeof w.in);
    memcpy(w.out, map->shape, sizeof w.out);
    for (int m = 0; m < want->mesh->ndim; m++) {
        struct dtensor_placement *p = &want->placement[m];
        const enum fate fate = walk_step(&w, p, want->mesh->size[m],
                                         &out->placement[m]);

        if (fate == REFUSED && !gathers)
            return m;
        if (fate != STAYS)
            *p = out->placement[m] = whole;
    }
    return -1;
}

/* Placements with which the view moves nothing: with another shard along mesh
 * dimension m, or else whole along it, and where that is not enough.
 */
static void advice(const struct dtensor_spec *in,
                   const struct dtn_view_map *map, int m, char *buf,
                   size_t size)
{
    struct dtensor_spec other = *in, out = *in, like;

    for (int d = in->ndim - 1; d >= -1; d--) {
        other.placement[m] = (struct dtensor_placement){
            .kind = d < 0 ? DTENSOR_REPLICATE : DTENSOR_SHARD,
            .dim = d < 0 ? 0 : d };
        like = other;
        if (d >= 0 && in->shape[d] >= in->mesh->size[m] &&
            walk(map, false, &like, &out) < 0 &&
            like.placement[m].kind != DTENSOR_REPLICATE)
            break;
    }
    like = other;
    while ((m = walk(map, false, &like, &out)) >= 0) {
        other.placement[m] = whole;
        like = other;
    }
    dtensor_placements_format(in->mesh, other.placement, buf, size);
}

static int refused(const struct dtensor_op_call *call,
                   const struct dtn_view_map *map, int m,
                   struct dtensor_error *err)
{
    const struct dtensor_spec *in = &call->in[0];
    const int dim = in->placement[m].dim;
    const struct dtn_view_group *g = group_of(map, dim);
    char shape[170], to[200];

    advice(in, map, m, to, sizeof to);
    if (g->kind == DTN_VIEW_DROP)
        return dtn_op_fail(call, err, "dimension %d is sharded along mesh "
                           "dimension %d, and goes away (redistribute to %s "
                           "before)", dim, m, to);
    return dtn_op_fail(call, err, "the parts of dimension %d, %" PRId64
                       " over %d ranks, are not parts of %s (redistribute to "
                       "%s before)", dim, in->shape[dim], in->mesh->size[m],
                       dtn_shape_words(map->ndim, map->shape, shape,
                                       sizeof shape), to);
}

int dtn_view_infer(const struct dtensor_op_call *call,
                   struct dtensor_spec *want, struct dtensor_spec *out,
                   struct dtensor_error *err)
{
    struct dtensor_spec from = call->in[0], to = call->in[0];
    struct dtn_view_map map;
    int rc = dtn_view_map(call, &map, err), m;

    if (rc != 0)
        return rc;
    to.ndim = map.ndim;
    memcpy(to.shape, map.shape, sizeof to.shape);
    m = walk(&map, strcmp(call->op, "reshape") == 0, &from, &to);
    if (m >= 0)
        return refused(call, &map, m, err);
    *want = from;
    *out = to;
    return 0;
}

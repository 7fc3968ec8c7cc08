/* pieces.c - which boxes go from which rank to which
 *
 * Every rank can compute the part of every rank without communication.
 * Position s sends to position r what s's part in the source spec and r's part
 * in the destination spec have in common.  Example: a 4 x 6 matrix on two ranks
 * from S(0) to S(1).  Rank 0 has rows 0-1 and will have columns 0-2.  So it
 * keeps the 2 x 3 corner and gets the 2 x 3 box of rows 2-3 from rank 1: 6 of
 * its 12 elements, each once, directly to its place.
 *
 * To find its peers, a rank cuts its own part with the placements of the other
 * side, mesh dimension by mesh dimension, and continues only where something is
 * left.  A division finds the chunks that can overlap its part.  Example: 1024
 * rows on 16 x 8 x 8 ranks from S(0),S(1),R to R,S(1),S(0).  A rank that will
 * have 128 rows looks at the 2 chunks of 64 rows that make them, not at 1024
 * ranks.
 */
#include "redist/pieces.h"
#include "base/array.h"
#include "base/box.h"
#include "base/error.h"
#include "layout/layout.h"
#include "layout/placement.h"
#include "layout/runs.h"
#include "mesh/mesh.h"
#include "sched/exchange.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ lists */

void dtn_pieces_fini(struct dtn_pieces *pieces)
{
    free(pieces->list);
    *pieces = (struct dtn_pieces){ 0 };
}

static int pieces_add(struct dtn_pieces *pieces, const struct dtn_piece *piece,
                      struct dtensor_error *err)
{
    if (pieces->n == INT32_MAX ||
        !dtn_array_reserve(&pieces->list, &pieces->capacity, pieces->n + 1,
                           sizeof *piece))
        return dtn_fail_nomem(err, "redistribute", sizeof *piece);
    pieces->list[pieces->n++] = *piece;
    return 0;
}

/* ---------------------------------------------------------- who with whom */

#define ANY (-1)

/* On one mesh: does mesh dimension m need only data of the same coordinate? */
static bool pieces_own(const struct dtensor_spec *src,
                       const struct dtensor_spec *dst, int m)
{
    return dtn_placement_is_local(&src->placement[m], &dst->placement[m]);
}

/* For each dimension of the source mesh, the coordinate that a receiver takes
 * from, or ANY.  If there are replicas on another mesh, a receiver that is one
 * of them takes from itself; the others take from them in turn.
 */
static void pieces_want(const struct dtensor_spec *src,
                        const struct dtensor_spec *dst, int receiver,
                        int want[])
{
    const bool same = src->mesh == dst->mesh;
    int self = same ? receiver
             : dtensor_mesh_index(src->mesh,
                                  dtensor_mesh_rank(dst->mesh, receiver));
    int coord[DTENSOR_MAX_DIMS], turn = receiver;

    if (self >= 0)
        dtn_mesh_coord_of(src->mesh, self, coord);
    for (int m = src->mesh->ndim - 1; m >= 0; m--) {
        want[m] = ANY;
        if (same ? !pieces_own(src, dst, m)
                 : src->placement[m].kind != DTENSOR_REPLICATE)
            continue;
        want[m] = self >= 0 ? coord[m] : turn % src->mesh->size[m];
        turn /= src->mesh->size[m];
    }
}

/* ----------------------------------------------------------------- search */

/* A walk over the coordinates of the other side's mesh.  For each tensor
 * dimension, `common` relates what is left after the other side's cuts so far
 * (list 0) to this rank's part (list 1).
 */
struct search {
    const struct dtensor_spec *src;
    const struct dtensor_spec *dst;
    const struct dtensor_spec *theirs;         /* src or dst                  */
    int mine;                                  /* own position in the other   */
    int want[DTENSOR_MAX_DIMS];                /* by the rule: one, or ANY    */
    int only[DTENSOR_MAX_DIMS];                /* of those just one, or ANY   */
    int coord[DTENSOR_MAX_DIMS];
    const struct dtn_runs *common[DTENSOR_MAX_DIMS];
    int64_t size[DTENSOR_MAX_DIMS];            /* of list 0                   */
    struct dtn_pieces *pieces;
    struct dtensor_error *err;
    int (*found)(struct search *s);
};

static int search_dim(struct search *s, int m);

static int search_index(const struct search *s)
{
    int index = 0;

    for (int m = 0; m < s->theirs->mesh->ndim; m++)
        index = index * s->theirs->mesh->size[m] + s->coord[m];
    return index;
}

/* The coordinates whose shard can overlap anything in `common`; a division
 * finds the chunks.
 */
static void search_range(const struct search *s, int m, int *first, int *last)
{
    const struct dtensor_placement *p = &s->theirs->placement[m];
    const int n = s->theirs->mesh->size[m];
    const int64_t N = s->size[p->dim], chunk = N / n + (N % n != 0);
    int64_t start, end;

    *first = 0;
    *last = n - 1;
    if (s->want[m] != ANY) {
        *first = *last = s->want[m];
    } else if (p->kind == DTENSOR_SHARD && !p->sizes) {
        dtn_runs_span(s->common[p->dim], &start, &end);
        *first = (int)(start / chunk);
        *last = (int)((end - 1) / chunk);
    }
}

/* Continue with coordinate c of a mesh dimension that cuts. */
static int search_coordinate(struct search *s, int m, int c)
{
    const struct dtensor_placement *p = &s->theirs->placement[m];
    const struct dtn_runs *common = s->common[p->dim];
    const int64_t size = s->size[p->dim];
    struct dtn_runs left;
    struct dtn_shard shard;
    int rc = 0;

    dtn_shard_of(p, size, s->theirs->mesh->size[m], c, &shard);
    dtn_runs_init(&left);
    dtn_runs_shard(common, &shard, &left);
    if (left.failed)
        rc = dtn_fail_nomem(s->err, "redistribute",
                            (size_t)left.n * sizeof left.list[0]);
    if (rc == 0 && left.n > 0) {
        s->common[p->dim] = &left;
        s->size[p->dim] = dtn_shard_count(&shard);
        s->coord[m] = c;
        rc = search_dim(s, m + 1);
        s->common[p->dim] = common;
        s->size[p->dim] = size;
    }
    dtn_runs_fini(&left);
    return rc;
}

static int search_dim(struct search *s, int m)
{
    const struct dtensor_placement *p = &s->theirs->placement[m];
    int first, last, rc = 0;
    bool shards;

    if (m == s->theirs->mesh->ndim)
        return s->found(s);
    shards = dtn_placement_class(p) == DTENSOR_SHARD;
    first = 0;
    last = s->theirs->mesh->size[m] - 1;
    if (shards)
        search_range(s, m, &first, &last);
    else if (s->want[m] != ANY)
        first = last = s->want[m];
    for (int c = s->only[m] == ANY ? first : s->only[m];
         rc == 0 && c >= first && c <= last; c++) {
        s->coord[m] = c;
        rc = shards ? search_coordinate(s, m, c) : search_dim(s, m + 1);
        if (s->only[m] != ANY)
            break;
    }
    return rc;
}

/* Search with the part of position `mine` of `spec`. */
static int search_run(struct search *s, const struct dtensor_spec *spec)
{
    struct dtn_runs own[DTENSOR_MAX_DIMS];
    struct dtn_part part;
    bool empty = false;
    int rc = 0;

    dtn_part_init(&part, spec, s->mine);
    for (int d = 0; d < spec->ndim; d++) {
        dtn_part_runs(&part, d, &own[d]);
        dtn_runs_flip(&own[d]);
        s->common[d] = &own[d];
        s->size[d] = spec->shape[d];
        empty = empty || part.shape[d] == 0;
        if (own[d].failed)
            rc = dtn_fail_nomem(s->err, "redistribute",
                                (size_t)own[d].n * sizeof own[d].list[0]);
    }
    if (rc == 0 && !empty)
        rc = search_dim(s, 0);
    for (int d = 0; d < spec->ndim; d++)
        dtn_runs_fini(&own[d]);
    return rc;
}

/* ------------------------------------------------------------------ boxes */

/* Append one tensor dimension to the box: the contiguous elements of a run, and
 * before them its repetitions.
 */
static void box_append(struct dtn_box *box, const struct dtn_run *run,
                       int64_t src_stride, int64_t dst_stride)
{
    int d = box->ndim;

    if (run->count > 1) {
        box->size[d] = run->count;
        box->src_stride[d] = run->step[0] * src_stride;
        box->dst_stride[d++] = run->step[1] * dst_stride;
    }
    box->size[d] = run->len;
    box->src_stride[d] = src_stride;
    box->dst_stride[d++] = dst_stride;
    box->ndim = d;
}

/* The box of entry k[d] of `common` along each dimension d. */
static void search_box(const struct search *s, const int k[],
                       const int64_t src_stride[], const int64_t dst_stride[],
                       struct dtn_piece *piece)
{
    piece->box = (struct dtn_box){ 0 };
    piece->src_offset = piece->dst_offset = 0;
    for (int d = 0; d < s->src->ndim; d++) {
        const struct dtn_run *run = &s->common[d]->list[k[d]];

        box_append(&piece->box, run, src_stride[d], dst_stride[d]);
        piece->src_offset += (size_t)(run->at[0] * src_stride[d]);
        piece->dst_offset += (size_t)(run->at[1] * dst_stride[d]);
    }
    dtn_box_coalesce(&piece->box);
}

/* The next combination of entries, the last dimension fastest; false after the
 * last one.
 */
static bool search_next(const struct search *s, int k[])
{
    for (int d = s->src->ndim - 1; d >= 0; d--) {
        if (++k[d] < s->common[d]->n)
            return true;
        k[d] = 0;
    }
    return false;
}

/* A source was found: add all boxes that it sends. */
static int search_source(struct search *s)
{
    int64_t src_stride[DTENSOR_MAX_DIMS], dst_stride[DTENSOR_MAX_DIMS];
    struct dtn_piece piece = { .receiver = s->mine, .source = search_index(s) };
    struct dtn_part part;
    int k[DTENSOR_MAX_DIMS] = { 0 }, rc;

    dtn_part_init(&part, s->dst, s->mine);
    dtn_strides(s->src->ndim, s->size, src_stride);
    dtn_strides(s->dst->ndim, part.shape, dst_stride);
    for (int m = 0; m < s->src->mesh->ndim; m++)
        if (s->src->placement[m].kind == DTENSOR_PARTIAL && s->want[m] == ANY)
            piece.accumulate = piece.accumulate || s->coord[m] > 0;
    do {
        search_box(s, k, src_stride, dst_stride, &piece);
        rc = pieces_add(s->pieces, &piece, s->err);
    } while (rc == 0 && search_next(s, k));
    return rc;
}

/* ------------------------------------------------------------------ peers */

int dtn_pieces_between(const struct dtensor_spec *src,
                       const struct dtensor_spec *dst, int source,
                       int receiver, struct dtn_pieces *pieces,
                       struct dtensor_error *err)
{
    struct search s = {
        .src = src, .dst = dst, .theirs = src, .mine = receiver,
        .pieces = pieces, .err = err, .found = search_source
    };

    pieces_want(src, dst, receiver, s.want);
    dtn_mesh_coord_of(src->mesh, source, s.only);
    return search_run(&s, dst);
}

int dtn_pieces_received(const struct dtensor_spec *src,
                        const struct dtensor_spec *dst, int receiver,
                        struct dtn_pieces *pieces, struct dtensor_error *err)
{
    struct search s = {
        .src = src, .dst = dst, .theirs = src, .mine = receiver,
        .pieces = pieces, .err = err, .found = search_source
    };

    pieces_want(src, dst, receiver, s.want);
    for (int m = 0; m < src->mesh->ndim; m++)
        s.only[m] = ANY;
    return search_run(&s, dst);
}

/* A receiver was found: compute its pieces in the same way as the receiver
 * does.
 */
static int search_receiver(struct search *s)
{
    return dtn_pieces_between(s->src, s->dst, s->mine, search_index(s),
                              s->pieces, s->err);
}

int dtn_pieces_sent(const struct dtensor_spec *src,
                    const struct dtensor_spec *dst, int source,
                    struct dtn_pieces *pieces, struct dtensor_error *err)
{
    struct search s = {
        .src = src, .dst = dst, .theirs = dst, .mine = source,
        .pieces = pieces, .err = err, .found = search_receiver
    };
    int coord[DTENSOR_MAX_DIMS];

    dtn_mesh_coord_of(src->mesh, source, coord);
    for (int m = 0; m < dst->mesh->ndim; m++) {
        s.only[m] = ANY;
        s.want[m] = src->mesh == dst->mesh && pieces_own(src, dst, m)
                  ? coord[m] : ANY;
    }
    return search_run(&s, src);
}

/* pieces.c - which boxes go from whom to whom between two specs
 *
 * Every rank can compute every rank's box, so nobody needs to be asked: what
 * position s sends position r is the intersection of s's box in the source
 * spec with r's box in the destination.  A 4 x 6 matrix on two ranks from S(0)
 * to S(1): rank 0 holds rows 0-1 and is to hold columns 0-2, so it keeps the
 * 2 x 3 corner and gets the 2 x 3 box of rows 2-3 from rank 1: 6 of the 12
 * elements it ends with, each once, straight to its place.
 */
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

/* How one mesh dimension is crossed. */
enum piece_rule {
    PIECE_OWN,                         /* from the own coordinate             */
    PIECE_MEET,                        /* from all whose boxes meet           */
    PIECE_FOLD                         /* from all, as terms                  */
};

static enum piece_rule piece_rule(const struct dtensor_spec *src,
                                  const struct dtensor_spec *dst, int m)
{
    if (dst->placement[m].kind == DTENSOR_PARTIAL)
        return PIECE_OWN;
    switch (src->placement[m].kind) {
    case DTENSOR_SHARD:     return PIECE_MEET;
    case DTENSOR_PARTIAL:   return PIECE_FOLD;
    case DTENSOR_REPLICATE: break;
    }
    return PIECE_OWN;
}

/* Write the intersection of the two boxes; false when it is empty. */
static bool piece_intersect(const struct dtensor_spec *src,
                            const struct dtensor_spec *dst,
                            struct dtn_piece *piece)
{
    int64_t src_shape[DTENSOR_MAX_DIMS], src_offset[DTENSOR_MAX_DIMS];
    int64_t dst_shape[DTENSOR_MAX_DIMS], dst_offset[DTENSOR_MAX_DIMS];
    struct dtn_box *box = &piece->box;

    dtn_layout(src, piece->source, src_shape, src_offset);
    dtn_layout(dst, piece->receiver, dst_shape, dst_offset);
    box->ndim = src->ndim;
    dtn_strides(src->ndim, src_shape, box->src_stride);
    dtn_strides(dst->ndim, dst_shape, box->dst_stride);
    piece->src_offset = piece->dst_offset = 0;
    for (int d = 0; d < src->ndim; d++) {
        int64_t src_end = src_offset[d] + src_shape[d];
        int64_t dst_end = dst_offset[d] + dst_shape[d];
        int64_t start = src_offset[d] > dst_offset[d] ? src_offset[d]
                                                      : dst_offset[d];
        int64_t end = src_end < dst_end ? src_end : dst_end;

        if (start >= end)
            return false;
        box->size[d] = end - start;
        piece->src_offset += (size_t)((start - src_offset[d]) *
                                      box->src_stride[d]);
        piece->dst_offset += (size_t)((start - dst_offset[d]) *
                                      box->dst_stride[d]);
    }
    dtn_box_coalesce(box);
    return true;
}

bool dtn_piece_between(const struct dtensor_spec *src,
                       const struct dtensor_spec *dst, int source,
                       int receiver, struct dtn_piece *piece)
{
    int from[DTENSOR_MAX_DIMS], to[DTENSOR_MAX_DIMS];
    struct dtn_piece made = { .source = source, .receiver = receiver };

    dtn_mesh_coord_of(src->mesh, source, from);
    dtn_mesh_coord_of(src->mesh, receiver, to);
    for (int m = 0; m < src->mesh->ndim; m++) {
        enum piece_rule rule = piece_rule(src, dst, m);

        if (rule == PIECE_OWN && from[m] != to[m])
            return false;
        if (rule == PIECE_FOLD && from[m] != 0)
            made.accumulate = true;
    }
    if (!piece_intersect(src, dst, &made))
        return false;
    *piece = made;
    return true;
}

/* Append, doubling the array when it is full: it holds a power of two. */
static int piece_append(struct dtn_piece **piecesp, int *np,
                        const struct dtn_piece *piece,
                        struct dtensor_error *err)
{
    int n = *np;
    struct dtn_piece *grown;
    size_t size;

    if ((n & (n - 1)) == 0) {
        size = (n ? 2 * (size_t)n : 1) * sizeof *grown;
        grown = realloc(*piecesp, size);
        if (!grown)
            return dtn_fail_nomem(err, "redistribute", size);
        *piecesp = grown;
    }
    (*piecesp)[(*np)++] = *piece;
    return 0;
}

/* Walk the coordinates the rules allow, row-major, as positions. */
struct piece_walk {
    int ndim;
    int first[DTENSOR_MAX_DIMS], end[DTENSOR_MAX_DIMS];
    int stride[DTENSOR_MAX_DIMS];
    int at[DTENSOR_MAX_DIMS];
    int index;
};

static void piece_walk_init(struct piece_walk *walk,
                            const struct dtensor_spec *src,
                            const struct dtensor_spec *dst, int receiver)
{
    int own[DTENSOR_MAX_DIMS];
    int stride = 1;

    dtn_mesh_coord_of(src->mesh, receiver, own);
    walk->ndim = src->mesh->ndim;
    walk->index = 0;
    for (int m = walk->ndim - 1; m >= 0; m--) {
        bool all = piece_rule(src, dst, m) != PIECE_OWN;

        walk->first[m] = all ? 0 : own[m];
        walk->end[m] = all ? src->mesh->size[m] : own[m] + 1;
        walk->at[m] = walk->first[m];
        walk->stride[m] = stride;
        walk->index += walk->at[m] * stride;
        stride *= src->mesh->size[m];
    }
}

/* To the next one; false after the last. */
static bool piece_walk_next(struct piece_walk *walk)
{
    for (int m = walk->ndim - 1; m >= 0; m--) {
        walk->at[m]++;
        walk->index += walk->stride[m];
        if (walk->at[m] < walk->end[m])
            return true;
        walk->index -= (walk->at[m] - walk->first[m]) * walk->stride[m];
        walk->at[m] = walk->first[m];
    }
    return false;
}

int dtn_pieces(const struct dtensor_spec *src, const struct dtensor_spec *dst,
               int receiver, struct dtn_piece **piecesp, int *np,
               struct dtensor_error *err)
{
    struct piece_walk walk;
    struct dtn_piece piece;
    int rc = 0;

    piece_walk_init(&walk, src, dst, receiver);
    do {
        if (dtn_piece_between(src, dst, walk.index, receiver, &piece))
            rc = piece_append(piecesp, np, &piece, err);
    } while (rc == 0 && piece_walk_next(&walk));
    return rc;
}

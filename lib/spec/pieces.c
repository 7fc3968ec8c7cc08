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
    switch (dtn_placement_class(&src->placement[m])) {
    case DTENSOR_SHARD:   return PIECE_MEET;
    case DTENSOR_PARTIAL: return PIECE_FOLD;
    default:              return PIECE_OWN;
    }
}

/* Write the intersection of the two boxes; false when it is empty.
 *
 * The pieces of a receiver tile its box as a grid, so each can be given its own
 * range of TMP without knowing the others: tiles row-major, each in one piece.
 * In a box of L0 x L1 the tile at (a0, a1) of l0 x l1 has a0 * L1 elements in
 * the tile rows above it, and l0 * a1 to its left.
 */
static bool piece_intersect(const struct dtensor_spec *src,
                            const struct dtensor_spec *dst,
                            struct dtn_piece *piece)
{
    int64_t src_shape[DTENSOR_MAX_DIMS], src_offset[DTENSOR_MAX_DIMS];
    int64_t dst_shape[DTENSOR_MAX_DIMS], dst_offset[DTENSOR_MAX_DIMS];
    struct dtn_box *box = &piece->box;
    int64_t above = 1;

    dtn_layout(src, piece->source, src_shape, src_offset);
    dtn_layout(dst, piece->receiver, dst_shape, dst_offset);
    box->ndim = src->ndim;
    dtn_strides(src->ndim, src_shape, box->src_stride);
    dtn_strides(dst->ndim, dst_shape, box->dst_stride);
    piece->src_offset = piece->dst_offset = piece->slot = 0;
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
        piece->slot += (size_t)(above * (start - dst_offset[d]) *
                                box->dst_stride[d]);
        above *= box->size[d];
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
    size_t term = 0;

    dtn_mesh_coord_of(src->mesh, source, from);
    dtn_mesh_coord_of(src->mesh, receiver, to);
    for (int m = 0; m < src->mesh->ndim; m++) {
        enum piece_rule rule = piece_rule(src, dst, m);

        if (rule == PIECE_OWN && from[m] != to[m])
            return false;
        if (rule == PIECE_FOLD)
            term = term * (size_t)src->mesh->size[m] + (size_t)from[m];
    }
    if (!piece_intersect(src, dst, &made))
        return false;
    made.accumulate = term > 0;
    made.slot += term * (size_t)dtn_local_numel(dst, receiver);
    *piece = made;
    return true;
}

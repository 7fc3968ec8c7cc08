/* boxes.c - strided boxes on a device, copied or reduced by the CPU
 *
 * A box is cut into tiles.  The span of a tile, from its first to its last
 * byte, is copied to pinned memory, on each side that is on the device; the CPU
 * copies or reduces the elements of the tile there; the span of dst goes back.
 * A tile is grown dimension by dimension, always by the one that adds least to
 * the spans: of a transposed matrix of 4096 x 4096 f32 it has 64 x 64.
 */
#include "base/box.h"
#include "base/dtype.h"
#include "base/reduce.h"
#include "device/cuda/cuda.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

/* One box under way. */
struct boxing {
    struct dtn_cuda *cuda;
    const struct dtn_cuda_box *op;
    struct dtn_box box;           /* coalesced                                */
    struct dtn_box tile;          /* of the next elements                     */
    bool dst_here, src_here;      /* the CPU reaches it                       */
    int64_t first[DTN_BOX_DIMS];  /* of the tile, along each dimension        */
};

/* Elements from the first to the last, of a tile on one side. */
static int64_t span_of(const struct dtn_box *tile, const int64_t stride[])
{
    int64_t span = 1;

    for (int d = 0; d < tile->ndim; d++)
        span += (tile->size[d] - 1) * stride[d];
    return span;
}

/* Bytes of both spans that are copied to slots. */
static size_t tile_bytes(const struct boxing *b, const struct dtn_box *tile)
{
    size_t dst = b->dst_here ? 0 : (size_t)span_of(tile, tile->dst_stride)
                                   * b->op->dst_bytes;
    size_t src = b->src_here ? 0 : (size_t)span_of(tile, tile->src_stride)
                                   * b->op->src_bytes;

    return dst > src ? dst : src;
}

/* Twice as many elements along the dimension that adds least to the spans.
 * False: the slots hold no larger tile.
 */
static bool tile_grow(struct boxing *b)
{
    struct dtn_box best = b->tile;
    size_t least = DTN_CUDA_SLOT_BYTES + 1;

    for (int d = 0; d < b->box.ndim; d++) {
        struct dtn_box tile = b->tile;

        if (tile.size[d] == b->box.size[d])
            continue;
        tile.size[d] = 2 * tile.size[d] < b->box.size[d] ? 2 * tile.size[d]
                                                         : b->box.size[d];
        if (tile_bytes(b, &tile) < least) {
            least = tile_bytes(b, &tile);
            best = tile;
        }
    }
    b->tile = best;
    return least <= DTN_CUDA_SLOT_BYTES;
}

static void tile_choose(struct boxing *b)
{
    b->tile = b->box;
    for (int d = 0; d < b->box.ndim; d++)
        b->tile.size[d] = 1;
    while (tile_grow(b))
        ;
}

/* The elements of the tile, at addresses that the CPU reaches. */
static void tile_run(const struct boxing *b, const struct dtn_box *tile,
                     void *dst, const void *src)
{
    const struct dtn_cuda_box *op = b->op;

    if (op->how)
        dtn_box_fold(tile, op->how, op->partial, op->adds, dst, src);
    else
        dtn_box_copy(tile, op->dst_bytes, dst, src);
}

/* One tile: copy its spans here, run, copy the span of dst back.  That span has
 * elements that are not of the box, so it is read even if the box is written.
 */
static int tile_move(const struct boxing *b, const struct dtn_box *tile,
                     unsigned char *dst, const unsigned char *src)
{
    struct dtn_cuda *cuda = b->cuda;
    const size_t dst_bytes = (size_t)span_of(tile, tile->dst_stride)
                           * b->op->dst_bytes;
    const size_t src_bytes = (size_t)span_of(tile, tile->src_stride)
                           * b->op->src_bytes;
    unsigned char *to = b->dst_here ? dst : cuda->slot[0];
    const unsigned char *from = b->src_here ? src : cuda->slot[1];
    int rc = 0;

    if (!b->dst_here)
        rc = dtn_cuda_copy(cuda, to, dst, dst_bytes);
    if (rc == 0 && !b->src_here)
        rc = dtn_cuda_copy(cuda, cuda->slot[1], src, src_bytes);
    if (rc == 0)
        rc = dtn_cuda_drain(cuda);
    if (rc != 0)
        return rc;
    tile_run(b, tile, to, from);
    if (!b->dst_here)
        rc = dtn_cuda_copy(cuda, dst, to, dst_bytes);
    return rc != 0 ? rc : dtn_cuda_drain(cuda);
}

/* The tile that begins at b->first, cut at the end of the box. */
static struct dtn_box tile_here(const struct boxing *b)
{
    struct dtn_box tile = b->tile;

    for (int d = 0; d < tile.ndim; d++)
        if (tile.size[d] > b->box.size[d] - b->first[d])
            tile.size[d] = b->box.size[d] - b->first[d];
    return tile;
}

static bool tile_next(struct boxing *b)
{
    for (int d = b->box.ndim - 1; d >= 0; d--) {
        b->first[d] += b->tile.size[d];
        if (b->first[d] < b->box.size[d])
            return true;
        b->first[d] = 0;
    }
    return false;
}

static int64_t offset_of(const struct boxing *b, const int64_t stride[])
{
    int64_t offset = 0;

    for (int d = 0; d < b->box.ndim; d++)
        offset += b->first[d] * stride[d];
    return offset;
}

/* All tiles. */
static int boxing_run(struct boxing *b, unsigned char *dst,
                      const unsigned char *src)
{
    int rc;

    do {
        const struct dtn_box tile = tile_here(b);

        rc = tile_move(b, &tile, dst + offset_of(b, tile.dst_stride)
                                       * (int64_t)b->op->dst_bytes,
                       src + offset_of(b, tile.src_stride)
                             * (int64_t)b->op->src_bytes);
    } while (rc == 0 && tile_next(b));
    return rc;
}

int dtn_cuda_box(struct dtn_cuda *cuda, const struct dtn_cuda_box *op,
                 void *dst, const void *src)
{
    struct boxing b = { .cuda = cuda, .op = op, .box = *op->box };
    int rc = dtn_cuda_drain(cuda);         /* the CPU reads what they write   */

    if (rc != 0 || dtn_box_count(op->box) == 0)
        return rc;
    dtn_box_coalesce(&b.box);
    b.dst_here = !dtn_cuda_holds(&cuda->memory, dst);
    b.src_here = !dtn_cuda_holds(&cuda->memory, src);
    if ((!b.dst_here && !dtn_cuda_slot(cuda, 0))
        || (!b.src_here && !dtn_cuda_slot(cuda, 1)))
        return DTENSOR_ENOMEM;
    tile_choose(&b);
    return boxing_run(&b, dst, src);
}

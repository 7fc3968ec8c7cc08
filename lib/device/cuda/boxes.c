/* boxes.c - strided boxes on a device, copied or reduced
 *
 * If both sides are on the device, a box is one kernel.  If one side is in host
 * memory, the box is cut into tiles of 4 MiB.  The CPU packs the elements of a
 * tile into a slot of pinned memory, they are copied to a buffer on the device,
 * and a kernel stores them in their places; in the other direction the order is
 * reversed.  Two slots are used in turn.
 *
 * Without kernels the span of a tile, from its first to its last byte, is
 * copied to pinned memory for each side that is on the device.  The CPU copies
 * or reduces the elements of the tile there, and the span of dst is copied
 * back.  A tile grows one dimension at a time, by the one that adds the fewest
 * bytes: for a transposed matrix of 4096 x 4096 f32 a tile is 64 x 64 if spans
 * are copied.
 */
#include "base/box.h"
#include "base/dtype.h"
#include "base/reduce.h"
#include "cuda/launch.h"
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
    bool packs;                   /* kernels do the other side                */
    int slot;                     /* of the next tile                         */
    struct packed {
        struct dtn_box tile;      /* from the slot to dst, `ndim` -1: none    */
        unsigned char *dst;       /* where it begins                          */
    } packed[DTN_CUDA_SLOTS];     /* tiles that arrive for the CPU            */
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

/* Bytes of the tile in a slot: the larger span, or its elements. */
static size_t tile_bytes(const struct boxing *b, const struct dtn_box *tile)
{
    size_t dst = b->dst_here ? 0 : (size_t)span_of(tile, tile->dst_stride)
                                   * b->op->dst_bytes;
    size_t src = b->src_here ? 0 : (size_t)span_of(tile, tile->src_stride)
                                   * b->op->src_bytes;

    if (b->packs)
        return (size_t)dtn_box_count(tile) * b->op->src_bytes;
    return dst > src ? dst : src;
}

/* Twice as many elements along the dimension that adds least to the spans.
 * False: the slots hold no larger tile.
 */
static bool tile_grow(struct boxing *b)
{
    struct dtn_box best = b->tile;
    size_t least = DTN_CUDA_SLOT_BYTES + 1;

    for (int d = b->box.ndim - 1; d >= 0; d--) {
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

/* ------------------------------------------------- packed for kernels --- */

/* The tile with one side packed, row by row. */
static struct dtn_box tile_packed(const struct dtn_box *tile, bool dst)
{
    struct dtn_box packed = *tile;
    int64_t stride = 1;

    for (int d = tile->ndim - 1; d >= 0; d--) {
        *(dst ? &packed.dst_stride[d] : &packed.src_stride[d]) = stride;
        stride *= tile->size[d];
    }
    return packed;
}

/* Enqueue the kernel of a box on the device. */
static int box_launch(struct dtn_cuda *cuda, const struct dtn_cuda_box *op,
                      const struct dtn_box *box, void *dst, const void *src)
{
    struct dtn_launch launch;

    if (op->how)
        dtn_launch_fold_box(box, op->how, op->partial, op->adds, dst, src,
                            &launch);
    else
        dtn_launch_copy_box(box, op->dst_bytes, dst, src, &launch);
    return dtn_cuda_launch(cuda, &launch);
}

/* Elements of the host to their places on the device. */
static int tile_upload(struct boxing *b, const struct dtn_box *tile,
                       unsigned char *dst, const unsigned char *src)
{
    const struct dtn_box pack = tile_packed(tile, true);
    const struct dtn_box place = tile_packed(tile, false);
    struct dtn_cuda *cuda = b->cuda;
    unsigned char *slot = cuda->slot[b->slot];
    int rc = dtn_cuda_await(cuda, cuda->moved[b->slot]);

    if (rc != 0)
        return rc;
    dtn_box_copy(&pack, b->op->src_bytes, slot, src);
    rc = dtn_cuda_copy(cuda, (void *)cuda->room, slot, tile_bytes(b, tile));
    if (rc == 0)
        rc = dtn_cuda_mark(cuda, b->slot);
    b->slot = !b->slot;
    return rc != 0 ? rc : box_launch(cuda, b->op, &place, dst,
                                     (void *)cuda->room);
}

/* The tile of a slot has arrived, or does soon: to its places in the host. */
static int tile_unpack(struct boxing *b, int slot)
{
    struct packed *packed = &b->packed[slot];
    struct dtn_cuda *cuda = b->cuda;
    int rc = 0;

    if (packed->tile.ndim < 0)
        return 0;
    rc = dtn_cuda_await(cuda, cuda->moved[slot]);
    if (rc == 0)
        tile_run(b, &packed->tile, packed->dst, cuda->slot[slot]);
    packed->tile.ndim = -1;
    return rc;
}

/* Elements of the device to a slot; meanwhile, those of the other slot to their
 * places.
 */
static int tile_download(struct boxing *b, const struct dtn_box *tile,
                         unsigned char *dst, const unsigned char *src)
{
    const struct dtn_box pack = tile_packed(tile, true);
    const struct dtn_cuda_box copy = { .dst_bytes = b->op->src_bytes };
    struct dtn_cuda *cuda = b->cuda;
    const int slot = b->slot;
    int rc = dtn_cuda_await(cuda, cuda->moved[slot]);

    if (rc == 0)
        rc = box_launch(cuda, &copy, &pack, (void *)cuda->room, src);
    if (rc == 0)
        rc = dtn_cuda_copy(cuda, cuda->slot[slot], (void *)cuda->room,
                           tile_bytes(b, tile));
    if (rc == 0)
        rc = dtn_cuda_mark(cuda, slot);
    b->packed[slot] = (struct packed){ tile_packed(tile, false), dst };
    b->slot = !slot;
    return rc != 0 ? rc : tile_unpack(b, !slot);
}

/* --------------------------------------------------------------- tiles --- */

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
        unsigned char *to = dst + offset_of(b, tile.dst_stride)
                                  * (int64_t)b->op->dst_bytes;
        const unsigned char *from = src + offset_of(b, tile.src_stride)
                                          * (int64_t)b->op->src_bytes;

        rc = !b->packs ? tile_move(b, &tile, to, from)
           : b->src_here ? tile_upload(b, &tile, to, from)
                         : tile_download(b, &tile, to, from);
    } while (rc == 0 && tile_next(b));
    for (int i = 0; i < DTN_CUDA_SLOTS && b->packs && rc == 0; i++)
        rc = tile_unpack(b, i);
    return rc;
}

/* Is the work of kernels possible, and is there any? */
static bool boxing_suits_kernel(const struct boxing *b)
{
    return b->cuda->library && !(b->op->how && b->op->how->fn)
        && !(b->dst_here && b->src_here) && dtn_cuda_room(b->cuda);
}

/* The CPU is about to read what launched operations write.  What it writes they
 * may be reading: a packed tile comes after them, and spans wait for all.
 */
static int boxing_begin(struct boxing *b)
{
    struct dtn_cuda *cuda = b->cuda;
    const bool first = !b->dst_here || b->packs;
    const bool second = !b->src_here || b->packs;

    for (int i = 0; i < DTN_CUDA_SLOTS; i++)
        b->packed[i].tile.ndim = -1;
    if ((first && !dtn_cuda_slot(cuda, 0))
        || (second && !dtn_cuda_slot(cuda, 1)))
        return DTENSOR_ENOMEM;
    return b->packs ? dtn_cuda_land(cuda) : dtn_cuda_drain(cuda);
}

int dtn_cuda_box(struct dtn_cuda *cuda, const struct dtn_cuda_box *op,
                 void *dst, const void *src)
{
    struct boxing b = { .cuda = cuda, .op = op, .box = *op->box };
    int rc;

    if (dtn_box_count(op->box) == 0)
        return 0;
    dtn_box_coalesce(&b.box);
    b.dst_here = !dtn_cuda_holds(&cuda->memory, dst);
    b.src_here = !dtn_cuda_holds(&cuda->memory, src);
    b.packs = boxing_suits_kernel(&b);
    if (b.packs && !b.dst_here && !b.src_here) {
        rc = box_launch(cuda, op, &b.box, dst, src);
        return rc != 0 ? rc : DTN_LAUNCHED;
    }
    rc = boxing_begin(&b);
    if (rc != 0)
        return rc;
    tile_choose(&b);
    rc = boxing_run(&b, dst, src);
    return rc != 0 || !cuda->launched ? rc : DTN_LAUNCHED;
}

/* bounce.c - operations that the CPU does on copies, piece by piece
 *
 * Without a kernel the CPU does the operation.  It takes the arrays in pieces:
 * a piece of each array that is on the device is copied to a slot of pinned
 * memory, the CPU computes there, and the result is copied back.  There are two
 * slots, so the copies of the next piece run while the CPU computes.  A sum of
 * two arrays of 64 MiB has pieces of 1.3 MiB of each array, 48 of them.
 */
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "dtensor.h"

#include <stdbool.h>

unsigned char *dtn_cuda_slot(struct dtn_cuda *cuda, int i)
{
    void *mem = NULL;

    if (!cuda->slot[i]
        && dtn_cuda_result(cuda, "cuMemHostAlloc",
                           cuda->driver->cuMemHostAlloc(
                               &mem, DTN_CUDA_SLOT_BYTES,
                               CU_MEMHOSTALLOC_PORTABLE),
                           "%zu bytes of pinned memory", DTN_CUDA_SLOT_BYTES)
           == 0)
        cuda->slot[i] = mem;
    return cuda->slot[i];
}

/* What is in a slot: the pieces of the sources on the device, then of dst. */
struct piece {
    size_t first, n;              /* elements                                 */
    const void **src;             /* [nsrc] where the CPU reads them          */
    void *dst;                    /* and writes                               */
};

/* One operation under way. */
struct bounce {
    struct dtn_cuda *cuda;
    const struct dtn_cuda_pass *pass;
    struct piece piece[DTN_CUDA_SLOTS];
};

static size_t source_bytes(const struct dtn_cuda_pass *pass, int i)
{
    return pass->src_bytes[i > 0];
}

static int bounce_begin(struct bounce *b)
{
    const struct dtn_cuda_pass *pass = b->pass;
    bool all = true;

    for (int i = 0; i < pass->nsrc; i++)
        all = all && pass->here[i];
    for (int i = 0; i < DTN_CUDA_SLOTS; i++)
        b->piece[i].src = pass->parts + i * pass->nsrc;
    for (int i = 0; i < DTN_CUDA_SLOTS && !(all && pass->dst_here); i++)
        if (!dtn_cuda_slot(b->cuda, i))
            return DTENSOR_ENOMEM;
    return dtn_cuda_drain(b->cuda);        /* the CPU reads what they write   */
}

/* Begin to copy the sources of a piece to slot `slot`, which is free. */
static int piece_fetch(struct bounce *b, int slot)
{
    const struct dtn_cuda_pass *pass = b->pass;
    struct piece *piece = &b->piece[slot];
    unsigned char *to = b->cuda->slot[slot];
    int rc = 0;

    for (int i = 0; i < pass->nsrc && rc == 0; i++) {
        const size_t bytes = source_bytes(pass, i);
        const unsigned char *from = (const unsigned char *)pass->src[i]
                                  + piece->first * bytes;

        piece->src[i] = pass->here[i] ? from : to;
        if (pass->here[i])
            continue;
        rc = dtn_cuda_copy(b->cuda, to, from, piece->n * bytes);
        to += dtn_cuda_piece_bytes(piece->n, bytes);
    }
    piece->dst = pass->dst_here && pass->dst
               ? (unsigned char *)pass->dst + piece->first * pass->dst_bytes
               : to;
    return rc != 0 ? rc : dtn_cuda_mark(b->cuda, slot);
}

/* Compute a piece whose sources arrive, and begin to copy the result back. */
static int piece_finish(struct bounce *b, int slot)
{
    const struct dtn_cuda_pass *pass = b->pass;
    const struct piece *piece = &b->piece[slot];
    int rc = dtn_cuda_await(b->cuda, b->cuda->moved[slot]);

    if (rc != 0)
        return rc;
    pass->run(pass, piece->first, piece->n, piece->dst, piece->src);
    if (pass->dst_here)
        return 0;
    rc = dtn_cuda_copy(b->cuda, (unsigned char *)pass->dst
                                + piece->first * pass->dst_bytes, piece->dst,
                       piece->n * pass->dst_bytes);
    return rc != 0 ? rc : dtn_cuda_mark(b->cuda, slot);
}

/* The pieces, one after another.  While one is computed the next is copied. */
static int bounce_pieces(struct bounce *b)
{
    const size_t count = b->pass->count, step = b->pass->step;
    int slot = 0, rc = 0;

    for (size_t at = 0; at < count && rc == 0; at += step) {
        struct piece *piece = &b->piece[slot];

        piece->first = at;
        piece->n = count - at < step ? count - at : step;
        if (at / step >= DTN_CUDA_SLOTS)           /* its last result leaves  */
            rc = dtn_cuda_await(b->cuda, b->cuda->moved[slot]);
        if (rc == 0)
            rc = piece_fetch(b, slot);
        slot = !slot;
        if (rc == 0 && at > 0)
            rc = piece_finish(b, slot);
    }
    return rc != 0 ? rc : piece_finish(b, !slot);
}

int dtn_cuda_bounce(struct dtn_cuda *cuda, const struct dtn_cuda_pass *pass)
{
    struct bounce b = { .cuda = cuda, .pass = pass };
    int rc = bounce_begin(&b);

    if (rc == 0)
        rc = bounce_pieces(&b);
    return rc != 0 || !cuda->launched ? rc : DTN_LAUNCHED;
}

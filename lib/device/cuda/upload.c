/* upload.c - operations by kernels on arrays of which some are in host memory
 *
 * If all arrays are on the device, the operation is one launch.  Otherwise a
 * piece of each host array is copied to a buffer of 4 MiB on the device, the
 * kernel runs on that piece, and the next piece follows.  All of this is
 * enqueued in one stream, so the buffer is used again without a wait of the
 * host.
 */
#include "device/cuda/cuda.h"
#include "dtensor.h"

/* Elements first ... first + n - 1. */
static int upload_piece(struct dtn_cuda *cuda, const struct dtn_cuda_pass *pass,
                        size_t first, size_t n)
{
    unsigned char *room = (unsigned char *)cuda->room;
    unsigned char *dst = !pass->dst ? NULL : (unsigned char *)pass->dst
                                             + first * pass->dst_bytes;
    struct dtn_cuda_part part = { .first = first, .n = n, .dst = dst,
                                  .src = pass->parts };
    int rc = 0;

    for (int i = 0; i < pass->nsrc && rc == 0; i++) {
        const size_t bytes = pass->src_bytes[i > 0];
        const unsigned char *from = (const unsigned char *)pass->src[i]
                                  + first * bytes;

        pass->parts[i] = pass->here[i] ? room : from;
        if (!pass->here[i])
            continue;
        rc = dtn_cuda_copy(cuda, room, from, n * bytes);
        room += dtn_cuda_piece_bytes(n, bytes);
    }
    part.extra = room;
    if (pass->dst && pass->dst_here)
        part.dst = room + dtn_cuda_piece_bytes(n, pass->extra_bytes);
    if (rc == 0)
        rc = pass->launch(cuda, pass, &part);
    if (rc != 0 || part.dst == dst)
        return rc;
    cuda->to_host = true;
    return dtn_cuda_copy(cuda, dst, part.dst, n * pass->dst_bytes);
}

int dtn_cuda_upload(struct dtn_cuda *cuda, const struct dtn_cuda_pass *pass)
{
    const size_t step = pass->step;
    int rc = 0;

    for (size_t at = 0; at < pass->count && rc == 0; at += step)
        rc = upload_piece(cuda, pass, at, pass->count - at < step
                                          ? pass->count - at : step);
    return rc != 0 || !cuda->launched ? rc : DTN_LAUNCHED;
}

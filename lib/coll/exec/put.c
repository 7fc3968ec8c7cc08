/* put.c - the steps that put and flush
 *
 * A put goes to the peer's transport as it is.  A box goes as strided rows,
 * if the transport takes them, or row by row: 4 rows of 1 KiB are one call of
 * put_rows() or four of put().  A put that returns EAGAIN continues where it
 * stopped.  Bytes of a device that the transport cannot read leave from a
 * bounce buffer.
 */
#include "coll/exec/put.h"
#include "base/box.h"
#include "coll/exec/bind.h"
#include "coll/exec/direct.h"
#include "coll/exec/exec.h"
#include "coll/exec/launch.h"
#include "coll/exec/peer.h"
#include "coll/exec/run.h"
#include "job/await.h"
#include "job/bounce.h"
#include "job/ctx.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Put from device memory by the CPU, to memory of a peer that is not mapped. */
static int run_put_copied(struct dtn_exec_run *run, int rank,
                          struct dtn_remote dst, const unsigned char *src,
                          size_t bytes)
{
    unsigned char copy[8 * DTN_EAGER_MAX];
    int rc = 0;

    for (size_t part; bytes > 0 && rc == 0; bytes -= part) {
        part = bytes < sizeof copy ? bytes : sizeof copy;
        rc = dtn_run_download(run, copy, src, part);
        if (rc == 0)
            rc = dtn_put(run->ctx, rank, dst, copy, part);
        if (rc == 0)
            rc = dtn_flush(run->ctx, rank);
        src += part;
        dst.addr += part;
    }
    return rc;
}

/* Put a piece of a space, or continue a put that returned EAGAIN. */
static int run_put_piece(struct dtn_exec_run *run, int rank,
                         struct dtn_remote dst,
                         enum dtn_space space, const unsigned char *src,
                         size_t bytes)
{
    int rc = 0;

    if (run->memory != &dtn_host && space <= DTN_OUT
        && run->exposed.bounce[space] && dtn_run_is_device(run, src)) {
        unsigned char *to = run->exposed.bounce[space]->mem
                          + (src - run->exec->base[space]);

        if (run->progress.moved == 0)
            rc = dtn_run_download(run, to, src, bytes);
        if (rc != 0)
            return rc;
        src = to;
    }
    if (run->ctx->peers[rank].tp->ops->fetch && dtn_run_is_device(run, src))
        return run_put_copied(run, rank, dst, src, bytes);
    if (!run->polls)
        return dtn_put(run->ctx, rank, dst, src, bytes);
    rc = dtn_poll_put(run->ctx, rank, &run->wait, dst, src, bytes,
                      &run->progress.moved);
    if (rc == 0)
        run->progress.moved = 0;
    return rc;
}

/* The rows of the box's last dimension are strided. */
static void rows_begin(struct dtn_exec_run *run, struct dtn_exec_rows *rows,
                       const struct dtn_exec_step *bound)
{
    const enum dtensor_dtype dtype = run->exec->sched.dtype;
    const ptrdiff_t elem = (ptrdiff_t)dtensor_dtype_size(dtype);
    const struct dtn_transport_ops *ops = bound->peer->tp->ops;
    struct dtn_box *box = &rows->box;
    int last;

    *box = run->exec->sched.boxes[bound->step->box];
    rows->begun = true;
    rows->at = 0;
    rows->strided = (struct dtn_strided){
        .bytes = dtn_box_take_run(box) * (size_t)elem, .n = 1 };
    if (box->ndim > 0) {
        last = --box->ndim;
        rows->strided.n = (size_t)box->size[last];
        rows->strided.src_step = box->src_stride[last] * elem;
        rows->strided.dst_step = box->dst_stride[last] * elem;
    }
    rows->walk = (struct dtn_walk){ .box = box };
    rows->singly = run->memory != &dtn_host || !ops->put_rows;
}

/* Put the rest of the rows, the first of which is at src. */
static int rows_put(struct dtn_exec_run *run, struct dtn_exec_rows *rows,
                    int rank, struct dtn_remote dst, enum dtn_space space,
                    const unsigned char *src)
{
    struct dtn_strided *strided = &rows->strided;
    int rc = 0;

    strided->src = src;
    if (!rows->singly) {
        rc = run->polls ? dtn_poll_rows(run->ctx, rank, &run->wait, dst,
                                        strided, &rows->at)
                        : dtn_put_rows(run->ctx, rank, dst, strided, &rows->at);
        rows->singly = rc == DTENSOR_EINVAL;
    }
    for (; rows->singly && rows->at < strided->n; rows->at++) {
        const ptrdiff_t at = (ptrdiff_t)rows->at;
        const struct dtn_remote to = {
            dst.addr + (uint64_t)(at * strided->dst_step), dst.key
        };

        rc = run_put_piece(run, rank, to, space, src + at * strided->src_step,
                           strided->bytes);
        if (rc != 0)
            return rc;
    }
    if (rc == 0)
        rows->at = 0;
    return rc;
}

/* All rows of one distance at a time. */
static int run_put_box(struct dtn_exec_run *run, int rank,
                       struct dtn_remote dst, const struct dtn_exec_step *bound)
{
    const int64_t elem = (int64_t)dtensor_dtype_size(run->exec->sched.dtype);
    const unsigned char *src = dtn_run_at(run, bound->src);
    struct dtn_exec_rows *rows = &run->progress.rows;
    int rc;

    if (!rows->begun)
        rows_begin(run, rows, bound);
    do {
        struct dtn_remote to = dst;

        to.addr += (uint64_t)(rows->walk.dst * elem);
        rc = rows_put(run, rows, rank, to, bound->step->src.space,
                      src + rows->walk.src * elem);
        if (rc != 0)
            return rc;
    } while (dtn_walk_next(&rows->walk));
    rows->begun = false;
    return 0;
}

int dtn_run_put(struct dtn_exec_run *run, const struct dtn_exec_step *bound)
{
    const struct dtn_step *step = bound->step;
    const struct dtn_exec_peer *peer = bound->peer;
    struct dtn_remote dst = peer->remote[dtn_exec_name(step->dst.space)];
    unsigned char *there = run->memory != &dtn_host
                         ? dtn_direct_put_at(run, bound) : NULL;
    int rc;

    if (there)
        return dtn_direct_put(run, bound, there);
    rc = dtn_run_settle(run, !run->polls);
    if (rc != 0)
        return rc;
    dst.addr += bound->dst.offset;
    if (step->box >= 0)
        return run_put_box(run, peer->rank, dst, bound);
    return run_put_piece(run, peer->rank, dst, step->src.space,
                         dtn_run_at(run, bound->src), bound->bytes);
}

int dtn_run_flush(struct dtn_exec_run *run, const struct dtn_exec_step *bound)
{
    const int rank = bound->peer->rank;

    return run->polls ? dtn_poll_flush(run->ctx, rank, &run->wait)
                      : dtn_flush(run->ctx, rank);
}

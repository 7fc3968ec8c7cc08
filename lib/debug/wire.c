/* wire.c - counts the bytes that the transports accept
 *
 * While a context counts, its transports have other tables of functions.  Their
 * put(), put_rows() and signal() add up the accepted bytes and call the
 * transport's own functions.  So a context that does not count pays nothing.
 * Of a signal only the data of an eager message count, not the addresses of
 * buffers.
 */
#include "debug/counters.h"
#include "sched/sched.h"

static struct dtn_wired *wired_of(const struct dtn_transport *tp)
{
    return (struct dtn_wired *)(uintptr_t)tp->ops;
}

static int wired_put(struct dtn_transport *tp, int peer, struct dtn_remote dst,
                     const void *src, size_t size, size_t *done)
{
    struct dtn_wired *wired = wired_of(tp);
    int rc = wired->inner->put(tp, peer, dst, src, size, done);

    wired->bytes += rc == DTENSOR_EAGAIN ? 0 : *done;
    return rc;
}

static int wired_put_rows(struct dtn_transport *tp, int peer,
                          struct dtn_remote dst, const struct dtn_strided *rows,
                          size_t *done)
{
    struct dtn_wired *wired = wired_of(tp);
    int rc = wired->inner->put_rows(tp, peer, dst, rows, done);

    wired->bytes += rc == 0 ? *done * rows->bytes : 0;
    return rc;
}

static int wired_signal(struct dtn_transport *tp, int peer,
                        const struct dtn_signal *signal,
                        const struct dtn_eager *data)
{
    struct dtn_wired *wired = wired_of(tp);
    int rc = wired->inner->signal(tp, peer, signal, data);

    if (rc == 0 && signal->tag == DTN_TAG_EAGER)
        wired->bytes += signal->len;
    return rc;
}

void dtn_wire_count(struct dtn_counters *counters)
{
    struct dtensor_ctx *ctx = counters->ctx;

    for (int t = 0; t < ctx->ntransports; t++) {
        struct dtn_wired *wired = &counters->wired[t];

        *wired = (struct dtn_wired){ .ops = *ctx->transports[t]->ops,
            .inner = ctx->transports[t]->ops, .tp = ctx->transports[t] };
        wired->ops.put = wired_put;
        if (wired->inner->put_rows)
            wired->ops.put_rows = wired_put_rows;
        wired->ops.signal = wired_signal;
        wired->tp->ops = &wired->ops;
    }
}

void dtn_wire_release(struct dtn_counters *counters)
{
    for (int t = 0; t < DTN_MAX_TRANSPORTS; t++) {
        struct dtn_wired *wired = &counters->wired[t];

        if (wired->tp)
            wired->tp->ops = wired->inner;
        wired->tp = NULL;
    }
}

uint64_t dtn_wire_bytes(const struct dtn_counters *counters)
{
    uint64_t bytes = 0;

    for (int t = 0; t < DTN_MAX_TRANSPORTS; t++)
        bytes += counters->wired[t].bytes;
    return bytes;
}

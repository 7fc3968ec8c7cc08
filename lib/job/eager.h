/* eager.h - private to this room: where the data of an eager message are */
#ifndef DTN_JOB_EAGER_H
#define DTN_JOB_EAGER_H

#include "job/ctx.h"
#include "transport/transport.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The place in an eager box for the data of signal `number`, in bytes. */
static inline size_t dtn_eager_offset(uint64_t number)
{
    return number % DTN_QUEUE_DEPTH * DTN_EAGER_MAX;
}

/* Copy the signal->len bytes of `data` into the signal, if they fit; returns
 * NULL.  Otherwise the transport is to write them to the peer's box, or to keep
 * them: returns `eager`, which says so.
 */
static inline const struct dtn_eager *
dtn_eager_pack(const struct dtn_peer *peer, struct dtn_signal *signal,
               const void *data, struct dtn_eager *eager)
{
    if (signal->len > DTN_PAYLOAD_MAX) {
        eager->dst = peer->eager.remote;
        if (peer->eager.in)
            eager->dst.addr += dtn_eager_offset(peer->sent);
        eager->src = data;
        eager->size = signal->len;
        return eager;
    }
    if (signal->len > 0)
        memcpy(signal->payload, data, signal->len);
    return NULL;
}

#endif

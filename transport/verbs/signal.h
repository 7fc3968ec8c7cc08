/* signal.h - entries of the transport table that deal with signals */
#ifndef DTN_TRANSPORT_VERBS_SIGNAL_H
#define DTN_TRANSPORT_VERBS_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>

struct dtn_eager;
struct dtn_signal;
struct dtn_transport;
struct dtn_verbs;
struct dtn_verbs_peer;

int dtn_verbs_signal(struct dtn_transport *tp, int peer,
                     const struct dtn_signal *signal,
                     const struct dtn_eager *data);
const struct dtn_signal *dtn_verbs_peek(struct dtn_transport *tp, int peer);
const void *dtn_verbs_kept(struct dtn_transport *tp, int peer);
void dtn_verbs_consume(struct dtn_transport *tp, int peer);

/* Tell the peer how many of its signals were read, if at least `least` were
 * read since it was last told.
 */
void dtn_verbs_acknowledge(struct dtn_verbs *verbs, struct dtn_verbs_peer *p,
                           uint64_t least);

#endif

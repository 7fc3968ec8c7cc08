/* put.h - entries of the transport table that deal with puts */
#ifndef DTN_TRANSPORT_VERBS_PUT_H
#define DTN_TRANSPORT_VERBS_PUT_H

#include <stddef.h>

struct dtn_remote;
struct dtn_transport;

enum { DTN_VERBS_STAGE_BYTES = 1 << 20 }; /* bounce buffer of a rank          */

int dtn_verbs_put(struct dtn_transport *tp, int peer, struct dtn_remote dst,
                  const void *src, size_t size, size_t *done);
int dtn_verbs_put_rows(struct dtn_transport *tp, int peer,
                       struct dtn_remote dst, const struct dtn_strided *rows,
                       size_t *done);
int dtn_verbs_flush(struct dtn_transport *tp, int peer);

#endif

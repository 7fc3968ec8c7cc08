/* wire.h - private to the net room: a context's transports */
#ifndef DTN_WIRE_H
#define DTN_WIRE_H

#include "net/net.h"

/* Open the transports the cluster file asks for and learn the peers'
 * addresses.  `all` is scratch for world_size blobs.  Collective: the world.
 */
int dtn_wire_open(struct dtensor_ctx *ctx, struct dtn_blob all[],
                  struct dtensor_error *err);

/* Close what is open, half or whole. */
void dtn_wire_close(struct dtensor_ctx *ctx);

#endif

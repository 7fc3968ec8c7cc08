/* register.h - make a range of memory known to the cards of all rails */
#ifndef DTN_TRANSPORT_VERBS_REGISTER_H
#define DTN_TRANSPORT_VERBS_REGISTER_H

#include "cluster/cluster.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

struct dtn_verbs_memory;

/* Register [mem, mem + size) on all rails, for peers to write; false with
 * errno, and then on none.  Never with relaxed ordering: the bytes could then
 * land after the signal behind them, which is polled for.
 */
bool dtn_verbs_register(struct dtn_verbs_memory *memory, void *mem, size_t size,
                        struct ibv_mr *mr[DTN_MAX_RAILS]);

/* The same for memory of the device of memory->exporter, which our own cards
 * may read as well: by its dma-buf or, if that is refused, as peer memory.
 */
bool dtn_verbs_register_device(struct dtn_verbs_memory *memory, void *mem,
                               size_t size, struct ibv_mr *mr[DTN_MAX_RAILS]);

void dtn_verbs_deregister(struct dtn_verbs_memory *memory,
                          struct ibv_mr *mr[DTN_MAX_RAILS]);

#endif

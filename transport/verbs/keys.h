/* keys.h - the keys of registered memory on all rails, known to peers */
#ifndef DTN_TRANSPORT_VERBS_KEYS_H
#define DTN_TRANSPORT_VERBS_KEYS_H

#include "cluster/cluster.h"
#include "dtensor.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct dtn_verbs;
struct dtn_verbs_memory;
struct dtn_verbs_peer;
struct dtn_verbs_region;

enum { DTN_VERBS_REGIONS = 1024 }; /* registered at a time: rows of the table */

/* A row of keys for each region.  Peers keep a copy in their lane.  Where there
 * is one rail there is no table.
 */
struct dtn_verbs_keys {
    int nrails;                   /* keys of a row                            */
    uint32_t *key;                /* [DTN_VERBS_REGIONS][nrails], or NULL     */
    struct ibv_mr *mr;            /* of `key`, on rail 0                      */
    uint64_t version;             /* rows written, ever                       */
    uint64_t *written;            /* [DTN_VERBS_REGIONS] version; 0: never    */
    bool *taken;                  /* [DTN_VERBS_REGIONS] row is in use        */
};

/* Make the table, unless there is one rail.   Errors: ENOMEM, ESYS */
int dtn_verbs_keys_init(struct dtn_verbs_memory *memory,
                        struct dtensor_error *err);
void dtn_verbs_keys_fini(struct dtn_verbs_memory *memory);

/* A row for a region with these keys; -1: none is free. */
int dtn_verbs_keys_take(struct dtn_verbs_keys *keys, struct ibv_mr *const mr[]);
void dtn_verbs_keys_drop(struct dtn_verbs_keys *keys, int row);

/* The key word of a name: the key on rail 0 and, above it, the row. */
uint64_t dtn_verbs_keys_name(const struct dtn_verbs_region *region);

/* Look up the keys that belong to a name of the peer's memory.  Returns on how
 * many rails the key is known: all, or 1 where the row has not arrived.
 */
int dtn_verbs_keys_find(const struct dtn_verbs *verbs,
                        const struct dtn_verbs_peer *peer, uint64_t name,
                        uint32_t key[DTN_MAX_RAILS]);

#endif

/* verbs_memory.h - memory regions, registered once */
#ifndef DTN_TRANSPORT_VERBS_MEMORY_H
#define DTN_TRANSPORT_VERBS_MEMORY_H

#include "cluster/cluster.h"
#include "transport/verbs_keys.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_arena;
struct dtn_remote;
struct dtn_verbs_rail;

#define DTN_VERBS_ADOPTED UINT64_MAX /* the user's: stays until disowned */

/* A range that is registered on every rail. */
struct dtn_verbs_region {
    unsigned char *start;         /* its first byte                           */
    size_t size;                  /* in bytes                                 */
    struct ibv_mr *mr[DTN_MAX_RAILS]; /* on each rail                         */
    int row;                      /* in the table of keys; -1: none           */
    int names;                    /* given out and not taken back             */
    uint64_t used;                /* clock of its last use, or ADOPTED        */
};

/* All regions of this rank. */
struct dtn_verbs_memory {
    struct dtn_verbs_rail *rails; /* [nrails] borrowed                        */
    int nrails;                   /* devices that know each region            */
    struct dtn_arena *arena;      /* borrowed; its blocks register by use     */
    uint64_t clock;               /* counts uses of arena blocks              */
    int n, capacity;              /* of `regions`                             */
    struct dtn_verbs_region *regions; /* sorted by start                      */
    uint64_t bytes;               /* in all regions, once for all rails       */
    const struct dtn_verbs_rail *refused; /* rail on which registering failed */
    unsigned long registered;     /* counter: regions added                   */
    unsigned long hits;           /* counter: lookups that found one          */
    struct dtn_verbs_keys keys;   /* of the regions, on all rails             */
};

/* The region that holds [mem, mem + size); a block of the arena is registered
 * now if it is new.  NULL with errno: EFAULT for other memory that was not
 * adopted, else why registering failed.  Valid until the next call.
 */
struct dtn_verbs_region *dtn_verbs_memory_get(struct dtn_verbs_memory *memory,
                                              const void *mem, size_t size);

/* Register memory of the user's, until it is disowned; NULL with errno. */
struct dtn_verbs_region *dtn_verbs_memory_adopt(struct dtn_verbs_memory *memory,
                                                void *mem, size_t size);
void dtn_verbs_memory_disown(struct dtn_verbs_memory *memory, void *mem,
                             size_t size);
void dtn_verbs_memory_fini(struct dtn_verbs_memory *memory);

/* Register [mem, mem + size) on all rails, for peers to write; false with
 * errno, and then on none.  Never with relaxed ordering: the bytes could then
 * land after the signal behind them, which is polled for.
 */
bool dtn_verbs_register(struct dtn_verbs_memory *memory, void *mem, size_t size,
                        struct ibv_mr *mr[DTN_MAX_RAILS]);
void dtn_verbs_deregister(struct dtn_verbs_memory *memory,
                          struct ibv_mr *mr[DTN_MAX_RAILS]);

/* A name that was given out is not used any more. */
void dtn_verbs_memory_forget(struct dtn_verbs_memory *memory,
                             struct dtn_remote name);

/* May peers write to [mem, mem + size) with that key? */
bool dtn_verbs_memory_open(const struct dtn_verbs_memory *memory,
                           const void *mem, size_t size, uint32_t key);

#endif

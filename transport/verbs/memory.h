/* memory.h - memory regions, registered once */
#ifndef DTN_TRANSPORT_VERBS_MEMORY_H
#define DTN_TRANSPORT_VERBS_MEMORY_H

#include "cluster/cluster.h"
#include "transport/verbs/keys.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_arena;
struct dtn_exporter;
struct dtn_remote;
struct dtn_verbs_rail;

#define DTN_VERBS_ADOPTED UINT64_MAX /* the user's: stays until disowned */

/* A range that is registered on every rail. */
struct dtn_verbs_region {
    unsigned char *start;         /* its first byte                           */
    size_t size;                  /* in bytes                                 */
    struct ibv_mr *mr[DTN_MAX_RAILS]; /* on each rail                         */
    int row;                      /* in the table of keys; -1: none           */
    bool on_device;               /* no CPU accesses it                       */
    int names;                    /* given out and not taken back             */
    uint64_t used;                /* clock of its last use, or ADOPTED        */
};

/* All regions of this rank. */
struct dtn_verbs_memory {
    struct dtn_verbs_rail *rails; /* [nrails] borrowed                        */
    int nrails;                   /* devices that know each region            */
    struct dtn_arena *arena;      /* borrowed; its blocks register by use     */
    const struct dtn_exporter *exporter; /* of a device; NULL: there is none  */
    bool device_refused;          /* its memory could not be registered, and  */
                                  /* is not tried again                       */
    char why_refused[500];        /* the reason, in words                     */
    bool unexported;              /* the last export of its memory failed     */
    int dmabuf_errno;             /* why a card refused a dma-buf last; 0:    */
                                  /* never                                    */
    uint64_t clock;               /* counts uses of arena blocks              */
    int n, capacity;              /* of `regions`                             */
    struct dtn_verbs_region *regions; /* sorted by start                      */
    uint64_t bytes;               /* in all regions, once for all rails       */
    const struct dtn_verbs_rail *refused; /* rail on which registering failed */
    unsigned long registered;     /* counter: regions added                   */
    unsigned long hits;           /* counter: lookups that found one          */
    struct dtn_verbs_keys keys;   /* of the regions, on all rails             */
};

/* The region that holds [mem, mem + size); a block of the arena, or of the
 * device's arena, is registered now if it is new.  NULL with errno: EFAULT for
 * other memory that was not adopted, else why registering failed.  Valid until
 * the next call.
 */
struct dtn_verbs_region *dtn_verbs_memory_get(struct dtn_verbs_memory *memory,
                                              const void *mem, size_t size);

/* Register memory of the user's, until it is disowned; NULL with errno. */
struct dtn_verbs_region *dtn_verbs_memory_adopt(struct dtn_verbs_memory *memory,
                                                void *mem, size_t size);
void dtn_verbs_memory_disown(struct dtn_verbs_memory *memory, void *mem,
                             size_t size);
void dtn_verbs_memory_fini(struct dtn_verbs_memory *memory);

/* A name that was given out is not used any more. */
void dtn_verbs_memory_forget(struct dtn_verbs_memory *memory,
                             struct dtn_remote name);

/* Does no CPU access [mem, mem + size)? */
bool dtn_verbs_memory_on_device(const struct dtn_verbs_memory *memory,
                                const void *mem, size_t size);

/* Some region of the device, for a card to read; NULL: none is registered. */
const struct dtn_verbs_region *
dtn_verbs_memory_of_device(const struct dtn_verbs_memory *memory);

/* May this CPU write to [mem, mem + size) for a peer that has that key? */
bool dtn_verbs_memory_open(const struct dtn_verbs_memory *memory,
                           const void *mem, size_t size, uint32_t key);

#endif

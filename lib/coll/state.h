/* state.h - what this room keeps for a context */
#ifndef DTN_COLL_STATE_H
#define DTN_COLL_STATE_H

#include "base/lru.h"
#include "base/ranks.h"
#include "coll/repeat.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_models;
struct dtn_recorded;
struct dtn_redops;
struct dtn_exec_run;
struct dtn_device_words;

/* The number of groups that are kept. */
enum { DTN_KEPT_GROUPS = 8 };

/* The bound of calls of a size, fuse.c. */
struct dtn_pack_known {
    const struct dtn_ranks *ranks;     /* of the calls; NULL: no entry        */
    size_t bytes;                 /* of a block                               */
    size_t bound;                 /* dtn_pack_bound()                         */
    int how;                      /* enum dtn_coll; more: on devices          */
};
enum { DTN_PACK_KNOWN = 64 };

struct dtn_coll_state {
    struct dtn_lru execs;         /* LRU cache by call: execs.c               */
    struct dtn_repeat repeats[DTN_REPEATS];        /* calls that were checked */
    struct dtn_models *models;    /* cost models of groups, or NULL           */
    struct dtn_pack_known packs[DTN_PACK_KNOWN];   /* by size and collective  */
    struct dtn_redops *redops;    /* reductions made at run time, or NULL     */
    struct dtn_recorded *recorded;     /* calls of an open group, or NULL     */
    struct dtn_recorded *kept[DTN_KEPT_GROUPS];    /* [nkept] groups that     */
                                  /* ended, the oldest first                  */
    int nkept;                    /* used elements of kept                    */
    struct dtensor_request *pending;   /* the first that has not ended, or    */
                                       /* NULL                                */
    struct dtensor_request *pending_last;   /* the last one; valid if there   */
                                            /* is a first                     */
    const struct dtn_exec_run *_Atomic run;   /* the run that waits for a     */
                                              /* peer, or NULL                */
    struct dtn_exec_run *apart;   /* the started run that has the second      */
                                  /* queue of the device, or NULL             */
    struct dtn_device_words *words;   /* for signals of devices, or NULL      */
    struct dtn_ranks everyone;    /* all ranks of the world                   */
    size_t npeers;                /* the world's ranks; 0: it only plans      */
    struct dtn_coll_peer {
        bool busy;                /* an active request names it               */
        int edge;                 /* index of its edge in the last group of   */
                                  /* messages                                 */
        uint32_t messages[2];     /* number of sends to it, receives from it  */
    } *peers;                     /* [npeers] sparse: those met take memory   */
};

static inline struct dtn_coll_state *dtn_coll_of(const struct dtensor_ctx *ctx)
{
    return ctx->slots[DTN_ROOM_COLL].state;
}

/* Fill the slot of this room.   Errors: ENOMEM */
int dtn_coll_init(struct dtensor_ctx *ctx, struct dtensor_error *err);

#endif

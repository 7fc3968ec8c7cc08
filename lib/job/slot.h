/* slot.h - state that higher rooms keep in a context */
#ifndef DTN_JOB_SLOT_H
#define DTN_JOB_SLOT_H

#include "dtensor.h"

/* The rooms with a slot, from the lowest to the highest. */
enum dtn_room {
    DTN_ROOM_MESH,
    DTN_ROOM_COLL,
    DTN_ROOM_LAYOUT,
    DTN_ROOM_REDIST,
    DTN_ROOM_RANDOM,
    DTN_ROOM_OP,
    DTN_ROOM_OWN,                 /* op too: operators of the program         */
    DTN_ROOM_DEBUG,
    DTN_ROOMS
};

/* The slot ctx->slots[room]; a room fills it when it first needs it.  finish
 * and destroy may be NULL.
 */
struct dtn_slot {
    void *state;                  /* the room's own struct; NULL: not yet     */
    void (*finish)(struct dtensor_ctx *ctx);   /* by dtensor_fini(), while    */
                                  /* peers are connected: free what uses them */
                                  /* or the arena                             */
    void (*destroy)(void *state); /* when nothing holds the context any more  */
};

/* Finish all slots, the lowest room first: coll ends the requests that rooms
 * above it have started before these rooms free their plans.
 */
void dtn_slots_finish(struct dtensor_ctx *ctx);

/* Destroy all slots, the highest room first. */
void dtn_slots_destroy(struct dtensor_ctx *ctx);

#endif

/* slot.c - state that higher rooms keep in a context
 *
 * The context does not know the state of coll or random.  Each room has one
 * slot: a pointer, a function that finishes it and one that destroys it.  For
 * example, the first redistribute of a program puts its plan cache into the
 * slot DTN_ROOM_REDIST.  In a program without a redistribute that slot stays
 * empty.
 */
#include "job/slot.h"
#include "job/ctx.h"
#include "dtensor.h"

void dtn_slots_finish(struct dtensor_ctx *ctx)
{
    for (int room = 0; room < DTN_ROOMS; room++)
        if (ctx->slots[room].state && ctx->slots[room].finish)
            ctx->slots[room].finish(ctx);
}

void dtn_slots_destroy(struct dtensor_ctx *ctx)
{
    for (int room = DTN_ROOMS - 1; room >= 0; room--) {
        struct dtn_slot *slot = &ctx->slots[room];

        if (slot->state && slot->destroy)
            slot->destroy(slot->state);
        *slot = (struct dtn_slot){ 0 };
    }
}

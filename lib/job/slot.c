/* slot.c - what each room above keeps for a context
 *
 * The context does not know what coll or random keep for it, only that each
 * room has one slot: a pointer, how to finish it and how to destroy it.  The
 * first redistribute of a program puts the cache of plans into slot
 * DTN_ROOM_REDIST; a program that makes none leaves it empty, and ending such a
 * context does not touch it.
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

/* bounce.c - the bounce buffers of a context
 *
 * Each run takes the buffers that it needs and gives them back at its end, so
 * calls that are started together do not wait for each other.  A loop of
 * collectives on 2 MiB from malloc() takes the same two buffers in every turn.
 * A buffer that is too small for the next call is freed before a larger one is
 * allocated: calls of 1, 2, ... 64 MiB do not keep 127 MiB.
 */
#include "job/bounce.h"
#include "device/memory.h"
#include "job/ctx.h"
#include "transport/arena.h"

#include <stdint.h>
#include <stdlib.h>

/* From here on blocks of the arena begin at a page: so a pinned buffer shares
 * no page with other memory.
 */
#define PINNED_MIN_BYTES ((size_t)64 << 10)

static void bounce_free(struct dtensor_ctx *ctx, struct dtn_bounce *bounce)
{
    if (bounce->pinned)
        bounce->pinned->ops->unpin(bounce->pinned, bounce->mem);
    dtn_arena_free(&ctx->arena, bounce->mem);
    free(bounce);
}

static struct dtn_bounce *bounce_unlink(struct dtensor_ctx *ctx,
                                        struct dtn_bounce **link)
{
    struct dtn_bounce *bounce = *link;

    *link = bounce->next;
    ctx->bounces.free_bytes -= bounce->bytes;
    return bounce;
}

/* Free the largest of one use. */
static void bounce_drop(struct dtensor_ctx *ctx, struct dtn_bounce **link)
{
    while (*link && (*link)->next)
        link = &(*link)->next;
    if (*link)
        bounce_free(ctx, bounce_unlink(ctx, link));
}

/* The use that has the largest free buffer. */
static enum dtn_bounce_use bounces_largest(const struct dtn_bounces *bounces)
{
    enum dtn_bounce_use largest = DTN_BOUNCE_IN;
    size_t bytes = 0;

    for (int use = 0; use < DTN_BOUNCE_USES; use++)
        for (const struct dtn_bounce *b = bounces->free[use]; b; b = b->next)
            if (b->bytes > bytes) {
                bytes = b->bytes;
                largest = (enum dtn_bounce_use)use;
            }
    return largest;
}

static struct dtn_bounce *bounce_make(struct dtensor_ctx *ctx,
                                      enum dtn_bounce_use use,
                                      const struct dtn_memory *pins,
                                      size_t bytes)
{
    const size_t page = ctx->arena.backing.page_bytes;
    struct dtn_bounce *bounce = calloc(1, sizeof *bounce);

    if (!bounce)
        return NULL;
    if (pins && bytes < PINNED_MIN_BYTES)
        bytes = PINNED_MIN_BYTES;
    if (pins)
        bytes = (bytes + page - 1) / page * page;
    *bounce = (struct dtn_bounce){ .use = use, .bytes = bytes, .pinned = pins,
                                   .mem = dtn_arena_alloc(&ctx->arena, bytes) };
    if (!bounce->mem) {
        free(bounce);
        return NULL;
    }
    if (pins)
        pins->ops->pin(pins, bounce->mem, bytes);
    return bounce;
}

struct dtn_bounce *dtn_bounce_take(struct dtensor_ctx *ctx,
                                   enum dtn_bounce_use use,
                                   const struct dtn_memory *memory,
                                   size_t bytes)
{
    const struct dtn_memory *pins = memory->ops->pin ? memory : NULL;
    struct dtn_bounce **link = &ctx->bounces.free[use], *bounce;

    while (*link && ((*link)->bytes < bytes
                     || (pins && (*link)->pinned != pins)))
        link = &(*link)->next;
    if (*link) {
        bounce = bounce_unlink(ctx, link);
    } else {
        bounce_drop(ctx, &ctx->bounces.free[use]);
        bounce = bounce_make(ctx, use, pins, bytes);
    }
    ctx->bounces.ntaken += bounce != NULL;
    return bounce;
}

void dtn_bounce_give(struct dtensor_ctx *ctx, struct dtn_bounce *bounce)
{
    const uint64_t bound = ctx->world.cluster->redistribute.max_scratch_bytes;
    struct dtn_bounces *bounces = &ctx->bounces;
    struct dtn_bounce **link;

    bounces->ntaken--;
    link = &bounces->free[bounce->use];
    while (*link && (*link)->bytes < bounce->bytes)
        link = &(*link)->next;
    bounce->next = *link;
    *link = bounce;
    bounces->free_bytes += bounce->bytes;
    while (bounces->free_bytes > bound)
        bounce_drop(ctx, &bounces->free[bounces_largest(bounces)]);
}

void dtn_bounces_fini(struct dtensor_ctx *ctx)
{
    for (int use = 0; use < DTN_BOUNCE_USES; use++)
        while (ctx->bounces.free[use])
            bounce_drop(ctx, &ctx->bounces.free[use]);
}

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

/* Parts are taken in turn from so many bytes.  A store to a cache line that a
 * peer has read lately waits until the peer's copy is invalid.  If half a
 * megabyte of other lines was used since, it does not wait.  More than that
 * leaves the L2 cache.  us of a call of two ranks between near CPUs, by how
 * much is used in turn:
 *
 *                            one part   256 KiB   512 KiB   1 MiB
 *      allreduce of 32 KiB        5.2       3.9       2.5     2.5
 *      allgather of 64 KiB        5.5       3.0       3.1     3.4
 *      allgather of 128 KiB       9.3       5.3       5.3     6.0
 *      allreduce of 512 KiB      32.4      31.0      38.9    43.0
 */
#define TURN_BYTES ((size_t)512 << 10)
#define PARTS_MAX 64                  /* of a buffer                          */
#define PART_ALIGN ((size_t)4096)     /* parts begin at a page                */

static void bounce_free(struct dtensor_ctx *ctx, struct dtn_bounce *bounce)
{
    if (bounce->pinned)
        bounce->pinned->ops->unpin(bounce->pinned, bounce->base);
    dtn_arena_free(&ctx->arena, bounce->base);
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
    *bounce = (struct dtn_bounce){
        .use = use, .bytes = bytes, .pinned = pins,
        .base = dtn_arena_alloc(&ctx->arena, bytes) };
    if (!bounce->base) {
        free(bounce);
        return NULL;
    }
    if (pins)
        pins->ops->pin(pins, bounce->base, bytes);
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
    if (!bounce)
        return NULL;
    bounce->mem = bounce->base;
    ctx->bounces.ntaken++;
    return bounce;
}

static size_t part_bytes(size_t bytes)
{
    return (bytes + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
}

int dtn_bounce_parts(const struct dtensor_ctx *ctx, size_t bytes)
{
    const uint64_t kept = ctx->world.cluster->redistribute.max_scratch_bytes;

    if (bytes == 0 || bytes > TURN_BYTES / 2
        || kept < (uint64_t)TURN_BYTES * DTN_BOUNCE_USES)
        return 1;
    return (int)(TURN_BYTES / part_bytes(bytes)) < PARTS_MAX
         ? (int)(TURN_BYTES / part_bytes(bytes)) : PARTS_MAX;
}

struct dtn_bounce *dtn_bounce_take_next(struct dtensor_ctx *ctx,
                                        enum dtn_bounce_use use,
                                        const struct dtn_memory *memory,
                                        size_t bytes)
{
    const size_t part = part_bytes(bytes);
    const size_t all = part * (size_t)dtn_bounce_parts(ctx, bytes);
    struct dtn_bounce *bounce = dtn_bounce_take(ctx, use, memory, all);

    if (!bounce)
        return NULL;
    bounce->next_offset = (bounce->next_offset + part - 1) / part * part;
    if (bounce->next_offset + part > all)
        bounce->next_offset = 0;
    bounce->mem = bounce->base + bounce->next_offset;
    bounce->next_offset += part;
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

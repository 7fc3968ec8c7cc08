/* memory.c - memory that peers reach, and staging of memory they do not
 *
 * dtensor_alloc() hands out arena memory: peers load and store it where it
 * stands.  A buffer from elsewhere is copied through a bounce buffer in the
 * arena, one for each direction, that grows to the largest size used, so a
 * loop of collectives over a 2 MiB malloc'ed buffer allocates twice, once.
 */
#include "net/net.h"

#include <string.h>

int dtensor_alloc(struct dtensor_ctx *ctx, size_t size, void **memp,
                  struct dtensor_error *err)
{
    void *mem;

    if (ctx->planning)
        return dtn_ctx_check(ctx, err);
    mem = dtn_arena_alloc(&ctx->arena, size ? size : 1);
    if (!mem)
        return dtn_fail_nomem(err, "alloc", size);
    memset(mem, 0, size);
    *memp = mem;
    return 0;
}

void dtensor_free(struct dtensor_ctx *ctx, void *mem)
{
    if (mem)
        dtn_arena_free(&ctx->arena, mem);
}

void *dtn_ctx_bounce(struct dtensor_ctx *ctx, int which, size_t size)
{
    struct dtn_bounce *bounce = &ctx->bounce[which];
    void *mem;

    if (size <= bounce->size && bounce->mem)
        return bounce->mem;
    mem = dtn_arena_alloc(&ctx->arena, size);
    if (!mem)
        return NULL;
    dtn_arena_free(&ctx->arena, bounce->mem);
    bounce->mem = mem;
    bounce->size = size;
    return mem;
}

/* words.c - words by which devices signal, made when they are first needed */
#include "coll/words.h"
#include "coll/state.h"
#include "device/memory.h"
#include "job/ctx.h"
#include "transport/arena.h"
#include "dtensor.h"

#include <stdlib.h>

struct dtn_device_words *dtn_words_of(struct dtensor_ctx *ctx)
{
    const size_t n = (size_t)ctx->world.size * DTN_NTAGS;
    struct dtn_coll_state *coll = dtn_coll_of(ctx);
    const struct dtn_memory *memory = ctx->device;
    struct dtn_device_words *words = coll->words;

    if (words)
        return words;
    words = calloc(1, sizeof *words + 3 * n * sizeof words->posted[0]);
    if (!words)
        return NULL;
    words->bytes = n * sizeof words->posted[0];
    words->posted = (uint64_t *)(void *)(words + 1);
    words->held = words->posted + n;
    words->seen = words->held + n;
    words->mem = dtn_arena_alloc(memory->arena, words->bytes);
    if (words->mem
        && dtn_memory_done(memory, memory->ops->set(memory, words->mem, 0,
                                                    words->bytes)) == 0)
        return coll->words = words;
    dtn_words_destroy(ctx, words);
    return NULL;
}

void dtn_words_destroy(struct dtensor_ctx *ctx, struct dtn_device_words *words)
{
    if (words && words->mem)
        dtn_arena_free(ctx->device->arena, words->mem);
    free(words);
}

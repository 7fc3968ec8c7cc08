/* pack.c - parts of a call, packed one after another
 *
 * Ten sends of 100 B to one peer, ten small allreduces, and ten small tensors
 * that are redistributed together have this in common: what the program has in
 * ten places is copied to one, runs as one call with the messages of one, and
 * is copied back.  An all-gather of 3 ranks has 3 blocks in OUT; if 100 and 200
 * B are packed, each of these has 300 B: the 100, then the 200.
 */
#include "coll/pack.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "sched/sched.h"
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "dtensor.h"

void dtn_pack_clear(struct dtn_pack *pack)
{
    pack->first = pack->last = NULL;
    for (int s = 0; s < DTN_PACK_SIDES; s++)
        pack->bytes[s] = pack->blocks[s] = 0;
}

void dtn_pack_add(struct dtn_pack *pack, struct dtn_pack_part *part)
{
    part->next = NULL;
    if (pack->last)
        pack->last->next = part;
    else
        pack->first = part;
    pack->last = part;
    for (int s = 0; s < DTN_PACK_SIDES; s++) {
        part->at[s] = pack->bytes[s];
        pack->bytes[s] += part->bytes[s];
    }
}

int dtn_pack_alloc(struct dtensor_ctx *ctx, struct dtn_pack *pack,
                   const char *what, struct dtensor_error *err)
{
    for (int s = 0; s < DTN_PACK_SIDES; s++) {
        const size_t bytes = pack->bytes[s] * pack->blocks[s];

        if (pack->blocks[s] == 0 || pack->room[s] > bytes)
            continue;
        dtn_arena_free(&ctx->arena, pack->mem[s]);
        pack->mem[s] = dtn_arena_alloc(&ctx->arena, bytes + 1);
        pack->room[s] = pack->mem[s] ? bytes + 1 : 0;
        if (!pack->mem[s])
            return dtn_arena_fail(&ctx->arena, what, bytes, err);
    }
    return 0;
}

void dtn_pack_free(struct dtensor_ctx *ctx, struct dtn_pack *pack)
{
    for (int s = 0; s < DTN_PACK_SIDES; s++) {
        dtn_arena_free(&ctx->arena, pack->mem[s]);
        pack->mem[s] = NULL;
        pack->room[s] = 0;
    }
}

/* -------------------------------------------------------------- copying --- */

static int part_copy(struct dtensor_ctx *ctx, const struct dtn_pack *pack,
                     const struct dtn_pack_part *part, enum dtn_space side,
                     size_t block, struct dtensor_error *err)
{
    const size_t bytes = part->bytes[side], from = block * bytes;
    unsigned char *packed = pack->mem[side] + block * pack->bytes[side]
                          + part->at[side];

    return bytes == 0 ? 0
         : side == DTN_IN
         ? dtn_buffer_copy(ctx, packed, (const char *)part->in + from, bytes,
                           err)
         : dtn_buffer_copy(ctx, (char *)part->out + from, packed, bytes, err);
}

int dtn_pack_move(struct dtensor_ctx *ctx, const struct dtn_pack *pack,
                  enum dtn_space side, struct dtensor_error *err)
{
    const struct dtn_pack_part *part;
    int rc = 0;

    for (size_t b = 0; b < pack->blocks[side]; b++)
        for (part = pack->first; rc == 0 && part; part = part->next)
            rc = part_copy(ctx, pack, part, side, b, err);
    return rc;
}

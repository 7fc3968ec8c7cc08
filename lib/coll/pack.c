/* pack.c - parts of a call, packed one after another
 *
 * Ten sends of 100 B to one peer, ten small allreduces, and ten small tensors
 * that are redistributed together have this in common: what the program has in
 * ten places is copied to one, runs as one call with the messages of one, and
 * is copied back.  An all-gather of 3 ranks has 3 blocks in OUT; if 100 and 200
 * B are packed, each of these has 300 B: the 100, then the 200.
 *
 * Something is packed if its copies, and its share of the call of all, cost
 * less than a call of its own.  Messages to one peer always are one.  Copies
 * cost most inside a host, where peers read the packed memory, and to write it
 * again costs more than a message.  There a call is as long as what goes with a
 * signal and is read by nobody: of allreduces of 256 B, 8 are one of 2 KiB;
 * those of 4 KiB run alone.  Over tcp 16 of 4 KiB are one.
 */
#include "coll/pack.h"
#include "coll/choose.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "sched/call.h"
#include "sched/model.h"
#include "sched/sched.h"
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>

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

/* ------------------------------------------------------------- the rule --- */

/* The packed copy is written in each run, and inside a host a peer has read it
 * in the run before.  A store to such a cache line takes 10 ns between near
 * CPUs and 42 ns between far ones, and the model loads a line in 5.3 ns: this
 * many loads are in between.  Ranks that share a CPU share its cache, too.
 * Two ranks with 512 B each: 0.43 us of messages, 0.27 of copies.
 */
#define PACKED_LOADS 6
#define PACKED_LOADS_SHARED 2

/* What goes with a signal. */
#define SIGNAL_BYTES ((size_t)2 << 10)

double dtn_pack_copies(const struct dtn_model *model, double in, double out,
                       bool read)
{
    const double loads = !read ? 0 : model->ranks_per_cpu > 1
                       ? PACKED_LOADS_SHARED : PACKED_LOADS;

    return dtn_model_cache_miss_factor(model, fmax(in, out))
         * (loads * in * model->ns[DTENSOR_COST_INTRA_BYTES]
            + (in + out) * model->ns[DTENSOR_COST_COPIED]);
}

/* Time of the call with so many bytes in a block. */
static double call_ns(const struct dtn_call *call,
                      const struct dtn_model *model, size_t bytes)
{
    const struct dtn_call sized = { .coll = call->coll, .n = call->n,
                                    .dtype = DTENSOR_U8, .count = bytes };
    struct dtn_choice pick;

    dtn_choose(&sized, model, &pick);
    return pick.ns;
}

static double blocks_of(const struct dtn_call *call, enum dtn_contents holds)
{
    return holds == DTN_HOLDS_EACH ? call->n : holds == DTN_HOLDS_ONE;
}

/* Time of a call that is full at `bound`, for each byte. */
static double full_ns(const struct dtn_call *call,
                      const struct dtn_model *model, size_t bound)
{
    const struct dtn_coll_info *shape = &dtn_coll_infos[call->coll];
    const double bytes = (double)bound;
    const bool read = bound > SIGNAL_BYTES && model->reach != DTN_REACH_PUT;

    return (call_ns(call, model, bound)
            + dtn_pack_copies(model, blocks_of(call, shape->in) * bytes,
                              blocks_of(call, shape->out) * bytes, read))
         / bytes;
}

size_t dtn_pack_bound(const struct dtn_call *call,
                      const struct dtn_model *model)
{
    const size_t bytes = call->count * dtensor_dtype_size(call->dtype);
    const size_t most = DTN_PACK_MAX_BYTES
                      / (dtn_call_blocked(call) ? (size_t)call->n : 1);
    const size_t some = most < SIGNAL_BYTES ? most : SIGNAL_BYTES;
    double small, large;
    size_t bound;

    if (bytes == 0 || bytes > most)
        return 0;
    if (call->on_device)
        return most;              /* to launch costs more than copies         */
    small = full_ns(call, model, some);
    large = full_ns(call, model, most);
    bound = small < large ? some : most;
    return bytes <= bound
        && fmin(small, large) * (double)bytes < call_ns(call, model, bytes)
         ? bound : 0;
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

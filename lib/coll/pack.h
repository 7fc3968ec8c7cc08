/* pack.h - parts of a call, packed one after another */
#ifndef DTN_COLL_PACK_H
#define DTN_COLL_PACK_H

#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

enum { DTN_PACK_SIDES = DTN_OUT + 1 };

/* What the program has of a call: a message, a small collective, a tensor.  By
 * side, DTN_IN and DTN_OUT, bytes of a block, and where the first one is among
 * the packed ones.
 */
struct dtn_pack_part {
    const void *in;               /* its blocks, one after another            */
    void *out;                    /* see above                                */
    size_t bytes[DTN_PACK_SIDES]; /* of a block; 0: it is not on that side    */
    size_t at[DTN_PACK_SIDES];    /* bytes                                    */
    struct dtn_pack_part *next;   /* of its pack; NULL: the last one          */
};

/* Block r of the packed memory has block r of each part. */
struct dtn_pack {
    struct dtn_pack_part *first, *last;     /* NULL: none                     */
    size_t bytes[DTN_PACK_SIDES]; /* of a block, all parts together           */
    size_t blocks[DTN_PACK_SIDES];          /* 0: this side is not packed     */
    size_t room[DTN_PACK_SIDES];  /* allocated bytes of mem                   */
    unsigned char *mem[DTN_PACK_SIDES];     /* in the arena, or NULL          */
};

/* What is packed has at most so many bytes on a side, and memory of more is not
 * kept.
 */
#define DTN_PACK_MAX_BYTES ((size_t)64 << 10)

struct dtn_call;
struct dtn_model;

/* The rule.  bound: the most bytes of a block of a call into which a call like
 * this, of so many elements, is packed with others; 0: it runs alone, since
 * that costs less, or since it is large.  copies: nanoseconds to pack `in`
 * bytes and to unpack `out`; `read`: peers on the host read the packed ones.
 * Both are the same on every rank, and for each root, dtype and reduction.
 */
size_t dtn_pack_bound(const struct dtn_call *call,
                      const struct dtn_model *model);
double dtn_pack_copies(const struct dtn_model *model, double in, double out,
                       bool read);

static inline bool dtn_pack_is_large(const struct dtn_pack *pack)
{
    return pack->room[DTN_IN] > DTN_PACK_MAX_BYTES + 1
        || pack->room[DTN_OUT] > DTN_PACK_MAX_BYTES + 1;
}

/* clear: it has no parts, but keeps its memory.  add: behind those it has; the
 * part stays where it is.
 */
void dtn_pack_clear(struct dtn_pack *pack);
void dtn_pack_add(struct dtn_pack *pack, struct dtn_pack_part *part);

/* Memory for the sides that are packed, unless it has enough.  `what` is the
 * call.  On failure free() is to be called, too.
 */
int dtn_pack_alloc(struct dtensor_ctx *ctx, struct dtn_pack *pack,
                   const char *what, struct dtensor_error *err);
void dtn_pack_free(struct dtensor_ctx *ctx, struct dtn_pack *pack);

/* Copy all parts: of IN before the call runs, of OUT when it has ended. */
int dtn_pack_move(struct dtensor_ctx *ctx, const struct dtn_pack *pack,
                  enum dtn_space side, struct dtensor_error *err);
static inline int dtn_pack_copy(struct dtensor_ctx *ctx,
                                const struct dtn_pack *pack,
                                enum dtn_space side, struct dtensor_error *err)
{
    return pack->blocks[side] > 0 ? dtn_pack_move(ctx, pack, side, err) : 0;
}

#endif

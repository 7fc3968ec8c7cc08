/* recorded.h - calls between dtensor_group_begin() and dtensor_group_end() */
#ifndef DTN_COLL_RECORDED_H
#define DTN_COLL_RECORDED_H

#include "coll/pack.h"
#include "coll/request.h"
#include "sched/call.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_fused;
struct dtn_group;

struct dtn_recorded_call {
    struct dtn_pack_part part;    /* its buffers; in NULL: a receive; out     */
                                  /* NULL: a send                             */
    const struct dtn_group *group;  /* ranks of the call                      */
    struct dtn_call call;         /* PAIRS: a send or receive, with count and */
                                  /* dtype only                               */
    int position;                 /* of the peer in the group                 */
    int peer;                     /* its world rank                           */
};

/* The calls of a group, and the memory to run them, which the next group uses
 * again.
 */
struct dtn_recorded {
    struct dtn_call_request run;  /* what the program waits for if it was     */
                                  /* started; it runs all messages            */
    struct dtn_recorded_call *items;   /* [n], in the order of the calls      */
    int n, capacity;              /* used and allocated items                 */
    struct dtn_fused *units;      /* [room] what runs as one                  */
    struct dtn_edge *edges;       /* [room] of the messages                   */
    int room;                     /* allocated units and edges                */
    int nunits;                   /* used units                               */
    bool packs;                   /* messages are packed, in units[0]         */
    int nlast;                    /* messages of the last group here, which   */
                                  /* can run again; they are the first items  */
                                  /* until others are recorded. 0: it cannot  */
};

/* begin: record calls from now on. call, add: record one.  end: run all of
 * them; start: only start them.  They are in dtn_coll_of(ctx)->recorded; NULL:
 * calls run at once.
 */
int dtn_recorded_begin(struct dtensor_ctx *ctx, struct dtensor_error *err);
int dtn_recorded_add_call(const struct dtn_group *group,
                          const struct dtn_call *call, const void *in,
                          void *out, struct dtensor_error *err);
int dtn_recorded_add(struct dtensor_ctx *ctx,
                     const struct dtn_recorded_call *item,
                     struct dtensor_error *err);
int dtn_recorded_end(struct dtensor_ctx *ctx, struct dtensor_error *err);
int dtn_recorded_start(struct dtensor_ctx *ctx,
                       struct dtensor_request **requestp,
                       struct dtensor_error *err);

/* Has the group all messages of a kept one, and nothing else?  Then again:
 * close it, and run what that one ran.  restart: start that.  can_repeat: it
 * has an executable now, so that a later one can, and itself.
 */
static inline bool dtn_recorded_repeats(const struct dtn_recorded *recorded)
{
    return recorded->nlast > 0 && recorded->n == recorded->nlast;
}
int dtn_recorded_again(struct dtensor_ctx *ctx, struct dtn_recorded *recorded,
                       struct dtensor_error *err);
int dtn_recorded_restart(struct dtensor_ctx *ctx, struct dtn_recorded *recorded,
                         struct dtensor_request **requestp,
                         struct dtensor_error *err);
void dtn_recorded_can_repeat(struct dtensor_ctx *ctx,
                             struct dtn_recorded *recorded);

/* room: for the units and edges of all calls, and unit 0.  keep: the group is
 * over, a later one may repeat it or use its memory.  become: the open group,
 * which has no calls yet, goes on as the group i of those that are kept.
 * destroy: NULL is a no-op; what is in the arena goes with that.
 */
int dtn_recorded_room(struct dtensor_ctx *ctx, struct dtensor_error *err);
void dtn_recorded_keep(struct dtensor_ctx *ctx, struct dtn_recorded *recorded);
void dtn_recorded_become(struct dtensor_ctx *ctx, int i);
void dtn_recorded_destroy(struct dtn_recorded *recorded);

static inline bool dtn_recorded_is_message(const struct dtn_recorded_call *item)
{
    return item->call.coll == DTN_COLL_PAIRS;
}

/* Of a message: where its buffer is. */
static inline enum dtn_space dtn_recorded_side(
    const struct dtn_recorded_call *item)
{
    return item->part.in ? DTN_IN : DTN_OUT;
}

#endif

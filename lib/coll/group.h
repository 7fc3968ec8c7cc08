/* group.h - private to the coll room: calls that are written down, made at once */
#ifndef DTN_GROUP_H
#define DTN_GROUP_H

#include "sched/call.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_group;

/* A call as it was made. */
struct dtn_item {
    const struct dtn_group *group;
    struct dtn_call call;         /* PAIRS: a send or receive, of count, dtype */
    const void *in;               /* NULL: a receive                           */
    void *out;
    size_t bytes;                 /* of a send or receive                      */
    size_t at;                    /* where among those of its peer it begins   */
    int peer;                     /* in the world                              */
    int next;                     /* call of its unit, -1: the last            */
};

struct dtn_recorded {
    struct dtn_item *items;
    int n, capacity;
};

/* Calls that are made as one. */
struct dtn_fused {
    struct dtensor_request *request;
    struct dtn_call call;
    int first, last;              /* items, by `next`; unit 0, messages: none  */
    unsigned char *packed[2];     /* IN, OUT; NULL: where they are             */
};

int dtn_group_add(struct dtensor_ctx *ctx, const struct dtn_item *item,
                  struct dtensor_error *err);

/* message.c: start all sends and receives as one, whose edges have room for as
 * many as there are; bring what came packed to where it belongs.
 */
int dtn_messages_start(struct dtensor_ctx *ctx, struct dtn_fused *unit,
                       struct dtn_edge edges[], struct dtensor_error *err);
void dtn_messages_unpack(struct dtensor_ctx *ctx, const struct dtn_fused *unit,
                         struct dtn_edge edges[]);

static inline bool dtn_item_is_message(const struct dtn_item *item)
{
    return item->call.coll == DTN_COLL_PAIRS;
}

#endif

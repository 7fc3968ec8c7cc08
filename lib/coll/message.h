/* message.h - sends and receives */
#ifndef DTN_COLL_MESSAGE_H
#define DTN_COLL_MESSAGE_H

#include "sched/call.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_group;

/* A send or receive.  While the context records calls it is recorded only. */
struct dtn_message {
    bool sends;                   /* else it receives                          */
    int peer;                     /* position in the group                     */
    const void *in;               /* of a send                                 */
    void *out;                    /* of a receive                              */
    size_t count;                 /* elements                                  */
    enum dtensor_dtype dtype;
};
int dtn_message(const struct dtn_group *group, struct dtn_message message,
                struct dtensor_error *err);

/* Recorded calls that are made as one. */
struct dtn_fused {
    struct dtensor_request *request;
    struct dtn_call call;
    int first, last;              /* recorded calls, linked by `next`; not of  */
                                  /* unit 0, which is all messages             */
    unsigned char *packed[2];     /* IN, OUT; NULL: where they are             */
};

/* Start all recorded messages as one; `edges` has room for as many as there are.
 * When it is over: copy what was received packed to its destinations.
 */
int dtn_messages_start(struct dtensor_ctx *ctx, struct dtn_fused *unit,
                       struct dtn_edge edges[], struct dtensor_error *err);
int dtn_messages_unpack(struct dtensor_ctx *ctx, const struct dtn_fused *unit,
                        struct dtn_edge edges[], struct dtensor_error *err);

#endif

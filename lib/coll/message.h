/* message.h - sends and receives */
#ifndef DTN_COLL_MESSAGE_H
#define DTN_COLL_MESSAGE_H

#include "coll/pack.h"
#include "sched/call.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_group;

/* A send or receive.  While a group is open it is only recorded. */
struct dtn_message {
    bool sends;                   /* false: it receives                       */
    int peer;                     /* position in the group                    */
    const void *in;               /* buffer of a send                         */
    void *out;                    /* buffer of a receive                      */
    size_t count;                 /* elements                                 */
    enum dtensor_dtype dtype;     /* of the elements                          */
};
int dtn_message(const struct dtn_group *group, struct dtn_message message,
                struct dtensor_error *err);

/* A unit: recorded calls that run as one. */
struct dtn_fused {
    struct dtensor_request *request;  /* of the started unit                  */
    struct dtn_call call;         /* the call that replaces them              */
    struct dtn_pack pack;         /* their buffers; of unit 0, which has all  */
                                  /* messages, the memory is kept             */
    size_t bound;                 /* the most bytes of a block; 0: it takes   */
                                  /* no other call.  Unused in unit 0         */
};

/* make: one call of all recorded messages, and its buffers; `edges` has room
 * for one edge for each message.  find: its executable.  start: a request of
 * it.
 */
int dtn_messages_make(struct dtensor_ctx *ctx, struct dtn_fused *unit,
                      struct dtn_edge edges[], struct dtensor_error *err);
int dtn_messages_find(struct dtensor_ctx *ctx, struct dtn_fused *unit,
                      struct dtensor_error *err);
int dtn_messages_start(struct dtensor_ctx *ctx, struct dtn_fused *unit,
                       struct dtensor_error *err);

/* Start to send `bytes` at `in` to the next rank of a group of several, and to
 * receive as many from the one before to `out`.
 * Errors: EINVAL  a group of calls is open; and as dtensor_call_start()
 */
int dtn_shift_start(const struct dtn_group *group, const void *in, void *out,
                    size_t bytes, struct dtensor_request **requestp,
                    struct dtensor_error *err);

#endif

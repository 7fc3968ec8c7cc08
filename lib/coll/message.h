/* message.h - sends and receives; calls made at once */
#ifndef DTN_COLL_MESSAGE_H
#define DTN_COLL_MESSAGE_H

#include "coll/state.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_call;
struct dtn_group;
struct dtn_models;
struct dtn_recorded;

/* A send or receive, with a position of the group.  While the context records
 * it is written down only.
 */
struct dtn_message {
    bool sends;
    int peer;
    const void *in;               /* of a send                                 */
    void *out;                    /* of a receive                              */
    size_t count;
    enum dtensor_dtype dtype;
};
int dtn_message(const struct dtn_group *group, struct dtn_message message,
                struct dtensor_error *err);

/* Write calls down from now on; one of them; make them all. */
int dtn_group_begin(struct dtensor_ctx *ctx, struct dtensor_error *err);
int dtn_group_record(const struct dtn_group *group,
                     const struct dtn_call *call, const void *in, void *out,
                     struct dtensor_error *err);
int dtn_group_end(struct dtensor_ctx *ctx, struct dtensor_error *err);
void dtn_recorded_destroy(struct dtn_recorded *recorded);

/* NULL is a no-op. */
void dtn_models_destroy(struct dtn_models *models);

#endif

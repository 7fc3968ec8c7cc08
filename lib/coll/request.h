/* request.h - what was started and is waited for later */
#ifndef DTN_COLL_REQUEST_H
#define DTN_COLL_REQUEST_H

#include "dtensor.h"

#include <stdbool.h>

struct dtn_call;
struct dtn_group;

/* What is done for a request.  begin and poll: 0, EAGAIN (later), or failed. */
struct dtn_work {
    int (*begin)(struct dtensor_request *request, struct dtensor_error *err);
    int (*poll)(struct dtensor_request *request, struct dtensor_error *err);
    void (*end)(struct dtensor_request *request);    /* over; NULL: nothing    */
};

/* Every kind of request begins with this.  It is memory of malloc() unless
 * kept.  The function that makes a request that is not kept holds the context,
 * and dtensor_wait() releases it.
 */
struct dtensor_request {
    const struct dtn_work *work;
    struct dtensor_ctx *ctx;
    const int *ranks;             /* it takes part with, of the world          */
    int nranks;
    bool kept;                    /* dtensor_wait() does not free it           */
    bool waited;                  /* kept: for the last start of it            */
    bool begun;
    bool done;
    int rc;
    struct dtensor_error err;     /* when rc < 0                               */
    struct dtensor_request *next; /* started after it                          */
};

/* Put it at the end of the queue, and do what can be done now. */
void dtn_request_start(struct dtensor_request *request);

/* Finish all there are: for calls that do not go through the queue. */
int dtn_requests_finish(struct dtensor_ctx *ctx, struct dtensor_error *err);

/* Finish them with the failure of the context. */
void dtn_requests_abandon(struct dtensor_ctx *ctx);

/* As dtn_call_run(), but started; a call made ready to be started often. */
int dtn_call_start(const struct dtn_group *group, struct dtn_call *call,
                   const void *in, void *out,
                   struct dtensor_request **requestp,
                   struct dtensor_error *err);
int dtn_persistent_create(const struct dtn_group *group, struct dtn_call *call,
                          const void *in, void *out,
                          struct dtensor_persistent **persistentp,
                          struct dtensor_error *err);

#endif

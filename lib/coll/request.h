/* request.h - operations that are started now and awaited later */
#ifndef DTN_COLL_REQUEST_H
#define DTN_COLL_REQUEST_H

#include "base/ranks.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

struct dtn_cached_exec;
struct dtn_call;
struct dtn_exec;
struct dtn_group;

/* The functions of a kind of request. begin, poll and finish return 0, EAGAIN
 * (later), or an error.
 */
struct dtn_request_ops {
    int (*begin)(struct dtensor_request *request,    /* starts the operation  */
                 struct dtensor_error *err);
    int (*poll)(struct dtensor_request *request,     /* makes progress        */
                struct dtensor_error *err);
    int (*finish)(struct dtensor_request *request,   /* as poll, but may wait */
                  struct dtensor_error *err);        /* for peers; or NULL    */
    void (*end)(struct dtensor_request *request);    /* cleans up, or NULL    */
    void (*release)(struct dtensor_request *request);    /* it was awaited;   */
                                                         /* NULL: free() it   */
};

/* Every kind of request begins with this struct.  The function that makes a
 * request that is not kept holds the context, and dtensor_wait() releases it.
 */
struct dtensor_request {
    const struct dtn_request_ops *work; /* functions of its kind              */
    struct dtensor_ctx *ctx;      /* its context                              */
    struct dtn_ranks ranks;       /* of the world that take part              */
    bool kept;                    /* dtensor_wait() does not release it       */
    bool waited;                  /* kept: its last start was awaited         */
    bool begun;                   /* begin() has succeeded                    */
    bool done;                    /* it has ended                             */
    int rc;                       /* its result, when done                    */
    struct dtensor_error err;     /* the error, if rc < 0                     */
    struct dtensor_request *next;  /* next in the queue                       */
};

/* A collective, or messages. */
struct dtn_call_request {
    struct dtensor_request request;    /* what the program waits for          */
    struct dtn_cached_exec *cached;    /* holds exec; NULL: the request does  */
    struct dtn_exec *exec;        /* what runs                                */
    uint64_t fingerprint;         /* of the call, with its number             */
    const void *in;               /* its input                                */
    void *out;                    /* its output                               */
};

/* The functions of such a request, see struct dtn_request_ops. */
int dtn_call_begin(struct dtensor_request *request, struct dtensor_error *err);
int dtn_call_poll(struct dtensor_request *request, struct dtensor_error *err);
int dtn_call_finish(struct dtensor_request *request, struct dtensor_error *err);

/* Append it to the queue, and do what can be done now. */
void dtn_request_start(struct dtensor_request *request);

/* Finish all requests: for calls that do not use the queue. */
int dtn_requests_finish(struct dtensor_ctx *ctx, struct dtensor_error *err);

/* End all requests with the error of the context. */
void dtn_requests_abandon(struct dtensor_ctx *ctx);

/* As dtn_call_run(), but only started; and a persistent call, which can be
 * started many times.
 */
int dtn_call_start(const struct dtn_group *group, struct dtn_call *call,
                   const void *in, void *out,
                   struct dtensor_request **requestp,
                   struct dtensor_error *err);
int dtn_persistent_create(const struct dtn_group *group, struct dtn_call *call,
                          const void *in, void *out,
                          struct dtensor_persistent **persistentp,
                          struct dtensor_error *err);

#endif

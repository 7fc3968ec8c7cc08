/* watcher.h - reports of what this rank does, for lib/debug while it counts
 *
 * A room that does something worth counting reports when it begins and when it
 * has ended.  What begins later ends earlier, so that activities nest: a call
 * of a module, in it an operator, in it a redistribute, in it a collective.
 */
#ifndef DTN_JOB_WATCHER_H
#define DTN_JOB_WATCHER_H

#include "job/ctx.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

enum dtn_watched {
    DTN_WATCHED_SCOPE,            /* what the program named                   */
    DTN_WATCHED_MODULE,           /* a call of a module                       */
    DTN_WATCHED_BACKWARD,         /* of one noted call                        */
    DTN_WATCHED_OP,               /* a run of an operator                     */
    DTN_WATCHED_REDIST,           /* a redistribute                           */
    DTN_WATCHED_BATCH,            /* redistributes that were told of, at once */
    DTN_WATCHED_CALL,             /* a schedule that is run                   */
    DTN_NWATCHED
};

/* What begins.  All is valid until begin() returns. */
struct dtn_activity {
    enum dtn_watched kind;        /* which fields have a meaning              */
    const char *name;             /* path, operator, or algorithm             */
    const char *type;             /* of a module; else NULL                   */
    int nin, nout;                /* OP, REDIST, BATCH: entries of in, out    */
    const struct dtensor_spec *in;   /* [nin] how tensors lie before          */
    const struct dtensor_spec *out;  /* [nout] how they lie behind            */
    const struct dtensor_spec *want; /* OP: [nin] how it wants them, valid    */
                                  /* until it ends; the same of name and in   */
    bool scatters;                /* REDIST: one rank has the whole           */
    bool continues;               /* it was started, and reported, before     */
    bool joins;                   /* REDIST: it goes with the one before      */
    int coll;                     /* CALL: enum dtn_coll                      */
    uint64_t bytes;               /* CALL: that it will move, by its schedule */
    double ns;                    /* REDIST, CALL: predicted; 0: unknown      */
    uint64_t scope;               /* BACKWARD: watcher->scope when it was     */
                                  /* noted                                    */
};

/* Something that was only started when it was reported. */
struct dtn_flight {
    uint64_t epoch;               /* of the watcher; 0: nothing               */
    int64_t since_ns;             /* when it began                            */
    int what;                     /* as the watcher understands it            */
};

struct dtn_watcher {
    /* An activity begins; the last one that has begun has ended. */
    void (*begin)(struct dtn_watcher *watcher,
                  const struct dtn_activity *activity);
    void (*end)(struct dtn_watcher *watcher);  /* see above                   */
    /* What was started has been done. */
    void (*landed)(struct dtn_watcher *watcher,
                   const struct dtn_flight *flight);
    struct dtn_flight flight;     /* of the last activity that has ended      */
    uint64_t mapped;              /* bytes that were loaded from, or copied   */
                                  /* to, memory of peers that is mapped       */
    uint64_t scope;               /* the open scope, for notes of a tape      */
    struct dtn_cause {            /* of the next redistribute                 */
        const char *op;           /* for whom, or NULL                        */
        int operand;              /* which of its tensors                     */
        const char *why;          /* static storage; NULL: none was told      */
    } cause;
};

/* What was started has been done, reported or not. */
static inline void dtn_watch_landed(const struct dtensor_ctx *ctx,
                                    struct dtn_flight *flight)
{
    if (ctx->watcher && flight->epoch)
        ctx->watcher->landed(ctx->watcher, flight);
    flight->epoch = 0;
}

/* Say why the next redistribute is made.  `op` is valid until it begins. */
static inline void dtn_watch_cause(const struct dtensor_ctx *ctx,
                                   const char *op, int operand,
                                   const char *why)
{
    if (ctx->watcher)
        ctx->watcher->cause = (struct dtn_cause){ op, operand, why };
}

#endif

/* path.h - how buffers of a device reach the peers, in words */
#ifndef DTN_JOB_PATH_H
#define DTN_JOB_PATH_H

#include <stdbool.h>
#include <stdint.h>

struct dtensor_ctx;

/* What the last run on a device did with its buffers. */
struct dtn_path {
    uint64_t call;                /* ctx->calls of that run                   */
    char why[320];                /* why a buffer was staged; "": all were    */
                                  /* reached in place                         */
    bool by_program;              /* a function of the program's reduced      */
    bool streams;                 /* devices signalled each other             */
    bool graph;                   /* what they did was one launch             */
    char plan[600];               /* what dtensor_last_plan() returned        */
};

/* The words on the last call for dtensor_last_plan(). */
const char *dtn_path_plan(struct dtensor_ctx *ctx);

#endif

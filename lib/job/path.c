/* path.c - how buffers of a device reach the peers, in words
 *
 * "allreduce by ring over 4 ranks; GPU memory staged: tcp reaches host memory
 * only".  A run notes what it did (lib/coll/exec/direct.c); the words are put
 * together when somebody asks.
 */
#include "job/path.h"
#include "job/ctx.h"

#include <stdio.h>

const char *dtn_path_plan(struct dtensor_ctx *ctx)
{
    struct dtn_path *path = &ctx->path;

    if (path->call == 0 || path->call != ctx->calls)
        return ctx->plan_text;
    snprintf(path->plan, sizeof path->plan, "%s; GPU memory %s%s%s%s",
             ctx->plan_text, path->why[0] ? "staged: " : "in place", path->why,
             path->by_program ? "; reduced on copies in host memory, by a "
                                "function of the program" : "",
             !path->streams ? "" : path->graph ? ", GPUs signal in a graph"
                                               : ", GPUs signal");
    return path->plan;
}

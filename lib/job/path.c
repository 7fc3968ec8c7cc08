/* path.c - how device buffers reach the peers, as text
 *
 * "allreduce by ring over 4 ranks; GPU memory staged: tcp reaches host memory
 * only".  A run stores what it did (lib/coll/exec/direct.c); the text is
 * composed when the program asks for it.
 */
#include "job/path.h"
#include "job/ctx.h"
#include "job/last_plan.h"

#include <stdio.h>

const char *dtn_path_plan(struct dtensor_ctx *ctx)
{
    struct dtn_path *path = &ctx->path;
    const char *text = dtn_last_plan_text(&ctx->last_plan);

    if (path->call == 0 || path->call != ctx->calls) {
        snprintf(path->plan, sizeof path->plan, "%s", text);
        return path->plan;
    }
    snprintf(path->plan, sizeof path->plan, "%s; GPU memory %s%s%s%s",
             text, path->why[0] ? "staged: " : "in place", path->why,
             path->by_program ? "; reduced on copies in host memory, by a "
                                "function of the program" : "",
             !path->streams ? "" : path->graph ? ", GPUs signal in a graph"
                                               : ", GPUs signal");
    return path->plan;
}

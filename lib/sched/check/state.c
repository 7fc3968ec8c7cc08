/* state.c - ranks, pairs and messages of the checker
 *
 * A violation is reported with the rank, round and step at which it was found:
 * "check: ring: rank 2 of 4, round 1, step 7, put -> 3 ...: not exposed".
 */
#include "base/error.h"
#include "sched/check/check.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdarg.h>
#include <stdbool.h>

int dtn_check_fail(struct dtn_checker *check, int me, const char *fmt, ...)
{
    const struct dtn_sched *sched = &check->scheds[me];
    const struct dtn_check_rank *rank = &check->ranks[me];
    char why[260], step[160] = "end";
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    if (rank->pc < sched->nsteps)
        dtn_step_text(sched, &sched->steps[rank->pc], step, sizeof step);
    return dtn_fail_rank(check->err, DTENSOR_EINVAL, me,
                         "check: %s: rank %d of %d, round %d, step %d, %s: %s",
                         sched->name, me, check->n, rank->round, rank->pc,
                         step, why);
}

struct dtn_check_pair *dtn_check_pair(struct dtn_checker *check, int from,
                                      int to)
{
    return &check->pairs[from * check->n + to];
}

struct dtn_actor dtn_check_actor(const struct dtn_checker *check, int me)
{
    return (struct dtn_actor){ me, check->ranks[me].clock };
}

int64_t dtn_check_count(const struct dtn_checker *check, size_t bytes)
{
    return (int64_t)(bytes / check->cells.elem_bytes);
}

static int check_edges(struct dtn_checker *check, int me, struct dtn_span span,
                       size_t bytes)
{
    const struct dtn_range *shown = &check->scheds[me].exposed_range[DTN_OUT];
    size_t end = span.offset + bytes, shown_end = shown->offset + shown->bytes;
    bool inside = span.offset >= shown->offset && end <= shown_end;
    bool outside = end <= shown->offset || span.offset >= shown_end;

    if (span.rank != me || span.space != DTN_OUT || shown->bytes == 0
        || bytes == 0 || inside || outside)
        return 0;
    return dtn_check_fail(check, me, "accesses OUT+%zu, %zu bytes, across the "
                          "edge of the exposed part", span.offset, bytes);
}

int dtn_check_edges(struct dtn_checker *check, int me,
                    const struct dtn_step *step)
{
    int rc = check_edges(check, me, step->dst, step->bytes);

    return rc != 0 ? rc : check_edges(check, me, step->src, step->bytes);
}

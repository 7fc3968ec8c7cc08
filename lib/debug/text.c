/* text.c - what was counted, as text
 *
 * In each scope stands first what was counted, then what it did itself, then
 * the scopes in it, four columns further right:
 *
 *   all
 *       forward allreduce: 1, 64 bytes predicted, 64 bytes sent in 9.1 us
 *       m.down: linear, 1 run in 21.0 us
 *           forward allreduce: 1, 64 bytes predicted, 64 bytes sent in 9.1 us
 */
#include "base/error.h"
#include "base/units.h"
#include "debug/counters.h"
#include "debug/write.h"
#include "sched/call.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const directions[DTENSOR_NDIRECTIONS] = { "forward",
                                                             "backward" };

/* ", 64 bytes predicted, 64 bytes sent in 9.1 us" */
static void count_print(const struct dtensor_debug_count *count, FILE *stream)
{
    char predicted[32], sent[32], time[32];

    if (count->predicted_bytes > 0 || count->sent_bytes > 0)
        fprintf(stream, ", %s predicted, %s sent",
                dtn_format_size(count->predicted_bytes, predicted,
                                sizeof predicted),
                dtn_format_size(count->sent_bytes, sent, sizeof sent));
    fprintf(stream, " in %s", dtn_format_time(count->time_ns, time,
                                              sizeof time));
    if (count->predicted_ns > 0)
        fprintf(stream, " (%s predicted)",
                dtn_format_time((int64_t)count->predicted_ns, time,
                                sizeof time));
    fputc('\n', stream);
}

static void collectives_print(const struct dtn_counters *counters, int scope,
                              int depth, FILE *stream)
{
    for (int d = 0; d < DTENSOR_NDIRECTIONS; d++)
        for (int k = 0; k < DTENSOR_DEBUG_NKINDS; k++) {
            const struct dtensor_debug_count sum =
                dtn_scope_sum(counters, scope, (enum dtensor_direction)d, k);

            if (sum.calls == 0 && sum.sent_bytes == 0)
                continue;
            fprintf(stream, "%*s%s %s: %" PRIu64, 4 * depth, "",
                    directions[d], dtn_coll_name((enum dtn_coll)k),
                    sum.calls);
            count_print(&sum, stream);
        }
}

static void line_print(const struct dtn_line *line, int depth,
                       enum dtensor_debug_level level, FILE *stream)
{
    fprintf(stream, "%*s%s %s%s", 4 * depth, "", directions[line->direction],
            line->kind == DTN_WATCHED_BACKWARD ? "of " : "", line->name);
    if (line->kind == DTN_WATCHED_REDIST && line->op[0])
        fprintf(stream, " tensor %d of %s", line->operand, line->op);
    if (line->kind == DTN_WATCHED_REDIST)
        fprintf(stream, " (%s)", line->why);
    if (line->kind == DTN_WATCHED_CALL)
        fprintf(stream, " (schedule)");
    fprintf(stream, ": %" PRIu64, line->count.calls);
    count_print(&line->count, stream);
    if (level >= DTENSOR_DEBUG_TENSORS && line->tensors[0])
        fprintf(stream, "%*s%s\n", 4 * depth + 4, "", line->tensors);
}

static void scope_print(const struct dtn_counters *counters, int scope,
                        int depth, enum dtensor_debug_level level,
                        FILE *stream)
{
    const struct dtn_scope *s = &counters->scopes[scope];
    const struct dtn_side_counts *side = s->side;
    char time[32];

    fprintf(stream, "%*s%s", 4 * depth, "", s->name);
    if (s->type[0])
        fprintf(stream, ": %s", s->type);
    if (scope > 0)
        fprintf(stream, ", %" PRIu64 " run%s in %s",
                side[DTENSOR_FORWARD].runs,
                side[DTENSOR_FORWARD].runs == 1 ? "" : "s",
                dtn_format_time(side[DTENSOR_FORWARD].ns, time, sizeof time));
    if (side[DTENSOR_BACKWARD].runs > 0)
        fprintf(stream, ", backward of %" PRIu64 " in %s",
                side[DTENSOR_BACKWARD].runs,
                dtn_format_time(side[DTENSOR_BACKWARD].ns, time,
                                sizeof time));
    fputc('\n', stream);
    collectives_print(counters, scope, depth + 1, stream);
    for (int i = s->line; i >= 0 && level >= DTENSOR_DEBUG_OPERATORS;
         i = counters->lines[i].next)
        line_print(&counters->lines[i], depth + 1, level, stream);
    for (int child = s->first; child >= 0 && level >= DTENSOR_DEBUG_MODULES;
         child = counters->scopes[child].next)
        scope_print(counters, child, depth + 1, level, stream);
}

/* What did not fit. */
static void lost_print(const struct dtn_counters *counters, FILE *stream)
{
    if (counters->scopes_lost + counters->lines_lost + counters->events_lost)
        fprintf(stream, "full: %" PRIu64 " entries of scopes, %" PRIu64
                " lines and %" PRIu64 " events were lost (begin with more "
                "room)\n", counters->scopes_lost, counters->lines_lost,
                counters->events_lost);
}

int dtensor_debug_print(const struct dtensor_ctx *ctx,
                        enum dtensor_debug_level level, FILE *stream,
                        struct dtensor_error *err)
{
    const struct dtn_counters *counters = dtn_counters_of(ctx);

    if (!counters)
        return dtn_fail(err, DTENSOR_EINVAL, "debug_print: nothing was counted "
                        "(call dtensor_debug_begin() first)");
    if ((unsigned)level > DTENSOR_DEBUG_TENSORS)
        return dtn_fail(err, DTENSOR_EINVAL, "debug_print: there is no level "
                        "%d (expected 0 to 3)", (int)level);
    fprintf(stream, "rank %d of %d\n", ctx->world.rank, ctx->world.size);
    lost_print(counters, stream);
    scope_print(counters, 0, 0, level, stream);
    return dtn_write_end("debug_print", stream, err);
}

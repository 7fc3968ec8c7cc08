/* text.c - the counters, written as text
 *
 * Each scope shows first what was counted, then its own activities, then the
 * scopes inside it, indented by four columns:
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

/* " in 9.1 us, 5.0 us of the device" */
static void times_print(int64_t ns, int64_t device_ns, FILE *stream)
{
    char time[32];

    fprintf(stream, " in %s", dtn_format_time(ns, time, sizeof time));
    if (device_ns > 0)
        fprintf(stream, ", %s of the device",
                dtn_format_time(device_ns, time, sizeof time));
}

/* ", 64 bytes predicted, 64 bytes sent in 9.1 us" */
static void count_print(const struct dtensor_debug_count *count, FILE *stream)
{
    char predicted[32], sent[32], time[32];

    if (count->predicted_bytes > 0 || count->sent_bytes > 0)
        fprintf(stream, ", %s predicted, %s sent",
                dtn_format_size(count->predicted_bytes, predicted,
                                sizeof predicted),
                dtn_format_size(count->sent_bytes, sent, sizeof sent));
    times_print(count->time_ns, count->device_ns, stream);
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

/* ", 2 runs in 9.1 us, backward of 2 in 20.1 us" */
static void runs_print(const struct dtn_scope *scope, bool named, FILE *stream)
{
    const struct dtn_side_counts *forward = &scope->side[DTENSOR_FORWARD];
    const struct dtn_side_counts *backward = &scope->side[DTENSOR_BACKWARD];

    if (named) {
        fprintf(stream, ", %" PRIu64 " run%s", forward->runs,
                forward->runs == 1 ? "" : "s");
        times_print(forward->ns, forward->device_ns, stream);
    }
    if (backward->runs > 0) {
        fprintf(stream, ", backward of %" PRIu64, backward->runs);
        times_print(backward->ns, backward->device_ns, stream);
    }
}

static void scope_print(const struct dtn_counters *counters, int scope,
                        int depth, enum dtensor_debug_level level,
                        FILE *stream)
{
    const struct dtn_scope *s = &counters->scopes[scope];

    fprintf(stream, "%*s%s", 4 * depth, "", s->name);
    if (s->type[0])
        fprintf(stream, ": %s", s->type);
    runs_print(s, scope > 0, stream);
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
    if (counters->laps_lost)
        fprintf(stream, "full: %" PRIu64 " times of the device were lost (the "
                "CPU was too far ahead of it)\n", counters->laps_lost);
}

int dtensor_debug_print(const struct dtensor_ctx *ctx,
                        enum dtensor_debug_level level, FILE *stream,
                        struct dtensor_error *err)
{
    const struct dtn_counters *counters =
        dtn_counters_asked(ctx, "debug_print", err);

    if (!counters)
        return DTENSOR_EINVAL;
    if ((unsigned)level > DTENSOR_DEBUG_TENSORS)
        return dtn_fail(err, DTENSOR_EINVAL, "debug_print: there is no level "
                        "%d (expected 0 to 3)", (int)level);
    fprintf(stream, "rank %d of %d\n", ctx->world.rank, ctx->world.size);
    lost_print(counters, stream);
    scope_print(counters, 0, 0, level, stream);
    return dtn_write_end("debug_print", stream, err);
}

/* json.c - the counters, written as JSON
 *
 * Each scope is an object.  It has its collectives, operators, redistributes
 * and schedules, forward and backward, and the scopes inside it.
 */
#include "base/error.h"
#include "base/json.h"
#include "debug/counters.h"
#include "debug/write.h"
#include "sched/call.h"

#include <inttypes.h>
#include <stdio.h>

static void count_write(const struct dtensor_debug_count *count, FILE *stream)
{
    fprintf(stream, "\"calls\":%" PRIu64 ",\"predicted_bytes\":%" PRIu64
            ",\"sent_bytes\":%" PRIu64 ",\"time_ns\":%" PRId64
            ",\"device_ns\":%" PRId64 ",\"predicted_ns\":%.0f", count->calls,
            count->predicted_bytes, count->sent_bytes, count->time_ns,
            count->device_ns, count->predicted_ns);
}

static void collectives_write(const struct dtn_counters *counters, int scope,
                              enum dtensor_direction direction, FILE *stream)
{
    const char *comma = "";

    fprintf(stream, "\"collectives\":[");
    for (int k = 0; k < DTENSOR_DEBUG_NKINDS; k++) {
        const struct dtensor_debug_count sum =
            dtn_scope_sum(counters, scope, direction, k);

        if (sum.calls == 0 && sum.sent_bytes == 0)
            continue;
        fprintf(stream, "%s{\"kind\":", comma);
        dtn_json_string(dtn_coll_name((enum dtn_coll)k), stream);
        fprintf(stream, ",");
        count_write(&sum, stream);
        fprintf(stream, "}");
        comma = ",";
    }
    fprintf(stream, "]");
}

static void lines_write(const struct dtn_counters *counters, int scope,
                        enum dtensor_direction direction, FILE *stream)
{
    const char *comma = "";

    fprintf(stream, "\"operations\":[");
    for (int i = counters->scopes[scope].line; i >= 0;
         i = counters->lines[i].next) {
        const struct dtn_line *line = &counters->lines[i];

        if (line->direction != direction)
            continue;
        fprintf(stream, "%s\n{\"name\":", comma);
        dtn_json_string(line->name, stream);
        fprintf(stream, ",");
        dtn_write_line_fields(line, stream);
        fprintf(stream, ",");
        count_write(&line->count, stream);
        fprintf(stream, "}");
        comma = ",";
    }
    fprintf(stream, "]");
}

static void side_write(const struct dtn_counters *counters, int scope,
                       enum dtensor_direction direction, FILE *stream)
{
    const struct dtn_side_counts *side =
        &counters->scopes[scope].side[direction];

    fprintf(stream, "{\"runs\":%" PRIu64 ",\"time_ns\":%" PRId64
            ",\"device_ns\":%" PRId64 ",", side->runs, side->ns,
            side->device_ns);
    collectives_write(counters, scope, direction, stream);
    fprintf(stream, ",");
    lines_write(counters, scope, direction, stream);
    fprintf(stream, "}");
}

static void scope_write(const struct dtn_counters *counters, int scope,
                        FILE *stream)
{
    const struct dtn_scope *s = &counters->scopes[scope];

    fprintf(stream, "{\"name\":");
    dtn_json_string(s->name, stream);
    fprintf(stream, ",\"type\":");
    dtn_json_string(s->type, stream);
    fprintf(stream, ",\"forward\":");
    side_write(counters, scope, DTENSOR_FORWARD, stream);
    fprintf(stream, ",\"backward\":");
    side_write(counters, scope, DTENSOR_BACKWARD, stream);
    fprintf(stream, ",\"scopes\":[");
    for (int child = s->first; child >= 0;
         child = counters->scopes[child].next) {
        fprintf(stream, "%s\n", child == s->first ? "" : ",");
        scope_write(counters, child, stream);
    }
    fprintf(stream, "]}");
}

int dtensor_debug_json(const struct dtensor_ctx *ctx, FILE *stream,
                       struct dtensor_error *err)
{
    const struct dtn_counters *counters =
        dtn_counters_asked(ctx, "debug_json", err);

    if (!counters)
        return DTENSOR_EINVAL;
    fprintf(stream, "{\"rank\":%d,\"ranks\":%d,\"scopes_lost\":%" PRIu64
            ",\"lines_lost\":%" PRIu64 ",\"events_lost\":%" PRIu64
            ",\"device_times_lost\":%" PRIu64 ",\n\"all\":",
            ctx->world.rank, ctx->world.size, counters->scopes_lost,
            counters->lines_lost, counters->events_lost,
            counters->laps_lost);
    scope_write(counters, 0, stream);
    fprintf(stream, "}\n");
    return dtn_write_end("debug_json", stream, err);
}

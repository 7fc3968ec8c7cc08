/* trace.c - what began and ended when
 *
 * A begin gets a place only if there is one for its end too, so that a trace
 * that is full is a good one: what it has is whole.  It is written in the JSON
 * of Chrome's trace events, which ui.perfetto.dev opens: a process for each
 * rank, times in microseconds since the clock CLOCK_MONOTONIC of the host
 * began, so that the ranks of a host can be laid over each other.
 */
#include "base/error.h"
#include "debug/counters.h"
#include "debug/write.h"

#include <inttypes.h>
#include <stdio.h>

bool dtn_trace_begin(struct dtn_counters *counters, int what, int64_t now_ns)
{
    if (counters->events_room == 0)
        return false;
    if (counters->nevents + counters->events_open + 2 > counters->events_room) {
        counters->events_lost++;
        return false;
    }
    counters->events[counters->nevents++] = (struct dtn_event){
        .ns = now_ns, .what = what, .begins = true };
    counters->events_open++;
    return true;
}

void dtn_trace_end(struct dtn_counters *counters, uint64_t bytes,
                   int64_t now_ns)
{
    counters->events[counters->nevents++] = (struct dtn_event){
        .ns = now_ns, .bytes = bytes, .what = -1 };
    counters->events_open--;
}

/* -------------------------------------------------------------- writing --- */

static const char *const categories[DTN_NWATCHED] = {
    [DTN_WATCHED_SCOPE] = "scope", [DTN_WATCHED_MODULE] = "module",
    [DTN_WATCHED_BACKWARD] = "backward", [DTN_WATCHED_OP] = "operator",
    [DTN_WATCHED_REDIST] = "redistribute", [DTN_WATCHED_BATCH] = "batch",
    [DTN_WATCHED_CALL] = "collective"
};

const char *dtn_watched_word(enum dtn_watched kind)
{
    return categories[kind];
}

static void event_where(const struct dtn_counters *counters, const char *ph,
                        int64_t ns, FILE *stream)
{
    fprintf(stream, ",\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":0,\"ts\":%" PRId64
            ".%03d", ph, counters->ctx->world.rank, ns / 1000,
            (int)(ns % 1000));
}

static void scope_write(const struct dtn_scope *scope, FILE *stream)
{
    fprintf(stream, ",\"cat\":\"%s\",\"name\":",
            categories[scope->type[0] ? DTN_WATCHED_MODULE
                                      : DTN_WATCHED_SCOPE]);
    dtn_write_string(scope->name, stream);
    fprintf(stream, ",\"args\":{\"type\":");
    dtn_write_string(scope->type, stream);
    fprintf(stream, "}}");
}

static void line_write(const struct dtn_line *line, FILE *stream)
{
    fprintf(stream, ",\"cat\":\"%s\",\"name\":", categories[line->kind]);
    dtn_write_string(line->name, stream);
    fprintf(stream, ",\"args\":{");
    dtn_write_line_fields(line, stream);
    fprintf(stream, "}}");
}

static void begin_write(const struct dtn_counters *counters, int what,
                        FILE *stream)
{
    if (what < 0)
        scope_write(&counters->scopes[-1 - what], stream);
    else
        line_write(&counters->lines[what], stream);
}

/* Names of the process, and what the times mean. */
static void head_write(const struct dtn_counters *counters, FILE *stream)
{
    const struct dtn_world *world = &counters->ctx->world;
    char name[400];

    snprintf(name, sizeof name, "rank %d on %s", world->rank,
             world->host_name);
    fprintf(stream, "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{"
            "\"rank\":%d,\"ranks\":%d,\"clock\":\"CLOCK_MONOTONIC\","
            "\"events_lost\":%" PRIu64 "},\n\"traceEvents\":[\n"
            "{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":\"process_name\","
            "\"args\":{\"name\":", world->rank, world->size,
            counters->events_lost, world->rank);
    dtn_write_string(name, stream);
    fprintf(stream, "}},\n{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":"
            "\"process_sort_index\",\"args\":{\"sort_index\":%d}}",
            world->rank, world->rank);
}

int dtensor_debug_trace(const struct dtensor_ctx *ctx, FILE *stream,
                        struct dtensor_error *err)
{
    const struct dtn_counters *counters = dtn_counters_of(ctx);
    int64_t last_ns = 0;

    if (!counters)
        return dtn_fail(err, DTENSOR_EINVAL, "debug_trace: nothing was counted "
                        "(call dtensor_debug_begin() first)");
    if (counters->events_room == 0)
        return dtn_fail(err, DTENSOR_EINVAL, "debug_trace: there is no trace "
                        "(begin with events >= 0)");
    head_write(counters, stream);
    for (int i = 0; i < counters->nevents; i++) {
        const struct dtn_event *event = &counters->events[i];

        last_ns = event->ns;
        event_where(counters, event->begins ? "B" : "E", event->ns, stream);
        if (event->begins)
            begin_write(counters, event->what, stream);
        else
            fprintf(stream, ",\"args\":{\"sent_bytes\":%" PRIu64 "}}",
                    event->bytes);
    }
    for (int i = 0; i < counters->events_open; i++) {
        event_where(counters, "E", last_ns, stream);
        fprintf(stream, "}");
    }
    fprintf(stream, "\n]}\n");
    return dtn_write_end("debug_trace", stream, err);
}

/* trace.c - the recorded events, written as a trace
 *
 * The format is Chrome's trace event JSON, which ui.perfetto.dev opens.  Each
 * rank is a process.  Times are microseconds of the host's CLOCK_MONOTONIC, so
 * the traces of the ranks of one host have a common time axis.
 */
#include "base/error.h"
#include "base/json.h"
#include "debug/counters.h"
#include "debug/write.h"

#include <inttypes.h>
#include <stdio.h>

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

/* Thread 0 is the CPU, thread 1 the device. */
static void event_where(const struct dtn_counters *counters, const char *ph,
                        int64_t ns, FILE *stream)
{
    fprintf(stream, ",\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%" PRId64
            ".%03d", ph, counters->ctx->world.rank, ph[0] == 'X', ns / 1000,
            (int)(ns % 1000));
}

static void scope_write(const struct dtn_scope *scope, FILE *stream)
{
    fprintf(stream, ",\"cat\":\"%s\",\"name\":",
            categories[scope->type[0] ? DTN_WATCHED_MODULE
                                      : DTN_WATCHED_SCOPE]);
    dtn_json_string(scope->name, stream);
    fprintf(stream, ",\"args\":{\"type\":");
    dtn_json_string(scope->type, stream);
    fprintf(stream, "}}");
}

static void line_write(const struct dtn_line *line, FILE *stream)
{
    fprintf(stream, ",\"cat\":\"%s\",\"name\":", categories[line->kind]);
    dtn_json_string(line->name, stream);
    fprintf(stream, ",\"args\":{");
    dtn_write_line_fields(line, stream);
    fprintf(stream, "}}");
}

static void what_write(const struct dtn_counters *counters, int what,
                       FILE *stream)
{
    if (what < 0)
        scope_write(&counters->scopes[-1 - what], stream);
    else
        line_write(&counters->lines[what], stream);
}

static void event_write(const struct dtn_counters *counters,
                        const struct dtn_event *event, FILE *stream)
{
    static const char *const ph[] = { [DTN_EVENT_BEGIN] = "B",
                                      [DTN_EVENT_END] = "E",
                                      [DTN_EVENT_DEVICE] = "X" };

    event_where(counters, ph[event->kind], event->ns, stream);
    if (event->kind == DTN_EVENT_DEVICE)
        fprintf(stream, ",\"dur\":%" PRId64 ".%03d", event->long_ns / 1000,
                (int)(event->long_ns % 1000));
    if (event->kind == DTN_EVENT_END)
        fprintf(stream, ",\"args\":{\"sent_bytes\":%" PRIu64 "}}",
                event->bytes);
    else
        what_write(counters, event->what, stream);
}

/* What is under way does not nest with what the CPU does meanwhile: two
 * events that a number joins.
 */
static void flight_write(const struct dtn_counters *counters,
                         const struct dtn_event *event, FILE *stream)
{
    const int number = (int)(event - counters->events);

    event_where(counters, "b", event->ns, stream);
    fprintf(stream, ",\"id\":%d", number);
    what_write(counters, event->what, stream);
    event_where(counters, "e", event->ns + event->long_ns, stream);
    fprintf(stream, ",\"id\":%d", number);
    what_write(counters, event->what, stream);
}

static void name_write(const struct dtn_counters *counters, int thread,
                       const char *name, FILE *stream)
{
    fprintf(stream, ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":"
            "\"thread_name\",\"args\":{\"name\":\"%s\"}}",
            counters->ctx->world.rank, thread, name);
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
    dtn_json_string(name, stream);
    fprintf(stream, "}},\n{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":"
            "\"process_sort_index\",\"args\":{\"sort_index\":%d}}",
            world->rank, world->rank);
    name_write(counters, 0, "CPU", stream);
    name_write(counters, 1, "device", stream);
}

int dtensor_debug_trace(const struct dtensor_ctx *ctx, FILE *stream,
                        struct dtensor_error *err)
{
    const struct dtn_counters *counters =
        dtn_counters_asked(ctx, "debug_trace", err);
    int64_t last_ns = 0;

    if (!counters)
        return DTENSOR_EINVAL;
    if (counters->events_room == 0)
        return dtn_fail(err, DTENSOR_EINVAL, "debug_trace: there is no trace "
                        "(begin with events >= 0)");
    head_write(counters, stream);
    for (int i = 0; i < counters->nevents; i++) {
        const struct dtn_event *event = &counters->events[i];

        if (event->kind == DTN_EVENT_BEGIN || event->kind == DTN_EVENT_END)
            last_ns = event->ns;
        if (event->kind == DTN_EVENT_FLIGHT)
            flight_write(counters, event, stream);
        else
            event_write(counters, event, stream);
    }
    for (int i = 0; i < counters->events_open; i++) {
        event_where(counters, "E", last_ns, stream);
        fprintf(stream, "}");
    }
    fprintf(stream, "\n]}\n");
    return dtn_write_end("debug_trace", stream, err);
}

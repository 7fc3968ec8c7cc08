/* simulate_trace.c - the events of a simulation in Trace Event Format
 *
 * Each rank is a process: thread 0 has its work, thread 1 what arrives.
 */
#include "tools/plan/plan.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const trace_names[DTENSOR_NSTEP_KINDS] = {
    [DTENSOR_STEP_PUT] = "put", [DTENSOR_STEP_SIGNAL] = "signal",
    [DTENSOR_STEP_WAIT] = "wait", [DTENSOR_STEP_LOAD] = "load",
    [DTENSOR_STEP_LOCAL] = "copy"
};

void plan_trace_begin(FILE *stream)
{
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
          "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"process_name\","
          "\"args\":{\"name\":\"rank 0\"}}", stream);
}

void plan_trace_event(const struct dtensor_simulated_event *event, void *arg)
{
    const bool message = event->kind == DTENSOR_STEP_PUT
                      || event->kind == DTENSOR_STEP_SIGNAL;

    fprintf(arg, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,"
            "\"dur\":%.3f,\"name\":\"%s\",\"args\":{\"call\":%d,\"step\":%d,"
            "\"from\":%d,"
            "\"bytes\":%" PRIu64 "}}", message ? event->peer : event->rank,
            message, event->start_ns / 1e3,
            (event->end_ns - event->start_ns) / 1e3,
            event->reduces ? "reduce" : trace_names[event->kind], event->call,
            event->step, event->rank, event->bytes);
}

void plan_trace_end(FILE *stream)
{
    fputs("\n]}\n", stream);
}

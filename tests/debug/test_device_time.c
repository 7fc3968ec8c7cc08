/* test_device_time.c - counters tell how long the device takes
 *
 * Two ranks on the driver in tests/standin, where each task of a stream begins
 * late.  An operator and an allreduce give the device tasks and return; their
 * times of the device are those that tasks were late, at least, in counters,
 * text, JSON and trace.  What gives the device nothing takes none of its time.
 *
 * Without this test, a kernel could be counted as the microseconds in which it
 * is launched.
 */
#include "dtensor.h"
#include "tests/device/gpu_rank.h"
#include "tests/support/standin.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LATE_US = 20000 };

static struct job *job;

static struct dtensor *ones(const struct dtensor_mesh *mesh)
{
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    good(dtensor_spec_on(&spec, mesh, "R", DTENSOR_F32, 1,
                         (const int64_t[]){ GPU_COUNT }, &job->err));
    good(dtensor_ones(&spec, &t, &job->err));
    return t;
}

/* The time of the device of the line of that operator. */
static int64_t line_ns(const char *name)
{
    struct dtensor_debug_line line;
    int i = 0;

    do
        good(dtensor_debug_line(job->ctx, i++, &line, &job->err));
    while (strcmp(line.name, name) != 0);
    return line.count.device_ns;
}

static int64_t kind_ns(int kind)
{
    struct dtensor_debug_count count;

    good(dtensor_debug_counts(job->ctx, NULL, DTENSOR_FORWARD, kind, &count,
                              &job->err));
    return count.device_ns;
}

static void work(struct gpu_rank *use)
{
    struct dtensor *x = ones(use->mesh), *y = NULL;

    good(dtensor_debug_push(job->ctx, "late", &job->err));
    setenv("DTN_STANDIN_LATE_US", "20000", 1);
    good(dtensor_op("relu", 1, (const struct dtensor *const[]){ x }, NULL, 1,
                    &y, &job->err));
    good(dtensor_allreduce(use->mesh, use->in, use->out, GPU_COUNT, DTENSOR_F32,
                           DTENSOR_SUM, &job->err));
    setenv("DTN_STANDIN_LATE_US", "0", 1);
    good(dtensor_debug_pop(job->ctx, &job->err));
    dtensor_destroy(x);
    dtensor_destroy(y);
}

/* What a function writes, in memory. */
static char written[1 << 16];

static FILE *writing(void)
{
    FILE *stream = fmemopen(written, sizeof written, "w");

    need(stream, "no stream");
    return stream;
}

/* The largest number behind `key` in what was written, after `from`. */
static double largest(const char *from, const char *key)
{
    double most = -1;

    for (const char *at = strstr(written, from); at && (at = strstr(at, key));
         at++)
        most = atof(at + strlen(key)) > most ? atof(at + strlen(key)) : most;
    return most;
}

static void forms(void)
{
    FILE *stream = writing();

    good(dtensor_debug_print(job->ctx, DTENSOR_DEBUG_OPERATORS, stream,
                             &job->err));
    fclose(stream);
    need(strstr(strstr(written, "forward relu"), " ms of the device") <
         strchr(strstr(written, "forward relu"), '\n'), "%s", written);
    stream = writing();
    good(dtensor_debug_json(job->ctx, stream, &job->err));
    fclose(stream);
    need(largest("\"relu\"", "\"device_ns\":") >= LATE_US * 1e3, "%s", written);
    stream = writing();
    good(dtensor_debug_trace(job->ctx, stream, &job->err));
    fclose(stream);
    need(largest("\"ph\":\"X\"", "\"tid\":1,\"ts\":") > 0 &&
         largest("\"ph\":\"X\"", "\"dur\":") >= LATE_US, "%s", written);
}

static void rank_main(int rank, int n, void *arg)
{
    struct gpu_rank use = { .rank = rank };

    job = &use.job;
    gpu_rank_open(&use, rank, n);
    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    good(dtensor_barrier(use.mesh, &job->err));
    need(kind_ns(DTENSOR_DEBUG_ALL) == 0, "a barrier takes %d ns of the device",
         (int)kind_ns(DTENSOR_DEBUG_ALL));
    work(&use);
    good(dtensor_debug_end(job->ctx, &job->err));
    need(line_ns("relu") >= LATE_US * 1000, "relu takes %d ns",
         (int)line_ns("relu"));
    need(kind_ns(DTENSOR_ALLREDUCE) >= LATE_US * 1000, "an allreduce takes %d "
         "ns", (int)kind_ns(DTENSOR_ALLREDUCE));
    forms();
    gpu_rank_close(&use);
}

int main(void)
{
    const char *why = standin_use();

    if (why)
        return skip_all(why);
    ok(gpu_ranks(2, "all=2", "60s", rank_main, NULL) == 0,
       "the time of the device is in counters, text, JSON and trace");
    return done();
}

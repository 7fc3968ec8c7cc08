/* test_overlap.c - a ring sends the next keys while it computes with these
 *
 * Four ranks over TCP.  In every step but the last, forward and backward, the
 * shift of keys and values has begun before the products with those at hand
 * begin; when these end, the transports have taken bytes of it, as the counters
 * of dtensor_debug_begin() say; and only then the rank waits for it.  The
 * products last until then: whenever they ask for progress, they get it until
 * bytes are taken, since a peer may come late.  The trace that
 * dtensor_debug_trace() writes shows the same: the time in which keys are under
 * way lies over that of the products.  Keys that have arrived before these
 * begin are not under way: on a loaded machine a rank may be that late.
 *
 * Without this test, a ring could wait for the next keys first: results are the
 * same, and transfer and arithmetic take turns.
 */
#include "attention/blocks.h"
#include "base/wait.h"
#include "coll/message.h"
#include "coll/request.h"
#include "debug/counters.h"
#include "dtensor.h"
#include "tests/support/job.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, HEADS = 8, ROWS = 256, WIDTH = 16 };
#define PATIENCE_NS INT64_C(60000000000)

static struct job the_job, *job = &the_job;
static int shifts, steps, overlapped;     /* of this rank, in this call       */
static int under_way;             /* steps that begin while a shift runs      */
static int flying;                /* shifts that are not waited for           */
static uint64_t before;           /* bytes taken before the first of them     */
static struct dtensor_request *requests[2];      /* theirs                    */

int __real_dtn_shift_start(const struct dtn_group *group, const void *in,
                           void *out, size_t bytes,
                           struct dtensor_request **requestp,
                           struct dtensor_error *err);
int __wrap_dtn_shift_start(const struct dtn_group *group, const void *in,
                           void *out, size_t bytes,
                           struct dtensor_request **requestp,
                           struct dtensor_error *err);
int __real_dtensor_wait(struct dtensor_request *request,
                        struct dtensor_error *err);
int __wrap_dtensor_wait(struct dtensor_request *request,
                        struct dtensor_error *err);
int __real_dtn_queries_see(const struct dtn_queries *queries,
                           const struct dtn_keys *keys,
                           struct dtensor_error *err);
int __wrap_dtn_queries_see(const struct dtn_queries *queries,
                           const struct dtn_keys *keys,
                           struct dtensor_error *err);
int __real_dtn_queries_back(const struct dtn_queries *queries,
                            const struct dtn_keys *keys,
                            struct dtensor_error *err);
int __wrap_dtn_queries_back(const struct dtn_queries *queries,
                            const struct dtn_keys *keys,
                            struct dtensor_error *err);

/* What transports took from this rank, as the counters have it. */
static uint64_t taken(void)
{
    const struct dtn_counters *counters = dtn_counters_of(job->ctx);

    return counters ? dtn_wire_bytes(counters) : 0;
}

int __wrap_dtn_shift_start(const struct dtn_group *group, const void *in,
                           void *out, size_t bytes,
                           struct dtensor_request **requestp,
                           struct dtensor_error *err)
{
    int rc;

    if (flying == 0)
        before = taken();
    rc = __real_dtn_shift_start(group, in, out, bytes, requestp, err);
    if (rc == 0)
        requests[flying++] = *requestp;
    shifts++;
    return rc;
}

int __wrap_dtensor_wait(struct dtensor_request *request,
                        struct dtensor_error *err)
{
    for (int i = 0; i < flying; i++)
        if (requests[i] == request) {
            requests[i] = requests[--flying];
            break;
        }
    return __real_dtensor_wait(request, err);
}

static bool shift_is_under_way(void)
{
    for (int i = 0; i < flying; i++)
        if (requests[i]->begun && !requests[i]->done)
            return true;
    return false;
}

static bool wanting(void)
{
    return flying > 0 && dtn_counters_of(job->ctx) && taken() == before;
}

/* The progress of these queries, until bytes are taken. */
static int progress(void *whose, struct dtensor_error *err)
{
    const struct dtn_queries *queries = whose;
    const int64_t end_ns = dtn_now_ns() + PATIENCE_NS;
    int rc;

    do
        rc = queries->progress(queries->whose, err);
    while (rc == 0 && wanting() && dtn_now_ns() < end_ns);
    return rc;
}

/* The products of a step. */
static int products(int real(const struct dtn_queries *,
                             const struct dtn_keys *, struct dtensor_error *),
                    const struct dtn_queries *queries,
                    const struct dtn_keys *keys, struct dtensor_error *err)
{
    struct dtn_queries patient = *queries;
    int rc;

    steps++;
    under_way += shift_is_under_way();
    patient.progress = progress;
    patient.whose = (void *)(uintptr_t)queries;
    rc = real(&patient, keys, err);
    overlapped += flying > 0 && taken() > before;
    return rc;
}

int __wrap_dtn_queries_see(const struct dtn_queries *queries,
                           const struct dtn_keys *keys,
                           struct dtensor_error *err)
{
    return products(__real_dtn_queries_see, queries, keys, err);
}

int __wrap_dtn_queries_back(const struct dtn_queries *queries,
                            const struct dtn_keys *keys,
                            struct dtensor_error *err)
{
    return products(__real_dtn_queries_back, queries, keys, err);
}

static int forget(void)
{
    const int n = under_way;

    steps = shifts = overlapped = under_way = 0;
    return n;
}

/* Forward: the keys at hand and 3 that come, by 3 shifts.  Backward: gradients
 * follow them by one step, so that they move in the last step too, and then
 * once more, home.  Returns the steps that begin while a shift is under way.
 */
static int was(int wants_steps, int wants_shifts, int wants_overlapped,
               const char *what)
{
    need(steps == wants_steps && shifts == wants_shifts && flying == 0,
         "%s: %d steps, %d shifts, %d not waited for", what, steps, shifts,
         flying);
    need(overlapped == wants_overlapped, "%s: keys move while this rank "
         "computes in %d of %d steps, not in %d", what, overlapped, steps,
         wants_overlapped);
    return forget();
}

/* The first call connects the ranks and makes the plans of shifts. */
static void first_call(struct dtensor *in[3],
                       const struct dtensor_attention_options *how)
{
    struct dtensor *out = NULL;

    good(dtensor_attention(in[0], in[1], in[2], how, &out, &job->err));
    dtensor_destroy(out);
    forget();
}

/* ---------------------------------------------------------- the trace --- */

enum { SPANS = 32 };

/* From when to when, in microseconds. */
struct span {
    double begin, end;
};

static double number_at(const char *line, const char *key)
{
    const char *at = strstr(line, key);

    need(at, "no %s in %s", key, line);
    return atof(at + strlen(key));
}

/* The products of a direction, in order, and what was under way. */
struct overlap {
    struct span step[SPANS], flight[SPANS];
    int steps, flights;
};

/* One event on a line; what ends is the last that has begun. */
static void event_read(const char *line, const char *direction,
                       struct overlap *seen)
{
    static bool inside;
    static int depth;
    const bool ours = strstr(line, direction) != NULL;

    if (strstr(line, "\"ph\":\"B\"")) {
        if (ours && strstr(line, "attention step")) {
            need(seen->steps < SPANS, "%d steps", seen->steps);
            seen->step[seen->steps].begin = number_at(line, "\"ts\":");
            inside = true;
            depth = 0;
        }
        depth++;
    } else if (strstr(line, "\"ph\":\"E\"") && --depth == 0 && inside) {
        seen->step[seen->steps++].end = number_at(line, "\"ts\":");
        inside = false;
    } else if (ours && strstr(line, "\"ph\":\"b\"")) {
        need(seen->flights < SPANS, "%d flights", seen->flights);
        seen->flight[seen->flights].begin = number_at(line, "\"ts\":");
    } else if (ours && strstr(line, "\"ph\":\"e\"")) {
        seen->flight[seen->flights++].end = number_at(line, "\"ts\":");
    }
}

/* In how many steps something was under way for at least a part of the time,
 * from the beginning on.
 */
static int overlapping(const struct overlap *seen)
{
    int n = 0;

    for (int s = 0; s < seen->steps; s++)
        for (int f = 0; f < seen->flights; f++)
            if (seen->flight[f].begin < seen->step[s].begin &&
                seen->flight[f].end > seen->step[s].begin) {
                n++;
                break;
            }
    return n;
}

static void trace_shows(const char *direction, int wants, int wants_flights)
{
    struct overlap seen = { .steps = 0 };
    char *line = NULL;
    FILE *stream = tmpfile();
    size_t room = 0;

    need(stream, "no file");
    good(dtensor_debug_trace(job->ctx, stream, &job->err));
    rewind(stream);
    while (getline(&line, &room, stream) > 0)
        event_read(line, direction, &seen);
    need(seen.steps == RANKS && seen.flights == wants_flights &&
         overlapping(&seen) == wants, "the trace, %s: %d steps, %d flights, "
         "something is under way in %d steps, not in %d", direction, seen.steps,
         seen.flights, overlapping(&seen), wants);
    free(line);
    fclose(stream);
}

static void rank_main(int rank, int n, void *path)
{
    const int64_t shape[] = { 1, HEADS, ROWS, WIDTH };
    const struct dtensor_attention_options how = {
        .method = DTENSOR_ATTENTION_RING };
    struct dtensor *in[3] = { NULL }, *out = NULL;
    struct dtensor_tape *tape = NULL;
    struct dtensor_spec spec;
    int forward, backward;

    job_open(job, rank, n, path);
    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    for (int i = 0; i < 3; i++) {
        good(dtensor_spec_init(&spec, job->ctx, "world", "S(2)", DTENSOR_F32, 4,
                               shape, &job->err));
        good(dtensor_randn(&spec, NULL, &in[i], &job->err));
        good(dtensor_tape_watch(tape, in[i], &job->err));
    }
    first_call(in, &how);
    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    good(dtensor_tape_begin(tape, &job->err));
    good(dtensor_attention(in[0], in[1], in[2], &how, &out, &job->err));
    forward = was(RANKS, RANKS - 1, RANKS - 1, "forward");
    good(dtensor_tape_end(tape, &job->err));
    good(dtensor_tape_backward(tape, out, out, &job->err));
    backward = was(RANKS, 2 * RANKS - 1, RANKS, "backward");
    good(dtensor_debug_end(job->ctx, &job->err));
    trace_shows("forward", forward, RANKS - 1);
    trace_shows("backward", backward, 2 * RANKS - 1);
    for (int i = 0; i < 3; i++)
        dtensor_destroy(in[i]);
    dtensor_destroy(out);
    dtensor_tape_destroy(tape);
    dtensor_fini(job->ctx);
}

int main(void)
{
    const char *path = ranks_file("tcp", RANKS, NULL);

    ok(ranks_run(RANKS, 120, rank_main, (void *)(uintptr_t)path, NULL) == 0,
       "the next keys move while those at hand are computed with, and the trace "
       "shows it");
    remove(path);
    return done();
}

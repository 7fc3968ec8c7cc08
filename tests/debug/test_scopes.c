/* test_scopes.c - how a program uses the counters
 *
 * Scopes nest, small rooms get full, wrong use is refused, and counting
 * allocates nothing.
 *
 * Without this test, a program that counts could run out of memory, lose what
 * it counted, or be told a wrong reason for a redistribute.
 */
#include "dtensor.h"
#include "tests/debug/counted.h"
#include "tests/module/tree.h"
#include "tests/support/allocations.h"

#include <string.h>

/* --------------------------------------------------------------- scopes --- */

static void moves_once(void)
{
    double one = 1, sum;

    good(dtensor_allreduce(world, &one, &sum, 1, DTENSOR_F64, DTENSOR_SUM,
                           &job->err));
}

static void scopes(void)
{
    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    for (int i = 0; i < 3; i++) {
        good(dtensor_debug_push(job->ctx, "outer", &job->err));
        moves_once();
        good(dtensor_debug_push(job->ctx, "inner", &job->err));
        moves_once();
        good(dtensor_barrier(world, &job->err));
        good(dtensor_debug_pop(job->ctx, &job->err));
        good(dtensor_debug_pop(job->ctx, &job->err));
    }
    for (int i = 0; i < 400; i++)             /* deeper than can be told      */
        good(dtensor_debug_push(job->ctx, "deep", &job->err));
    for (int i = 0; i < 400; i++)
        good(dtensor_debug_pop(job->ctx, &job->err));
    moves_once();
    good(dtensor_debug_end(job->ctx, &job->err));
    need(counted(NULL, DTENSOR_FORWARD, DTENSOR_ALLREDUCE) == 7, "not 7");
    need(counted("outer", DTENSOR_FORWARD, DTENSOR_ALLREDUCE) == 6, "not 6");
    need(counted("outer/inner", DTENSOR_FORWARD, DTENSOR_ALLREDUCE) == 3 &&
         counted("outer/inner", DTENSOR_FORWARD, DTENSOR_BARRIER) == 3 &&
         counted("outer/inner", DTENSOR_FORWARD, DTENSOR_DEBUG_ALL) == 6,
         "inner");
    need(counted(NULL, DTENSOR_BACKWARD, DTENSOR_DEBUG_ALL) == 0, "backward");
}

/* ------------------------------------------------------------ started --- */

static void started(void)
{
    const int64_t shape[] = { 16 };
    struct dtensor_request *request = NULL;
    struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE, .count = 1,
                                 .dtype = DTENSOR_F64, .op = DTENSOR_SUM };
    struct dtensor *rows = NULL, *whole = NULL;
    struct dtensor_plan *plan = NULL;
    struct dtensor_debug_count count;
    double one = 1, sum;

    rows = zeros("S(0)", shape[0]);
    whole = zeros("R", shape[0]);
    good(dtensor_plan_create(dtensor_spec_of(rows), dtensor_spec_of(whole),
                             NULL, &plan, &job->err));
    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    good(dtensor_call_start(world, &call, &one, &sum, &request, &job->err));
    good(dtensor_wait(request, &job->err));
    good(dtensor_plan_start(plan, rows, whole, &request, &job->err));
    good(dtensor_wait(request, &job->err));
    good(dtensor_debug_end(job->ctx, &job->err));
    need(counted(NULL, DTENSOR_FORWARD, DTENSOR_ALLREDUCE) == 1 &&
         counted(NULL, DTENSOR_FORWARD, DTENSOR_ALLGATHER) == 1 &&
         counted(NULL, DTENSOR_FORWARD, DTENSOR_DEBUG_ALL) == 2, "started");
    good(dtensor_debug_counts(job->ctx, NULL, DTENSOR_FORWARD,
                              DTENSOR_DEBUG_ALL, &count, &job->err));
    need(count.sent_bytes > 0 && count.sent_bytes == count.predicted_bytes,
         "%d bytes sent, %d predicted", (int)count.sent_bytes,
         (int)count.predicted_bytes);
    dtensor_plan_destroy(plan);
    dtensor_destroy(rows);
    dtensor_destroy(whole);
}

/* -------------------------------------------------------------- reasons --- */

/* An operator that has its inputs moved, a whole that the program asks for. */
static void reasons(void)
{
    static char is[16384];
    struct dtensor *rows = zeros("S(0)", 8), *y = NULL;
    const struct dtensor *in[] = { rows, rows };
    double whole[64];
    FILE *stream = fmemopen(is, sizeof is, "w");

    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    good(dtensor_op("matmul", 2, in, NULL, 1, &y, &job->err));
    good(dtensor_full_tensor(y, whole, sizeof whole, &job->err));
    good(dtensor_debug_end(job->ctx, &job->err));
    need(stream, "no stream");
    good(dtensor_debug_print(job->ctx, DTENSOR_DEBUG_OPERATORS, stream,
                             &job->err));
    fclose(stream);
    need(strstr(is, "redistribute tensor 1 of matmul (the operator wants it "
                    "so): 1, "), "%s", is);
    need(strstr(is, "redistribute tensor 0 of full_tensor (the program asked "
                    "for the whole): 1, "), "%s", is);
    dtensor_destroy(rows);
    dtensor_destroy(y);
}

/* ----------------------------------------------------------------- full --- */

static void full(void)
{
    static const struct dtensor_debug_options small = { 2, 1, 3 };
    static char is[8192];
    FILE *stream = fmemopen(is, sizeof is, "w");

    good(dtensor_debug_begin(job->ctx, &small, &job->err));
    for (int i = 0; i < 4; i++) {
        good(dtensor_debug_push(job->ctx, "one", &job->err));
        moves_once();
        good(dtensor_debug_push(job->ctx, "two", &job->err));
        moves_once();
        good(dtensor_barrier(world, &job->err));
        good(dtensor_debug_pop(job->ctx, &job->err));
        good(dtensor_debug_pop(job->ctx, &job->err));
    }
    good(dtensor_debug_end(job->ctx, &job->err));
    need(counted("one", DTENSOR_FORWARD, DTENSOR_ALLREDUCE) == 8 &&
         counted("one", DTENSOR_FORWARD, DTENSOR_BARRIER) == 4, "totals");
    good(dtensor_debug_print(job->ctx, DTENSOR_DEBUG_COLLECTIVES, stream,
                             &job->err));
    fclose(stream);
    need(strstr(is, "full: 4 entries of scopes, 4 lines and "), "%s", is);
    need(strstr(is, " 0 events") == NULL, "%s", is);
}

/* Nothing is allocated while it counts. */
static void flat(void)
{
    struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE, .count = 1,
                                 .dtype = DTENSOR_F64, .op = DTENSOR_SUM };
    const int64_t shape[] = { 16 };
    struct dtensor *rows = NULL, *whole = NULL;
    double one = 1, sum;
    long before = 0;

    rows = zeros("S(0)", shape[0]);
    whole = zeros("R", shape[0]);
    for (int i = 0; i < 20; i++) {
        if (i == 5)
            good(dtensor_debug_begin(job->ctx, NULL, &job->err));
        if (i == 5)
            before = allocations;
        good(dtensor_debug_push(job->ctx, i % 2 ? "odd" : "even", &job->err));
        good(dtensor_call_run(world, &call, &one, &sum, &job->err));
        good(dtensor_redistribute_into(rows, whole, &job->err));
        good(dtensor_op_into("neg", 1, (const struct dtensor *const[]){ rows },
                             NULL, 1, (struct dtensor *const[]){ rows },
                             &job->err));
        good(dtensor_debug_pop(job->ctx, &job->err));
    }
    need(allocations == before, "%ld allocations", allocations - before);
    good(dtensor_debug_end(job->ctx, &job->err));
    need(counted("odd", DTENSOR_FORWARD, DTENSOR_ALLGATHER) == 8, "odd");
    dtensor_destroy(rows);
    dtensor_destroy(whole);
}

/* --------------------------------------------------------------- errors --- */

#define refused(call, words)                                                  \
    do {                                                                      \
        int code = (call);                                                    \
        need(code == DTENSOR_EINVAL && strstr(job->err.text, words),          \
             "%s: %d %s", #call, code, job->err.text);                        \
    } while (0)

static int ends(const struct dtensor_forward *call, struct dtensor_error *err)
{
    refused(dtensor_debug_end(job->ctx, &job->err), "has not returned");
    refused(dtensor_debug_pop(job->ctx, &job->err), "no scope here");
    good(dtensor_debug_push(job->ctx, "left open", &job->err));
    return dtensor_clone(call->in[0], &call->out[0], err);
}

static void errors(void)
{
    static const struct dtensor_debug_options negative = { -1, 0, 0 };
    static const struct dtensor_debug_options untraced = { 0, 0, -1 };
    struct dtensor *x = tensor(DTENSOR_F64, 2, (const int64_t[]){ 4, 8 }, 5);
    struct dtensor *y = NULL;
    struct dtensor_debug_count count;
    struct dtensor_module *m = NULL;
    struct dtensor_ctx *ctx = job->ctx;
    struct dtensor_error *err = &job->err;
    char name[97];

    memset(name, 'x', 96);
    name[96] = '\0';
    refused(dtensor_debug_begin(NULL, NULL, err), "ctx is NULL");
    refused(dtensor_debug_begin(ctx, &negative, err), "-1 scopes");
    refused(dtensor_debug_end(ctx, err), "does not count");
    refused(dtensor_debug_print(ctx, 0, stdout, err), "nothing was counted");
    refused(dtensor_debug_json(ctx, stdout, err), "nothing was counted");
    refused(dtensor_debug_trace(ctx, stdout, err), "nothing was counted");
    refused(dtensor_debug_counts(ctx, NULL, 0, 0, &count, err), "nothing was");
    good(dtensor_debug_push(ctx, "off", err));
    good(dtensor_debug_pop(ctx, err));
    good(dtensor_debug_begin(ctx, &untraced, err));
    refused(dtensor_debug_begin(ctx, NULL, err), "counts already");
    refused(dtensor_debug_push(ctx, NULL, err), "NULL");
    refused(dtensor_debug_push(ctx, "", err), "empty");
    refused(dtensor_debug_push(ctx, name, err), "too long");
    refused(dtensor_debug_pop(ctx, err), "no scope here");
    good(dtensor_debug_push(ctx, "open", err));
    refused(dtensor_debug_end(ctx, err), "the scope \"open\" is open");
    good(dtensor_debug_pop(ctx, err));
    good(dtensor_module_create(ctx, "mine", ends, NULL, &m, err));
    good(dtensor_module_apply(m, "", x, &y, err));
    good(dtensor_debug_end(ctx, err));
    refused(dtensor_debug_trace(ctx, stdout, err), "no trace");
    refused(dtensor_debug_print(ctx, 4, stdout, err), "no level 4");
    refused(dtensor_debug_counts(ctx, "no", 0, 0, &count, err), "scope \"no\"");
    refused(dtensor_debug_counts(ctx, NULL, 2, 0, &count, err), "direction 2");
    refused(dtensor_debug_counts(ctx, NULL, 0, 11, &count, err), "kind 11");
    good(dtensor_debug_counts(ctx, "the module/left open", 0, 0, &count, err));
    good(dtensor_debug_begin(ctx, NULL, err)); /* on when the context ends    */
    dtensor_destroy(x);
    dtensor_destroy(y);
    dtensor_module_destroy(m);
}

int main(void)
{
    static const struct { void (*run)(void); const char *claim; } parts[] = {
        { scopes, "scopes nest, and are entered again" },
        { started, "what is started counts once" },
        { reasons, "a redistribute has operator, tensor and reason" },
        { full, "totals stay right when rooms are full" },
        { flat, "nothing is allocated while it counts" },
        { errors, "wrong use is refused in words" }
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        ok(tree_ranks(parts[i].run), "%s", parts[i].claim);
    return done();
}

/* test_debug.c - counters and traces of what a program moves
 *
 * Modules with the styles of PyTorch's golden counts are run while the context
 * counts: the counters say what PyTorch's do, by module and direction.  Bytes
 * are those that a second count in the transports found.  Text is compared with
 * its times left out.  Python reads traces and JSON.
 *
 * Without this test, the counters could say what nobody moved, or a trace could
 * lack an end.
 */
#include "dtensor.h"
#include "job/ctx.h"
#include "sched/sched.h"
#include "tests/debug/counted.h"
#include "tests/module/golden_counts.h"
#include "tests/module/tree.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------- a model --- */

static const struct dtensor_style columns_rows[] = {
    { "m.up", "colwise" }, { "m.down", "rowwise output=S(0)" } };

/* Ones that lie so, or rows of a table. */
static struct dtensor *input_of(const char *placements, bool index)
{
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    if (index)
        return tensor(DTENSOR_I64, 1, (const int64_t[]){ 4 }, 5);
    good(dtensor_spec_on(&spec, world, placements, DTENSOR_F64, 2,
                         (const int64_t[]){ 4, 8 }, &job->err));
    good(dtensor_ones(&spec, &t, &job->err));
    return t;
}

/* Forward and backward of a module; the gradients of the result are ones. */
static void train(struct dtensor_module *top, const char *placements,
                  bool watched, bool index)
{
    struct dtensor *in = input_of(placements, index), *y = NULL, *ones = NULL;
    struct dtensor_tape *tape = NULL;

    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    tree_watch(top, tape);
    if (watched)
        good(dtensor_tape_watch(tape, in, &job->err));
    good(dtensor_tape_begin(tape, &job->err));
    good(dtensor_module_apply(top, "", in, &y, &job->err));
    good(dtensor_tape_end(tape, &job->err));
    good(dtensor_ones(dtensor_spec_of(y), &ones, &job->err));
    good(dtensor_tape_backward(tape, y, ones, &job->err));
    dtensor_destroy(in);
    dtensor_destroy(y);
    dtensor_destroy(ones);
    dtensor_tape_destroy(tape);
}

/* -------------------------------------------------------------- goldens --- */

static void golden_side(const struct golden *g, enum dtensor_direction d,
                        const char *should)
{
    char is[40];

    snprintf(is, sizeof is, "%d %d %d",
             (int)counted(NULL, d, DTENSOR_ALLGATHER),
             (int)counted(NULL, d, DTENSOR_ALLREDUCE),
             (int)counted(NULL, d, DTENSOR_REDUCE_SCATTER));
    need(strcmp(is, should) == 0, "%s %s of %s, direction %d: %s, not %s",
         g->type, g->plan[0].style, g->input, (int)d, is, should);
    need(counted(NULL, d, DTENSOR_ALLGATHER)
         + counted(NULL, d, DTENSOR_ALLREDUCE)
         + counted(NULL, d, DTENSOR_REDUCE_SCATTER)
         == counted(NULL, d, DTENSOR_DEBUG_ALL), "%s: other collectives",
         g->type);
}

static void goldens(void)
{
    for (int i = 0; i < GOLDEN_COUNTS; i++) {
        const struct golden *g = &golden[i];
        struct dtensor_module *top = single(g->type);

        good(dtensor_parallelize(top, world, golden_styles(g), g->plan, -1,
                                 &job->err));
        good(dtensor_debug_begin(job->ctx, NULL, &job->err));
        train(top, g->input, g->watched, strcmp(g->type, "embedding") == 0);
        good(dtensor_debug_end(job->ctx, &job->err));
        golden_side(g, DTENSOR_FORWARD, g->forward);
        golden_side(g, DTENSOR_BACKWARD, g->backward);
        dtensor_module_destroy(top);
    }
}

/* ---------------------------------------------------------------- lines --- */

/* One by one they have what the counters add up. */
static void lines(void)
{
    struct dtensor_module *top = module(NULL, NULL, "sequential");
    struct dtensor_debug_line line = { .scope = "" };
    uint64_t calls[DTENSOR_NDIRECTIONS][DTENSOR_DEBUG_NKINDS] = { { 0 } };
    int n = 0, reasons = 0;

    mlp(top, "m");
    good(dtensor_parallelize(top, world, 2, columns_rows, -1, &job->err));
    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    train(top, "S(0)", true, false);
    good(dtensor_debug_end(job->ctx, &job->err));
    for (; dtensor_debug_line(job->ctx, n, &line, &job->err) == 0; n++) {
        if (line.kind >= 0)
            calls[line.direction][line.kind] += line.count.calls;
        reasons += strcmp(line.what, "redistribute") == 0 &&
                   strcmp(line.scope, "m.down") == 0 && line.why &&
                   strcmp(line.op, "rowwise") == 0 && line.operand == 0 &&
                   strcmp(line.why, "the style's layout of outputs") == 0 &&
                   strstr(line.tensors, "(P(sum)) -> ");
    }
    need(n > 0 && strstr(job->err.text, "there is no line"), "%s after %d "
         "lines", job->err.text, n);
    need(dtensor_debug_line(job->ctx, -1, &line, &job->err) == DTENSOR_EINVAL,
         "there is a line -1");
    need(reasons == 1, "%d reduce-scatters of m.down by its style", reasons);
    for (int d = 0; d < DTENSOR_NDIRECTIONS; d++)
        for (int k = 0; k < DTENSOR_DEBUG_NKINDS; k++)
            need(calls[d][k] == counted(NULL, (enum dtensor_direction)d, k),
                 "direction %d, kind %d: %d by lines", d, k,
                 (int)calls[d][k]);
    dtensor_module_destroy(top);
}

/* ---------------------------------------------------------------- bytes --- */

/* A second count, below that of the counters. */
static uint64_t taken;
static const struct dtn_transport_ops *real;
static struct dtn_transport_ops second;

static int second_put(struct dtn_transport *tp, int peer,
                      struct dtn_remote dst, const void *src, size_t size,
                      size_t *done)
{
    int rc = real->put(tp, peer, dst, src, size, done);

    taken += rc == 0 ? *done : 0;
    return rc;
}

static int second_signal(struct dtn_transport *tp, int peer,
                         const struct dtn_signal *signal,
                         const struct dtn_eager *data)
{
    int rc = real->signal(tp, peer, signal, data);

    if (rc == 0 && signal->tag == DTN_TAG_EAGER)
        taken += signal->len;
    return rc;
}

static void bytes_of(size_t count)
{
    const int64_t shape[] = { (int64_t)count };
    struct dtensor_debug_count count_all;
    struct dtensor *rows = NULL, *columns = NULL;
    double *in = calloc(count, sizeof *in);
    double *out = calloc(count, sizeof *out);

    rows = zeros("S(0)", shape[0]);
    taken = 0;
    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    good(dtensor_allreduce(world, in, out, count, DTENSOR_F64, DTENSOR_SUM,
                           &job->err));
    good(dtensor_redistribute(rows, "S(1)", &columns, &job->err));
    good(dtensor_debug_end(job->ctx, &job->err));
    good(dtensor_debug_counts(job->ctx, NULL, DTENSOR_FORWARD,
                              DTENSOR_DEBUG_ALL, &count_all, &job->err));
    need(taken > 0 && count_all.sent_bytes == taken, "%d bytes sent, the "
         "transport took %d", (int)count_all.sent_bytes, (int)taken);
    need(count_all.predicted_bytes == taken, "%d bytes predicted, %d taken",
         (int)count_all.predicted_bytes, (int)taken);
    need(job->ctx->transports[0]->ops == &second, "the transport's functions "
         "were not given back");
    dtensor_destroy(rows);
    dtensor_destroy(columns);
    free(in);
    free(out);
}

/* Over tcp all bytes are put. */
static void bytes_rank(int rank, int n, void *arg)
{
    struct job the_job;

    job = &the_job;
    job_open(job, rank, n, arg);
    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    real = job->ctx->transports[0]->ops;
    second = *real;
    second.put = second_put;
    second.signal = second_signal;
    job->ctx->transports[0]->ops = &second;
    bytes_of(4);
    bytes_of(20000);
    job->ctx->transports[0]->ops = real;
    dtensor_fini(job->ctx);
}

/* In shared memory ranks load from each other: all ranks together move what
 * the plan says.
 */
static void loads(void)
{
    const int64_t shape[] = { 4096 };
    struct dtensor_debug_count count;
    struct dtensor *rows = NULL, *columns = NULL;
    struct dtensor_plan *plan = NULL;
    uint64_t sum = 0;

    rows = zeros("S(0)", shape[0]);
    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    good(dtensor_redistribute(rows, "S(1)", &columns, &job->err));
    good(dtensor_debug_end(job->ctx, &job->err));
    good(dtensor_debug_counts(job->ctx, NULL, DTENSOR_FORWARD,
                              DTENSOR_ALL_TO_ALL, &count, &job->err));
    good(dtensor_allreduce(world, &count.sent_bytes, &sum, 1, DTENSOR_U64,
                           DTENSOR_SUM, &job->err));
    good(dtensor_plan_create(dtensor_spec_of(rows), dtensor_spec_of(columns),
                             NULL, &plan, &job->err));
    need(sum == dtensor_plan_bytes(plan, -1, -1, -1) && sum > 0,
         "%d bytes moved, %d planned", (int)sum,
         (int)dtensor_plan_bytes(plan, -1, -1, -1));
    dtensor_plan_destroy(plan);
    dtensor_destroy(rows);
    dtensor_destroy(columns);
}

/* ----------------------------------------------------------------- text --- */

/* Take out times, as "12.3 us", and what is predicted of them. */
static void without_times(char *text)
{
    static const char *const units[] = { " ns", " us", " ms", " s", " min" };
    char *to = text, *end;

    while (*text) {
        bool time = false;

        if (isdigit((unsigned char)*text) && to[-1] == ' ') {
            end = text + strspn(text, "0123456789.");
            for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
                const size_t n = strlen(units[u]);

                if (!time && strncmp(end, units[u], n) == 0 &&
                    !isalpha((unsigned char)end[n])) {
                    time = true;
                    text = end + n;
                    *to++ = 'T';
                }
            }
        }
        if (!time && strncmp(text, " (", 2) == 0 &&
            isdigit((unsigned char)text[2]))
            text = strchr(text, ')') + 1;
        else if (!time)
            *to++ = *text++;
    }
    *to = '\0';
}

static const char expected[] =
#include "tests/debug/expected.h"
;

static void text(void)
{
    static char is[16384];
    static const struct dtensor_style columns = { "m", "colwise" };
    struct dtensor_module *top = single("linear");
    FILE *stream = fmemopen(is, sizeof is, "w");

    good(dtensor_parallelize(top, world, 1, &columns, -1, &job->err));
    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    good(dtensor_debug_push(job->ctx, "step", &job->err));
    train(top, "S(0)", true, false);
    good(dtensor_debug_pop(job->ctx, &job->err));
    good(dtensor_debug_end(job->ctx, &job->err));
    need(stream, "no stream");
    for (int level = 0; level <= DTENSOR_DEBUG_TENSORS; level++)
        good(dtensor_debug_print(job->ctx, (enum dtensor_debug_level)level,
                                 stream, &job->err));
    fclose(stream);
    without_times(is);
    if (job->rank == 0 && strcmp(is, expected) != 0) {
        for (char *line = strtok(is, "\n"); line; line = strtok(NULL, "\n"))
            note("%s", line);
        need(false, "the text is not what it should be");
    }
    dtensor_module_destroy(top);
}

/* --------------------------------------------------------------- python --- */

/* The checks of Python read what ranks have written. */
static char folder[] = "/tmp/dtn-debug-XXXXXX";

/* Wait for what rank 0 has made. */
static void wait_for(const char *path)
{
    for (int i = 0; access(path, F_OK) != 0; i++) {
        need(i < 60000, "no %s", path);
        usleep(1000);
    }
}

/* A sum that is under way while rank 0 does something else: the others begin
 * after that.
 */
static void started(void)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE, .count = 1,
                                       .dtype = DTENSOR_F64,
                                       .op = DTENSOR_SUM };
    struct dtensor_request *request = NULL;
    double one = 1, sum;
    char path[100];
    FILE *stream;

    snprintf(path, sizeof path, "%s/meanwhile", folder);
    if (job->rank != 0)
        wait_for(path);
    good(dtensor_call_start(world, &call, &one, &sum, &request, &job->err));
    good(dtensor_debug_push(job->ctx, "meanwhile", &job->err));
    good(dtensor_debug_pop(job->ctx, &job->err));
    if (job->rank == 0) {
        need((stream = fopen(path, "w")), "%s", path);
        fclose(stream);
    }
    good(dtensor_wait(request, &job->err));
}

static void files(void)
{
    struct dtensor_module *top = single("mlp");
    char path[100];
    FILE *stream;

    good(dtensor_parallelize(top, world, 2, columns_rows, -1, &job->err));
    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    good(dtensor_debug_push(job->ctx, "a \"step\"\\\n\xfc", &job->err));
    train(top, "S(0)", true, false);
    started();
    snprintf(path, sizeof path, "%s/open.%d", folder, job->rank);
    need((stream = fopen(path, "w")), "%s", path);
    good(dtensor_debug_trace(job->ctx, stream, &job->err));
    fclose(stream);
    good(dtensor_debug_pop(job->ctx, &job->err));
    good(dtensor_debug_end(job->ctx, &job->err));
    snprintf(path, sizeof path, "%s/trace.%d", folder, job->rank);
    need((stream = fopen(path, "w")), "%s", path);
    good(dtensor_debug_trace(job->ctx, stream, &job->err));
    fclose(stream);
    snprintf(path, sizeof path, "%s/json.%d", folder, job->rank);
    need((stream = fopen(path, "w")), "%s", path);
    good(dtensor_debug_json(job->ctx, stream, &job->err));
    fclose(stream);
    dtensor_module_destroy(top);
}

static void python(void)
{
    const char *source = getenv("top_srcdir");
    char command[600];

    if (system("python3 -c 'import json' >/dev/null 2>&1") != 0) {
        skip("traces and JSON are what they should be", "there is no python3");
        return;
    }
    need(mkdtemp(folder), "no folder");
    ok(tree_ranks(files), "ranks write traces and JSON");
    snprintf(command, sizeof command, "python3 %s/tests/debug/check.py %s "
             "| sed 's/^/# /'", source ? source : ".", folder);
    snprintf(command + strlen(command), 100, "; test ! -e %s/bad", folder);
    ok(system(command) == 0, "Python's json reads them, and finds in them what "
       "it should");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    need(system(command) == 0, "%s", command);
}

int main(void)
{
    static const struct { void (*run)(void); const char *claim; } parts[] = {
        { goldens, "the counters say what PyTorch's golden table does" },
        { lines, "lines add up to the counters" },
        { loads, "bytes that ranks load are those of the plan" },
        { text, "four levels of text are as expected" }
    };
    const char *path = ranks_file("tcp", 2, NULL);

    ok(ranks_run(2, 60, bytes_rank, (void *)(uintptr_t)path, NULL) == 0,
       "bytes sent are those that tcp took, and those predicted");
    remove(path);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        ok(tree_ranks(parts[i].run), "%s", parts[i].claim);
    python();
    return done();
}

/* test_planned.c - dtensor-plan module against the counters of a real run
 *
 * The two-layer MLP, cut by columns and by rows, runs with counters on; then
 * the tool, which has no peers, is asked about the same model, plan and input.
 * Kinds, calls and bytes of its totals must be those that the ranks counted.
 *
 * Without this test, the tool could explain another program than the one that
 * runs.
 */
#include "dtensor.h"
#include "tests/module/tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KINDS = 4 };

static const char file[] =
    "[cluster]\nversion = 1\n"
    "[nodes \"a\"]\nhosts = localhost\nranks = 4\n"
    "[transport]\nconnect_timeout = 60s\nop_timeout = 60s\n"
    "[mesh \"flat\"]\ndims = all=4\n"
    "[mesh \"world\"]\ndims = dp=2, tp=2\n"
    "[plan \"mlp\"]\nmesh = world\ndim = tp\n"
    "m.up = colwise\nm.down = rowwise\n"
    "[plan \"cut\"]\nmesh = flat\n"
    "m.up = colwise\nm.down = rowwise output=S(0)\n. = prepare output=R\n";

static const struct {
    enum dtensor_collective kind;
    const char *what;             /* as the tool calls it                     */
} kinds[KINDS] = {
    { DTENSOR_ALLGATHER, "all-gather" }, { DTENSOR_ALLREDUCE, "allreduce" },
    { DTENSOR_REDUCE_SCATTER, "reduce-scatter" },
    { DTENSOR_ALL_TO_ALL, "all-to-all" }
};

static const struct row {
    const char *plan;             /* of the file                              */
    const char *from;             /* placement of the input                   */
    const char *mesh, *dim;       /* that the plan names                      */
    int calls[KINDS];             /* of each kind                             */
} rows[] = {
    { "mlp", "R", "world", "tp", { 0, 1, 0, 0 } },
    { "mlp", "S(0)", "world", "tp", { 1, 1, 0, 0 } },
    { "mlp", "S(1)", "world", "tp", { 1, 1, 0, 0 } },
    { "cut", "S(0)", "flat", NULL, { 2, 0, 1, 0 } }
};

static const struct row *row;
static char path[] = "/tmp/dtensor-planned-XXXXXX";
static struct dtensor_debug_count *counted;  /* [WORLD][KINDS] of all ranks   */

/* f64[4,8] on the mesh of the row; whole numbers. */
static struct dtensor *input_make(void)
{
    static const int64_t shape[] = { 4, 8 };
    const struct dtensor_mesh *mesh = NULL;
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    good(dtensor_mesh_find(job->ctx, row->mesh, &mesh, &job->err));
    if (row->dim)
        good(dtensor_mesh_slice(mesh, row->dim, &mesh, &job->err));
    good(dtensor_spec_on(&spec, mesh, row->from, DTENSOR_F64, 2, shape,
                         &job->err));
    good(dtensor_zeros(&spec, &t, &job->err));
    return t;
}

static void run(int rank, int n, void *arg)
{
    struct job the_job;
    struct dtensor_module *top;
    struct dtensor *x, *y = NULL;

    (void)arg;
    job = &the_job;
    job_open(job, rank, n, path);
    good(dtensor_mesh_find(job->ctx, "flat", &world, &job->err));
    top = module(NULL, NULL, "sequential");
    mlp(top, "m");
    good(dtensor_parallelize_plan(top, NULL, row->plan, -1, &job->err));
    x = input_make();
    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    good(dtensor_module_apply(top, "", x, &y, &job->err));
    good(dtensor_debug_end(job->ctx, &job->err));
    for (int k = 0; k < KINDS; k++)
        good(dtensor_debug_counts(job->ctx, NULL, DTENSOR_FORWARD,
                                  (int)kinds[k].kind,
                                  &counted[rank * KINDS + k], &job->err));
    dtensor_destroy(y);
    dtensor_destroy(x);
    dtensor_module_destroy(top);
    dtensor_fini(job->ctx);
}

/* What the tool says.  False: it failed. */
static bool plan_ask(char *text, size_t size)
{
    char command[2000];
    size_t n;
    FILE *pipe;

    snprintf(command, sizeof command, "'%s'/dtensor-plan module %s "
             "m.up=linear:8x16 m.act=relu m.down=linear:16x8 --cluster %s "
             "--shape 4x8 --dtype f64 --from '%s'", getenv("top_builddir"),
             row->plan, path, row->from);
    pipe = popen(command, "r");
    if (!pipe)
        return false;
    n = fread(text, 1, size - 1, pipe);
    text[n] = '\0';
    return pclose(pipe) == 0;
}

/* The total of a kind in the text; none is 0. */
static void total_read(const char *text, const char *what, int *callsp,
                       uint64_t *bytesp)
{
    char head[40];
    const char *at;

    *callsp = 0;
    *bytesp = 0;
    snprintf(head, sizeof head, "\ntotal %s: ", what);
    at = strstr(text, head);
    if (at)
        sscanf(at + strlen(head), "%d, %" SCNu64 " bytes", callsp, bytesp);
}

/* Kind k: the tool counts one mesh, on which ranks 0 to size - 1 are. */
static bool kind_agrees(const char *text, int k, int size)
{
    uint64_t bytes = 0, told;
    int calls;
    bool agree = true;

    total_read(text, kinds[k].what, &calls, &told);
    for (int r = 0; r < size; r++) {
        agree = agree && counted[r * KINDS + k].calls == (uint64_t)calls;
        bytes += counted[r * KINDS + k].predicted_bytes;
    }
    agree = agree && calls == row->calls[k] && bytes == told;
    if (!agree)
        printf("# %s: told %d, %" PRIu64 " bytes; counted %" PRIu64 ", %"
               PRIu64 " bytes; expected %d\n", kinds[k].what, calls, told,
               counted[k].calls, bytes, row->calls[k]);
    return agree;
}

static bool row_agrees(void)
{
    static char text[8000];
    bool agree = ranks_run(WORLD, 60, run, NULL, NULL) == 0 &&
                 plan_ask(text, sizeof text);

    for (int k = 0; agree && k < KINDS; k++)
        agree = kind_agrees(text, k, row->dim ? 2 : WORLD);
    if (!agree)
        printf("# %s\n", text);
    return agree;
}

int main(void)
{
    const int fd = mkstemp(path);

    counted = mmap(NULL, sizeof *counted * WORLD * KINDS,
                   PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fd < 0 || write(fd, file, sizeof file - 1) != (ssize_t)sizeof file - 1
        || fchmod(fd, 0600) != 0 || counted == MAP_FAILED)
        return 99;
    close(fd);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        row = &rows[i];
        ok(row_agrees(), "%s of an input %s: what was told is what ran",
           row->plan, row->from);
    }
    unlink(path);
    return done();
}

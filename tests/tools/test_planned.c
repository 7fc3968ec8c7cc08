/* test_planned.c - dtensor-plan module against the counters of a real run
 *
 * A model is called and differentiated with counters on; then the tool, which
 * has no peers, is asked about the same model, plan and input.  Kinds, calls
 * and bytes of its totals, forward and backward, must be those that the ranks
 * counted, and what it says is kept for the backward must be by how much the
 * memory of the first rank has grown.  With DTN_TEST_WIDTH=1024 the layer has
 * that width, 512 rows and f32, and the bytes are printed.  The file names
 * the algorithm of allreduces: ranks that share a CPU would choose another one
 * than the tool, which has none.
 *
 * Without this test, the tool could explain another program than the one that
 * runs.
 */
#include "dtensor.h"
#include "job/ctx.h"
#include "tests/examples/example.h"
#include "tests/examples/transformer.h"
#include "tests/module/tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KINDS = 4, SIDES = 2, BATCH = 2 };

static const char file[] =
    "[cluster]\nversion = 1\n"
    "[nodes \"a\"]\nhosts = localhost\nranks = 4\n"
    "[transport]\nconnect_timeout = 60s\nop_timeout = 60s\n"
    "[tuning]\nallreduce = 0-inf:direct\n"
    "[mesh \"world\"]\ndims = all=4\n"
    "[mesh \"grid\"]\ndims = dp=2, tp=2\n"
    "[plan \"mlp\"]\nmesh = grid\ndim = tp\n"
    "m.up = colwise\nm.down = rowwise\n"
    "[plan \"cut\"]\nmesh = world\n"
    "m.up = colwise\nm.down = rowwise output=S(0)\n. = prepare output=R\n"
    "[plan \"heads\"]\nmesh = world\n"
    "attn.[qkv] = colwise\nattn.out = rowwise\n"
    "mlp.up = colwise\nmlp.down = rowwise\n"
    "[plan \"sequence\"]\nmesh = world\n. = prepare input=S(1) output=R\n"
    "norm? = sequence\nattn = prepare input=R\nattn.[qkv] = colwise\n"
    "attn.out = rowwise output=S(1)\n"
    "mlp.up = colwise\nmlp.down = rowwise output=S(1)\n";

static const char mlp_words[] =
    "m.up=linear:8x16 m.act=relu m.down=linear:16x8";

static int width = 32;            /* of the layer                             */
static int length = 16;           /* of a sequence                            */
static enum dtensor_dtype dtype = DTENSOR_F64;

/* The words of the layer, as wide as that. */
static const char *layer_words(void)
{
    static char words[600];
    const int w = width;

    snprintf(words, sizeof words, "norm1=layer_norm:%d attn.q=linear:%dx%d@in "
             "attn.k=linear:%dx%d@in attn.v=linear:%dx%d@in "
             "attn.heads=heads:%d:causal=1@q,k,v attn.out=linear:%dx%d "
             "sum1=add@in,attn norm2=layer_norm:%d mlp.up=linear:%dx%d "
             "mlp.act=gelu mlp.down=linear:%dx%d sum2=add@sum1,mlp", w, w, w, w,
             w, w, w, w / HEAD, w, w, w, w, 4 * w, 4 * w, w);
    return words;
}

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
    bool layer;                   /* a transformer layer, not the MLP         */
    bool constant;                /* the input needs no gradient              */
    const char *mesh, *dim;       /* that the plan names                      */
    int calls[SIDES][KINDS];      /* of each kind, forward and backward       */
} rows[] = {
    { "mlp", "R", 0, 0, "grid", "tp", { { 0, 1 }, { 0, 1 } } },
    { "mlp", "R", 0, 1, "grid", "tp", { { 0, 1 }, { 0, 0 } } },
    { "mlp", "S(0)", 0, 0, "grid", "tp", { { 1, 1 }, { 0, 0, 1 } } },
    { "mlp", "S(1)", 0, 0, "grid", "tp", { { 1, 1 }, { 0, 0, 1 } } },
    { "cut", "S(0)", 0, 0, "world", NULL, { { 2, 0, 1 }, { 1, 0, 1 } } },
    { "cut", "S(0)", 0, 1, "world", NULL, { { 2, 0, 1 }, { 1 } } },
    { "heads", "R", 1, 0, "world", NULL, { { 0, 2 }, { 0, 2 } } },
    { "sequence", "R", 1, 0, "world", NULL, { { 3, 0, 2 }, { 3, 1, 2 } } },
    { "sequence", "S(1)", 1, 1, "world", NULL, { { 3, 0, 2 }, { 2, 1, 2 } } }
};

static const struct row *row;
static char path[] = "/tmp/dtensor-planned-XXXXXX";

/* What the ranks have counted. */
static struct counted {
    struct dtensor_debug_count count[SIDES][KINDS];
    uint64_t kept;                /* by dtensor_tape_bytes()                  */
    size_t grown;                 /* memory of tensors                        */
} *counted;                       /* [WORLD]                                  */

/* ------------------------------------------------------------------ run --- */

/* Of the shape that the words expect, on the mesh of the row. */
static struct dtensor *input_make(void)
{
    const int64_t small[] = { 4, 8 }, large[] = { BATCH, length, width };
    const struct dtensor_mesh *mesh = NULL;
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    good(dtensor_mesh_find(job->ctx, row->mesh, &mesh, &job->err));
    if (row->dim)
        good(dtensor_mesh_slice(mesh, row->dim, &mesh, &job->err));
    good(dtensor_spec_on(&spec, mesh, row->from, dtype, row->layer ? 3 : 2,
                         row->layer ? large : small, &job->err));
    good(dtensor_ones(&spec, &t, &job->err));
    return t;
}

static size_t used(void)
{
    return job->ctx->arena.extents.used_bytes;
}

/* The gradients of all that is watched, with ones for the output. */
static void back(struct dtensor_tape *tape, const struct dtensor *y)
{
    struct dtensor *ones = NULL;

    good(dtensor_ones(dtensor_spec_of(y), &ones, &job->err));
    good(dtensor_tape_backward(tape, y, ones, &job->err));
    dtensor_destroy(ones);
}

/* A step.  After the forward the program lets go of the input, but not of the
 * output, which nothing of the models here keeps.
 */
static void step(struct dtensor_module *top, struct counted *noted)
{
    const size_t before = used();
    struct dtensor *x = input_make(), *y = NULL;
    const size_t input = used() - before;
    struct dtensor_tape *tape = NULL;

    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    tree_watch(top, tape);
    if (!row->constant)
        good(dtensor_tape_watch(tape, x, &job->err));
    good(dtensor_tape_begin(tape, &job->err));
    good(dtensor_module_apply(top, "", x, &y, &job->err));
    good(dtensor_tape_end(tape, &job->err));
    dtensor_destroy(x);
    noted->grown = used() - before - dtensor_local_bytes(y) -
                   (row->constant ? 0 : input);
    good(dtensor_tape_bytes(tape, NULL, &noted->kept, &job->err));
    back(tape, y);
    dtensor_destroy(y);
    dtensor_tape_destroy(tape);
}

/* The parameters as another type. */
static int cast(struct dtensor_module *module, void *arg,
                struct dtensor_error *why)
{
    struct dtensor *t, *made;
    const char *name;
    int rc = 0;

    (void)arg;
    for (int i = 0; rc == 0 && (t = dtensor_module_param_at(module, i, &name));
         i++) {
        rc = dtensor_cast(t, dtype, &made, why);
        if (rc == 0)
            rc = dtensor_module_set(module, name, made, why);
    }
    return rc;
}

static void run(int rank, int n, void *arg)
{
    struct counted *mine = &counted[rank];
    struct dtensor_module *top;
    struct job the_job;

    (void)arg;
    job = &the_job;
    job_open(job, rank, n, path);
    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    top = row->layer ? layer(job->ctx, NULL, NULL, width)
                     : module(NULL, NULL, "sequential");
    if (!row->layer)
        mlp(top, "m");
    good(dtensor_module_walk(top, cast, NULL, &job->err));
    good(dtensor_parallelize_plan(top, NULL, row->plan, -1, &job->err));
    step(top, mine);                          /* memory to work with is there */
    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    step(top, mine);
    good(dtensor_debug_end(job->ctx, &job->err));
    for (int i = 0; i < SIDES * KINDS; i++)
        good(dtensor_debug_counts(job->ctx, NULL,
                                  (enum dtensor_direction)(i / KINDS),
                                  (int)kinds[i % KINDS].kind,
                                  &mine->count[i / KINDS][i % KINDS],
                                  &job->err));
    dtensor_module_destroy(top);
    dtensor_fini(job->ctx);
}

/* ----------------------------------------------------------------- tool --- */

/* What the tool says.  False: it failed. */
static bool plan_ask(char *text, size_t size)
{
    char command[2000], shape[40];
    size_t n;
    FILE *pipe;

    snprintf(shape, sizeof shape, "%dx%dx%d", BATCH, length, width);
    snprintf(command, sizeof command, "'%s'/dtensor-plan module %s %s "
             "--cluster %s --shape %s --dtype %s --from '%s'%s",
             getenv("top_builddir"), row->plan,
             row->layer ? layer_words() : mlp_words, path,
             row->layer ? shape : "4x8", dtensor_dtype_name(dtype), row->from,
             row->constant ? " --constant" : "");
    pipe = popen(command, "r");
    if (!pipe)
        return false;
    n = fread(text, 1, size - 1, pipe);
    text[n] = '\0';
    return pclose(pipe) == 0;
}

/* The total of a kind in the text; none is 0. */
static void total_read(const char *text, int side, const char *what,
                       int *callsp, uint64_t *bytesp)
{
    char head[60];
    const char *at;

    *callsp = 0;
    *bytesp = 0;
    snprintf(head, sizeof head, "\ntotal %s %s: ",
             side == 0 ? "forward" : "backward", what);
    at = strstr(text, head);
    if (at)
        sscanf(at + strlen(head), "%d, %" SCNu64 " bytes", callsp, bytesp);
}

/* Kind k: the tool counts one mesh, on which ranks 0 to size - 1 are. */
static bool kind_agrees(const char *text, int side, int k, int size)
{
    uint64_t bytes = 0, told;
    int calls;
    bool agree = true;

    total_read(text, side, kinds[k].what, &calls, &told);
    for (int r = 0; r < size; r++) {
        agree = agree &&
                counted[r].count[side][k].calls == (uint64_t)calls;
        bytes += counted[r].count[side][k].predicted_bytes;
    }
    agree = agree && calls == row->calls[side][k] &&
            bytes == told;
    if (!agree)
        printf("# %d %s: told %d, %" PRIu64 " bytes; counted %" PRIu64 ", %"
               PRIu64 " bytes; expected %d\n", side, kinds[k].what, calls,
               told, counted[0].count[side][k].calls, bytes,
               row->calls[side][k]);
    return agree;
}

/* All tensors here are whole multiples of the 64 bytes that memory is given
 * in.
 */
static bool memory_agrees(const char *text)
{
    const char *at = strstr(text, " bytes of parameters, ");
    uint64_t told = 0;
    bool agree;

    if (at)
        sscanf(at, " bytes of parameters, %" SCNu64, &told);
    agree = told > 0 && counted[0].kept == told && counted[0].grown == told;
    if (!agree || dtype == DTENSOR_F32)
        printf("# kept: told %" PRIu64 ", %" PRIu64 " by the tape, memory has "
               "grown by %zu bytes\n", told, counted[0].kept,
               counted[0].grown);
    return agree;
}

static bool row_agrees(void)
{
    static char text[20000];
    bool agree = ranks_run(WORLD, 60, run, NULL, NULL) == 0 &&
                 plan_ask(text, sizeof text) && memory_agrees(text);

    for (int i = 0; agree && i < SIDES * KINDS; i++)
        agree = kind_agrees(text, i / KINDS, i % KINDS, row->dim ? 2 : WORLD);
    if (!agree)
        printf("# %s\n", text);
    return agree;
}

int main(void)
{
    const char *text = getenv("DTN_TEST_WIDTH");
    const int fd = mkstemp(path);

    if (text) {
        width = atoi(text);
        length = 256;
        dtype = DTENSOR_F32;
    }
    counted = mmap(NULL, sizeof *counted * WORLD, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fd < 0 || write(fd, file, sizeof file - 1) != (ssize_t)sizeof file - 1
        || fchmod(fd, 0600) != 0 || counted == MAP_FAILED)
        return 99;
    close(fd);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        row = &rows[i];
        if (text && !row->layer)
            continue;
        ok(row_agrees(), "%s of an input %s%s: what was told is what ran",
           row->plan, row->from, row->constant ? " without a gradient" : "");
    }
    unlink(path);
    return done();
}

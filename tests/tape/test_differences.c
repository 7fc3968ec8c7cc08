/* test_differences.c - backwards against finite differences
 *
 * The loss is the sum of all outputs of an operator, each element times a
 * number of its own.  The gradient of every float input, gathered, has to be
 * what the plain loops of tests/op give when one element of the input is a
 * little larger, and a little smaller.  Meshes of one to three dimensions and
 * up to eight ranks, placements drawn at random: uneven and empty shards,
 * strided and dealt out ones, replicas, terms of sums and averages.
 *
 * Without this test, a gradient could be wrong for all operators but those that
 * somebody has computed by hand, or where an input is cut, or is a term.
 */
#include "dtensor.h"
#include "tests/op/draw.h"
#include "tests/op/naive.h"
#include "tests/support/rand.h"
#include "tests/support/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { WORLD = 8, INPUTS = 5, OUTPUTS = 8, SEED = 20261123 };

/* Inputs have a shape and what their elements are: n normal numbers, p positive
 * ones, z normal ones and zeros, b 0 or 1, iN whole numbers below N, oN all
 * different ones, up to N of them.
 */
static const struct row {
    const char *op, *args, *in;        /* the call                        */
} rows[] = {
#include "tests/tape/differences_rows.h"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static const struct {
    int ndim, size[3];
} meshes[] = {
    { 1, { 1 } }, { 1, { 3 } }, { 1, { 8 } }, { 2, { 2, 3 } }, { 2, { 4, 2 } },
    { 3, { 2, 2, 2 } },
};
enum { MESHES = sizeof meshes / sizeof meshes[0] };

static struct counts {
    long gradients, elements, refused;
} *counts;

/* One case: a call on tensors. */
struct drawn {
    struct dtensor_op_call call;       /* of spec                         */
    struct dtensor_spec spec[INPUTS], want[INPUTS], out[OUTPUTS];
    struct whole in[INPUTS];           /* the inputs                      */
    struct dtensor *tensor[INPUTS];    /* the same as tensors             */
    int nout;
};

/* ------------------------------------------------------------- drawing --- */

static double element(uint64_t *state, const char *kind, int64_t i)
{
    const double unit = (rand_below(state, 1 << 20) + 0.5) / (1 << 20);

    switch (*kind) {
    case 'n':
        return 4 * unit - 2;
    case 'z':
        return rand_below(state, 3) ? 4 * unit - 2 : 0;
    case 'p':
        return 0.5 + 2 * unit;
    case 'b':
        return rand_below(state, 2);
    case 'o':
        return (double)(i * 5 % strtol(kind + 1, NULL, 10));
    default:
        return rand_below(state, (int)strtol(kind + 1, NULL, 10));
    }
}

/* "6x5:n" */
static const char *input_read(uint64_t *state, const char *text,
                              struct whole *w)
{
    char *end;

    w->ndim = 0;
    for (; *text != ':'; text = end + (*end == 'x'))
        w->shape[w->ndim++] = strtoll(text, &end, 10);
    text++;
    w->dtype = *text == 'b' ? DTENSOR_BOOL
             : *text == 'i' || *text == 'o' ? DTENSOR_I64 : DTENSOR_F64;
    for (int64_t i = 0; i < whole_count(w); i++)
        w->at[i] = element(state, text, i);
    text += strcspn(text, " ");
    return text + (*text == ' ');
}

static void placements_draw(uint64_t *state, struct dtensor_spec *spec)
{
    for (int m = 0; m < dtensor_mesh_ndim(spec->mesh); m++) {
        struct dtensor_placement *p = &spec->placement[m];
        const int kind = rand_below(state, 10);

        *p = (struct dtensor_placement){ .kind = DTENSOR_REPLICATE };
        if (kind < 2)
            *p = (struct dtensor_placement){ .kind = DTENSOR_PARTIAL,
                .op = kind && spec->dtype == DTENSOR_F64 ? DTENSOR_AVG
                                                         : DTENSOR_SUM };
        else if (kind > 3 && spec->ndim > 0)
            *p = (struct dtensor_placement){
                .kind = kind == 9 ? DTENSOR_CYCLIC : kind == 8
                      ? DTENSOR_STRIDED : DTENSOR_SHARD,
                .dim = rand_below(state, spec->ndim),
                .block = 1 + rand_below(state, 3) };
    }
}

static void case_draw(struct job *job, uint64_t *state, const struct row *row,
                      const struct dtensor_mesh *mesh, struct drawn *c)
{
    const char *text = row->in;

    c->call = (struct dtensor_op_call){ .op = row->op, .in = c->spec };
    good(dtensor_op_args_parse(row->args, &c->call.args, &job->err));
    while (*text) {
        const int i = c->call.nin++;

        text = input_read(state, text, &c->in[i]);
        draw_spec(&c->in[i], mesh, &c->spec[i]);
        placements_draw(state, &c->spec[i]);
    }
}

static void inputs_make(struct job *job, struct drawn *c)
{
    for (int i = 0; i < c->call.nin; i++)
        good(draw_tensor(&c->in[i], &c->spec[i], &c->tensor[i], &job->err));
}

/* --------------------------------------------------------------- losses --- */

/* What element i of output k counts in the loss. */
static double weight(int k, int64_t i)
{
    return 0.5 + (double)((i * 7 + k * 5) % 11) / 8;
}

static bool smooth(const struct dtensor_spec *spec)
{
    return spec->dtype == DTENSOR_F64;
}

/* Does output k count?  The second one of attention is no result. */
static bool counts_in(const struct drawn *c, int k)
{
    return smooth(&c->out[k]) &&
           !(k == 1 && strcmp(c->call.op, "attention") == 0);
}

static double naive_loss(const struct drawn *c)
{
    static struct whole out[OUTPUTS];
    double loss = 0;

    for (int k = 0; k < c->nout; k++) {
        out[k].ndim = c->out[k].ndim;
        memcpy(out[k].shape, c->out[k].shape, sizeof out[k].shape);
    }
    need(naive_op(&c->call, c->in, c->nout, out), "%s has no naive twin",
         c->call.op);
    for (int k = 0; k < c->nout; k++)
        for (int64_t i = 0; i < whole_count(&out[k]) && counts_in(c, k); i++)
            loss += weight(k, i) * out[k].at[i];
    return loss;
}

/* The sum of output k times its weights, added to *lossp. */
static void loss_add(struct job *job, const struct drawn *c, int k,
                     const struct dtensor *out, struct dtensor **lossp)
{
    static double full[WHOLE_MAX];
    struct dtensor_spec spec = c->out[k];
    struct dtensor *weights = NULL, *product = NULL, *sum = NULL, *all = NULL;
    int64_t n = 1;

    for (int d = 0; d < spec.ndim; d++)
        n *= spec.shape[d];
    for (int64_t i = 0; i < n; i++)
        full[i] = weight(k, i);
    for (int m = 0; m < dtensor_mesh_ndim(spec.mesh); m++)
        spec.placement[m] = (struct dtensor_placement){
            .kind = DTENSOR_REPLICATE };
    good(dtensor_distribute(&spec, full, -1, &weights, &job->err));
    good(dtensor_mul(out, weights, &product, &job->err));
    good(dtensor_op("sum", 1, (const struct dtensor *const[]){ product }, NULL,
                    1, &sum, &job->err));
    if (*lossp)
        good(dtensor_add(*lossp, sum, &all, &job->err));
    dtensor_destroy(*lossp);
    *lossp = all ? all : sum;
    if (all)
        dtensor_destroy(sum);
    dtensor_destroy(weights);
    dtensor_destroy(product);
}

/* ------------------------------------------------------------ comparing --- */

/* The gradient of input i by differences. */
static void input_check(struct job *job, struct drawn *c, int i,
                        const double have[])
{
    const double step = 1e-5;

    for (int64_t e = 0; e < whole_count(&c->in[i]); e++) {
        const double x = c->in[i].at[e];
        double up, down, slope;

        c->in[i].at[e] = x + step;
        up = naive_loss(c);
        c->in[i].at[e] = x - step;
        down = naive_loss(c);
        c->in[i].at[e] = x;
        slope = (up - down) / (2 * step);
        need(fabs(have[e] - slope) <= 2e-5 * (1 + fabs(slope)), "%s: the "
             "gradient of element %d of input %d is %.9g, not %.9g",
             draw_words(&c->call, c->spec),
             (int)e, i, have[e], slope);
        if (job->rank == 0)
            counts->elements++;
    }
}

/* Each rank of the mesh checks some inputs of some cases. */
static void gradients_check(struct job *job, struct drawn *c,
                            const struct dtensor_tape *tape)
{
    static double full[WHOLE_MAX];

    for (int i = 0; i < c->call.nin; i++) {
        const struct dtensor *grad = dtensor_tape_grad(tape, c->tensor[i]);

        if (!smooth(&c->spec[i]))
            continue;
        need(grad, "%s: input %d has no gradient",
             draw_words(&c->call, c->spec), i);
        good(dtensor_full_tensor(grad, full, (size_t)whole_count(&c->in[i]) *
                                 sizeof full[0], &job->err));
        if (dtensor_mesh_index(c->spec[i].mesh, job->rank) == 0)
            input_check(job, c, i, full);
        if (job->rank == 0)
            counts->gradients++;
    }
}

static void case_run(struct job *job, struct drawn *c)
{
    struct dtensor *out[OUTPUTS] = { NULL }, *loss = NULL;
    struct dtensor_tape *tape = NULL;

    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    for (int i = 0; i < c->call.nin; i++)
        if (smooth(&c->spec[i]))
            good(dtensor_tape_watch(tape, c->tensor[i], &job->err));
    good(dtensor_tape_begin(tape, &job->err));
    good(dtensor_op(c->call.op, c->call.nin,
                    (const struct dtensor *const *)c->tensor, &c->call.args,
                    c->nout, out, &job->err));
    for (int k = 0; k < c->nout; k++) {
        if (counts_in(c, k))
            loss_add(job, c, k, out[k], &loss);
        dtensor_destroy(out[k]);
    }
    good(dtensor_tape_end(tape, &job->err));
    need(dtensor_tape_backward(tape, loss, NULL, &job->err) == 0, "%s (%s)",
         draw_words(&c->call, c->spec), job->err.text);
    gradients_check(job, c, tape);
    dtensor_tape_destroy(tape);
    dtensor_destroy(loss);
}

/* Norms, losses and attention have outputs that no gradient passes.  Of
 * operators with places half of the cases ask for the values only.
 */
static int outputs_of(const struct row *row, const struct dtensor_op_info *info,
                      uint64_t *state)
{
    return strstr(row->op, "norm") || strstr(row->op, "loss") ||
           strcmp(row->op, "cross_entropy") == 0 ||
           (info->nout == 2 && rand_below(state, 2)) ? 1 : info->nout;
}

static void one_case(struct job *job, const struct row *row,
                     const struct dtensor_mesh *mesh, uint64_t *state)
{
    static struct drawn drawn;
    struct drawn *c = &drawn;
    struct dtensor_op_info info;
    int rc;

    case_draw(job, state, row, mesh, c);
    for (int i = 0; i < c->call.nin; i++)
        if (dtensor_spec_check(&c->spec[i], NULL) != 0)
            return;               /* strides and cuts do not fit              */
    rc = dtensor_op_infer(&c->call, c->want, OUTPUTS, c->out, &info, &job->err);
    if (job->rank == 0)
        counts->refused += rc != 0;
    if (rc != 0)
        return;
    c->nout = outputs_of(row, &info, state);
    inputs_make(job, c);
    case_run(job, c);
    for (int i = 0; i < c->call.nin; i++)
        dtensor_destroy(c->tensor[i]);
}

static void cases(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    uint64_t state = rand_seed(SEED);
    const char *only = getenv("TEST_OP");
    const struct dtensor_mesh *mesh[MESHES];

    job_open(job, rank, n, NULL);
    for (int m = 0; m < MESHES; m++)
        good(dtensor_mesh_create(job->ctx, meshes[m].ndim, meshes[m].size, NULL,
                                 NULL, &mesh[m], &job->err));
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < *(const int *)arg; k++)
            if (!only || strcmp(only, rows[i].op) == 0)
                one_case(job, &rows[i], mesh[(i + k) % MESHES], &state);
    dtensor_fini(job->ctx);
}

int main(void)
{
    int each = sanitized() ? 1 : rounds_of(3);

    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ok(ranks_run(WORLD, 300, cases, &each, NULL) == 0,
       "the backwards of %d calls, %d times each on one of %d meshes, are the "
       "slopes (TEST_SEED=%llu)", ROWS, each, MESHES,
       (unsigned long long)rand_seed(SEED));
    note("%ld gradients, %ld elements; %ld calls were refused",
         counts->gradients, counts->elements, counts->refused);
    return done();
}

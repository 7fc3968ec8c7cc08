/* test_computed.c - operators on tensors against the plainest loops
 *
 * Every operator that can be computed, on meshes of one to three dimensions and
 * up to eight ranks, with placements drawn at random: shards that are uneven,
 * empty, strided, dealt out or chosen, replicas, and terms of sums, averages,
 * maxima and minima.  The result, gathered, has to be what naive.c makes of the
 * whole arrays: bit for bit where the numbers are whole, else within the bound
 * of the row.  What dtensor_op_infer() refuses has to be refused.
 *
 * Terms that an operator takes as they lie are tried in all combinations, too.
 *
 * A second job has a network so slow that operators that can, such as softmax,
 * reduce over the ranks by themselves where rows are cut.
 *
 * Without this test, an operator could be right on one rank and wrong where its
 * inputs are cut, or are terms.
 */
#include "base/dtype.h"
#include "dtensor.h"
#include "tests/op/draw.h"
#include "tests/op/naive.h"
#include "tests/op/row.h"
#include "tests/support/rand.h"
#include "tests/support/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { WORLD = 8, INPUTS = 6, OUTPUTS = 8, SEED = 20261124 };

static const struct row rows[] = {
#include "tests/op/computed_rows.h"
}, cut_rows[] = {
#include "tests/op/cut_rows.h"
};
enum {
    ROWS = sizeof rows / sizeof rows[0],
    CUT_ROWS = sizeof cut_rows / sizeof cut_rows[0]
};

static const struct {
    int ndim, size[3];
} meshes[] = {
    { 1, { 1 } }, { 1, { 2 } }, { 1, { 3 } }, { 1, { 4 } }, { 1, { 8 } },
    { 2, { 2, 2 } }, { 2, { 2, 3 } }, { 2, { 4, 2 } }, { 3, { 2, 2, 2 } },
    { 3, { 2, 1, 3 } },
};
enum { MESHES = sizeof meshes / sizeof meshes[0] };

/* How many runs of each kind there were, on rank 0. */
static struct counts {
    long stayed, moved, refused, exact, reduced;
} *counts;

/* One case: a call on tensors. */
struct drawn {
    struct dtensor_op_call call;       /* of spec                         */
    struct dtensor_spec spec[INPUTS], want[INPUTS], out[OUTPUTS];
    struct whole in[INPUTS];           /* the inputs                      */
    struct dtensor *tensor[INPUTS];    /* the same as tensors             */
    int64_t length[INPUTS][WORLD];     /* chosen lengths                  */
    bool exact;                        /* terms are exact                 */
};

/* ------------------------------------------------------------- drawing --- */

static const struct dtensor_mesh *mesh_draw(struct job *job, uint64_t *state,
                                            int m)
{
    const struct dtensor_mesh *mesh = NULL;
    int ranks[WORLD];

    for (int r = 0; r < WORLD; r++) {
        const int other = rand_below(state, r + 1);

        ranks[r] = ranks[other];
        ranks[other] = r;
    }
    good(dtensor_mesh_create(job->ctx, meshes[m].ndim, meshes[m].size, NULL,
                             ranks, &mesh, &job->err));
    return mesh;
}

static void case_draw(struct job *job, uint64_t *state, const struct row *row,
                      const struct dtensor_mesh *mesh, struct drawn *c)
{
    const char *text = row->in;

    c->call = (struct dtensor_op_call){ .op = row->op, .in = c->spec };
    c->exact = row->bound == 0;
    good(dtensor_op_args_parse(row->args, &c->call.args, &job->err));
    while (*text) {
        const int i = c->call.nin++;

        text = draw_input(state, text, &c->in[i]);
        draw_spec(&c->in[i], mesh, &c->spec[i]);
        c->exact &= draw_placements(state, true, &c->spec[i], c->length[i]);
    }
}

static void inputs_make(struct job *job, struct drawn *c)
{
    for (int i = 0; i < c->call.nin; i++)
        good(draw_tensor(&c->in[i], &c->spec[i], &c->tensor[i], &job->err));
}

/* ------------------------------------------------------------ comparing --- */

static bool near(double a, double b, double bound)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= bound * (1 + fabs(b));
}

static double bound_of(const struct row *row, const struct drawn *c)
{
    if (row->bound > 0 || c->exact)
        return row->bound;
    return c->in[0].dtype == DTENSOR_F32 ? 1e-5 : 1e-12;
}

static void output_check(struct job *job, const struct row *row,
                         const struct drawn *c, const struct dtensor *t,
                         const struct whole *whole)
{
    static unsigned char full[WHOLE_MAX * 16];
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    const size_t n = (size_t)whole_count(whole);

    good(dtensor_full_tensor(t, full, n * dtensor_dtype_size(spec->dtype),
                             &job->err));
    if (dtensor_mesh_index(spec->mesh, job->rank) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        const double have = dtn_load(spec->dtype, full, i);

        need(near(have, whole->at[i], bound_of(row, c)),
             "%s (%s): element %zu is %.17g, not %.17g",
             draw_words(&c->call, c->spec), row->args,
             i, have, whole->at[i]);
    }
}

static void outputs_check(struct job *job, const struct row *row,
                          const struct drawn *c, int nout,
                          struct dtensor *const out[])
{
    static struct whole whole[OUTPUTS];

    for (int k = 0; k < nout; k++) {
        whole[k].ndim = c->out[k].ndim;
        memcpy(whole[k].shape, c->out[k].shape, sizeof whole[k].shape);
    }
    need(naive_op(&c->call, c->in, nout, whole), "%s has no naive twin",
         row->op);
    for (int k = 0; k < nout; k++)
        output_check(job, row, c, out[k], &whole[k]);
}

/* -------------------------------------------------------------- running --- */

static bool moves(const struct drawn *c)
{
    char a[200], b[200];

    for (int i = 0; i < c->call.nin; i++) {
        dtensor_placements_format(c->spec[i].mesh, c->spec[i].placement, a,
                                  sizeof a);
        dtensor_placements_format(c->spec[i].mesh, c->want[i].placement, b,
                                  sizeof b);
        if (strcmp(a, b) != 0)
            return true;
    }
    return false;
}

/* A third of a term may be rounded: on three ranks a replica that becomes terms
 * of a sum is one.
 */
static bool terms_round(const struct drawn *c)
{
    for (int i = 0; i < c->call.nin; i++)
        for (int m = 0; m < dtensor_mesh_ndim(c->spec[i].mesh); m++)
            if (c->want[i].placement[m].kind == DTENSOR_PARTIAL &&
                c->spec[i].placement[m].kind != DTENSOR_PARTIAL &&
                dtensor_mesh_dim_size(c->spec[i].mesh, m) == 3)
                return true;
    return false;
}

/* By dtensor_op() or, in place or every other time, by dtensor_op_into(). */
static void case_run(struct job *job, const struct row *row, struct drawn *c,
                     bool into, int nout)
{
    const struct dtensor *const *in = (const struct dtensor *const *)c->tensor;
    const bool inplace = row->op[strlen(row->op) - 1] == '_';
    struct dtensor *out[OUTPUTS] = { NULL };

    if (inplace)
        out[0] = c->tensor[0];
    for (int k = 0; k < nout && into && !inplace; k++)
        good(dtensor_empty(&c->out[k], &out[k], &job->err));
    if (into || inplace)
        good(dtensor_op_into(row->op, c->call.nin, in, &c->call.args, nout, out,
                             &job->err));
    else
        good(dtensor_op(row->op, c->call.nin, in, &c->call.args, nout, out,
                        &job->err));
    outputs_check(job, row, c, nout, out);
    for (int k = 0; k < nout && !inplace; k++)
        dtensor_destroy(out[k]);
}

static void one_case(struct job *job, const struct row *row, struct drawn *c,
                     uint64_t *state)
{
    struct dtensor_op_info info;
    struct dtensor *none[OUTPUTS] = { NULL };
    int rc;

    for (int i = 0; i < c->call.nin; i++)
        if (dtensor_spec_check(&c->spec[i], NULL) != 0)
            return;               /* chosen lengths and cuts do not fit       */
    inputs_make(job, c);
    rc = dtensor_op_infer(&c->call, c->want, OUTPUTS, c->out, &info, &job->err);
    c->exact = c->exact && (rc != 0 || !terms_round(c));
    if (rc == 0)
        case_run(job, row, c, rand_below(state, 2), info.nout);
    else
        need(dtensor_op(row->op, c->call.nin,
                        (const struct dtensor *const *)c->tensor,
                        &c->call.args, 1, none, &job->err) == DTENSOR_EINVAL &&
             !none[0], "%s is inferred to be refused, but runs",
             draw_words(&c->call, c->spec));
    if (job->rank == 0) {
        counts->refused += rc != 0;
        counts->moved += rc == 0 && moves(c);
        counts->stayed += rc == 0 && !moves(c);
        counts->exact += rc == 0 && c->exact;
        counts->reduced += rc == 0 && info.reduces;
    }
    for (int i = 0; i < c->call.nin; i++)
        dtensor_destroy(c->tensor[i]);
}

/* Inputs that are replicas or terms of one of four reductions, in combination
 * `which`.  False: there are no more.
 */
static bool terms_set(struct drawn *c, int which)
{
    static const enum dtensor_redop ops[] = { DTENSOR_SUM, DTENSOR_AVG,
                                              DTENSOR_MAX, DTENSOR_MIN };

    for (int i = 0; i < c->call.nin; i++, which /= 5)
        c->spec[i].placement[0] = which % 5 == 0
            ? (struct dtensor_placement){ .kind = DTENSOR_REPLICATE }
            : (struct dtensor_placement){ .kind = DTENSOR_PARTIAL,
                                          .op = ops[which % 5 - 1] };
    return which == 0;
}

/* The combinations in which no input is moved before the operator. */
static void terms_cases(struct job *job, const struct row *row,
                        const struct dtensor_mesh *mesh, struct drawn *c,
                        uint64_t *state)
{
    struct dtensor_op_info info;

    case_draw(job, state, row, mesh, c);
    c->exact = row->bound == 0;
    for (int which = 1; which < 125 && terms_set(c, which); which++)
        if (dtensor_op_infer(&c->call, c->want, OUTPUTS, c->out, &info,
                             &job->err) == 0 && !moves(c))
            one_case(job, row, c, state);
}

static void cases(int rank, int n, void *arg)
{
    static struct drawn c;
    struct job the_job, *job = &the_job;
    uint64_t state = rand_seed(SEED);
    const struct suite *suite = arg;
    const char *only = getenv("TEST_OP");
    const struct dtensor_mesh *mesh[MESHES];

    job_open(job, rank, n, suite->file);
    for (int m = 0; m < MESHES; m++)
        mesh[m] = mesh_draw(job, &state, m);
    for (int i = 0; i < suite->n; i++)
        for (int m = 0; m < MESHES; m++)
            for (int k = 0; k < suite->each; k++)
                if (!only || strcmp(only, suite->row[i].op) == 0) {
                    case_draw(job, &state, &suite->row[i], mesh[m], &c);
                    one_case(job, &suite->row[i], &c, &state);
                }
    dtensor_fini(job->ctx);
}

static void cases_of_terms(int rank, int n, void *arg)
{
    static struct drawn c;
    struct job the_job, *job = &the_job;
    uint64_t state = rand_seed(SEED);
    const struct suite *suite = arg;
    const struct dtensor_mesh *mesh;

    job_open(job, rank, n, suite->file);
    mesh = mesh_draw(job, &state, 1);
    for (int i = 0; i < suite->n; i++)
        terms_cases(job, &suite->row[i], mesh, &c, &state);
    dtensor_fini(job->ctx);
}

static void suite_run(const struct suite *suite, const char *what)
{
    memset(counts, 0, sizeof *counts);
    ok(ranks_run(WORLD, 300, cases, (void *)(uintptr_t)suite, NULL) == 0,
       "%d calls of operators%s on %d meshes, %d placements each, give what "
       "plain loops give (TEST_SEED=%llu)", suite->n, what, MESHES, suite->each,
       (unsigned long long)rand_seed(SEED));
    note("%ld ran where their inputs lay, %ld redistributed some, %ld reduced "
         "over the ranks, %ld were refused; %ld were compared bit for bit",
         counts->stayed, counts->moved, counts->reduced, counts->refused,
         counts->exact);
}

static void terms_run(const struct suite *suite)
{
    int bad;

    memset(counts, 0, sizeof *counts);
    bad = ranks_run(WORLD, 300, cases_of_terms, (void *)(uintptr_t)suite, NULL);
    ok(bad == 0 && counts->stayed > 0, "so they do of terms that they take, in "
       "all combinations of sum, average, maximum and minimum");
    note("%ld ran", counts->stayed);
}

int main(void)
{
    const int each = sanitized() ? 1 : rounds_of(2);
    const char *file = ranks_file("shm", WORLD, "[tuning]\n"
                                  "intra_latency_ns = 1\n"
                                  "intra_bandwidth = 1K\n");

    const struct suite all = { rows, ROWS, each, NULL };

    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    suite_run(&all, "");
    suite_run(&(struct suite){ cut_rows, CUT_ROWS, 2 * each, file },
              " on a slow network");
    ok(counts->reduced > 0 || getenv("TEST_OP"), "some reduce over the ranks "
       "by themselves");
    remove(file);
    terms_run(&all);
    return done();
}

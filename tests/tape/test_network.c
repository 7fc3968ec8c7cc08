/* test_network.c - a small network learns the same on every mesh
 *
 * Two linear layers with GELU, layer norm and cross entropy are trained for
 * some steps, on data that this file makes, by 1, 2, 3, 4 and 8 ranks: rows
 * cut, features cut, both, parameters cut, on meshes of up to three dimensions.
 * The losses are those of one rank but for rounding; under `repro` losses and
 * parameters are those of one rank bit for bit, of f32 and of f64.  Without
 * `repro` they may differ, and the test says how often they do.
 *
 * Without this test, a rule, a gradient or a local loop could depend on how
 * tensors are cut, and no training would show it but by another result.
 */
#include "dtensor.h"
#include "tests/support/job.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

enum { STEPS = 5, ROWS = 13, IN = 6, WIDE = 10, CLASSES = 4, PARAMS = 6 };
enum { W1, B1, NORM, NORM_BIAS, W2, B2 };

/* Where things lie: x and the classes, then the parameters.  Vectors that are
 * added to cut features are cut as these.
 */
static const struct layout {
    const char *name;
    int ndim, size[3];
    const char *rows, *param[PARAMS];
} layouts[] = {
    { "one rank", 1, { 1 }, "R", { "R", "R", "R", "R", "R", "R" } },
    { "rows cut", 1, { 2 }, "S(0)", { "R", "R", "R", "R", "R", "R" } },
    { "features cut", 1, { 2 }, "R",
      { "S(0)", "S(0)", "R", "R", "S(1)", "R" } },
    { "rows cut, unevenly", 1, { 3 }, "S(0)",
      { "R", "R", "R", "R", "R", "R" } },
    { "parameters cut", 1, { 4 }, "S(0)",
      { "S(0)", "S(0)", "S(0)", "S(0)", "S(0)", "S(0)" } },
    { "rows and features", 2, { 2, 2 }, "S(0),R",
      { "R,S(0)", "R,S(0)", "R,R", "R,R", "R,S(1)", "R,R" } },
    { "rows, and inner features", 2, { 4, 2 }, "S(0),R",
      { "R,S(1)", "R,R", "R,R", "R,R", "R,S(0)", "R,S(0)" } },
    { "three dimensions", 3, { 2, 2, 2 }, "S(0),R,S(0)",
      { "S(0),S(0),R", "S(0),S(0),R", "R,R,R", "S(0),R,R", "R,S(1),R",
        "R,R,R" } },
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

/* What rank 0 of a job found: of f32 and f64, without and with `repro`. */
static struct result {
    double loss[2][2][STEPS];
    double w2[2][2][CLASSES * WIDE];
} *results;

/* -------------------------------------------------------------- tensors --- */

/* Element i of tensor k, between -1 and 1. */
static double element(int k, int i)
{
    return ((i * 37 + k * 11 + i * i % 13) % 101 - 50) / 50.0;
}

static struct dtensor *tensor(struct job *job, const struct dtensor_mesh *mesh,
                              const char *placed, enum dtensor_dtype dtype,
                              int k, int ndim, const int64_t shape[])
{
    struct dtensor_spec spec = { .mesh = mesh, .dtype = dtype, .ndim = ndim };
    double full[ROWS * WIDE];
    float narrow[ROWS * WIDE];
    int64_t index[ROWS];
    struct dtensor *t = NULL;
    int64_t n = 1;

    for (int d = 0; d < ndim; d++)
        n *= spec.shape[d] = shape[d];
    for (int i = 0; i < n; i++) {
        full[i] = element(k, i) * (k == NORM ? 0.2 : 0.7) + (k == NORM);
        narrow[i] = (float)full[i];
        index[i % ROWS] = (i * 5 + i / 3) % CLASSES;
    }
    good(dtensor_placements_parse(mesh, placed, ndim, spec.placement,
                                  &job->err));
    good(dtensor_distribute(&spec, dtype == DTENSOR_F64 ? (void *)full
                            : dtype == DTENSOR_F32 ? (void *)narrow
                            : (void *)index, -1, &t, &job->err));
    return t;
}

/* -------------------------------------------------------------- network --- */

struct network {
    struct dtensor *x, *classes, *param[PARAMS];
    struct dtensor_tape *tape;
};

static void network_make(struct job *job, const struct layout *l,
                         enum dtensor_dtype dtype, struct network *net)
{
    static const int64_t shapes[PARAMS][2] = {
        { WIDE, IN }, { WIDE }, { WIDE }, { WIDE }, { CLASSES, WIDE },
        { CLASSES } };
    const struct dtensor_mesh *mesh;

    good(dtensor_mesh_create(job->ctx, l->ndim, l->size, NULL, NULL, &mesh,
                             &job->err));
    net->x = tensor(job, mesh, l->rows, dtype, 20, 2,
                    (const int64_t[]){ ROWS, IN });
    net->classes = tensor(job, mesh, l->rows, DTENSOR_I64, 21, 1,
                          (const int64_t[]){ ROWS });
    good(dtensor_tape_create(job->ctx, &net->tape, &job->err));
    for (int i = 0; i < PARAMS; i++) {
        net->param[i] = tensor(job, mesh, l->param[i], dtype, i,
                               i == W1 || i == W2 ? 2 : 1, shapes[i]);
        good(dtensor_tape_watch(net->tape, net->param[i], &job->err));
    }
}

static void network_destroy(struct network *net)
{
    dtensor_tape_destroy(net->tape);
    dtensor_destroy(net->x);
    dtensor_destroy(net->classes);
    for (int i = 0; i < PARAMS; i++)
        dtensor_destroy(net->param[i]);
}

static struct dtensor *loss_of(struct job *job, const struct network *net)
{
    struct dtensor *a = NULL, *b = NULL, *loss = NULL;

    good(dtensor_linear(net->x, net->param[W1], net->param[B1], &a,
                        &job->err));
    good(dtensor_op("gelu", 1, (const struct dtensor *const[]){ a }, NULL, 1,
                    &b, &job->err));
    dtensor_destroy(a);
    good(dtensor_layer_norm(b, net->param[NORM], net->param[NORM_BIAS], 0, &a,
                            &job->err));
    dtensor_destroy(b);
    good(dtensor_linear(a, net->param[W2], net->param[B2], &b, &job->err));
    dtensor_destroy(a);
    good(dtensor_cross_entropy(b, net->classes, DTENSOR_OP_MEAN, &loss,
                               &job->err));
    dtensor_destroy(b);
    return loss;
}

/* The elements as f64. */
static void elements_of(struct job *job, const struct dtensor *t, double to[])
{
    struct dtensor *wide = NULL;
    size_t bytes = sizeof to[0];

    for (int d = 0; d < dtensor_spec_of(t)->ndim; d++)
        bytes *= (size_t)dtensor_spec_of(t)->shape[d];
    good(dtensor_cast(t, DTENSOR_F64, &wide, &job->err));
    good(dtensor_full_tensor(wide, to, bytes, &job->err));
    dtensor_destroy(wide);
}

/* A step of gradient descent; the loss before it. */
static double step(struct job *job, struct network *net)
{
    struct dtensor *loss;
    double value;

    good(dtensor_tape_begin(net->tape, &job->err));
    loss = loss_of(job, net);
    good(dtensor_tape_end(net->tape, &job->err));
    elements_of(job, loss, &value);
    good(dtensor_tape_backward(net->tape, loss, NULL, &job->err));
    dtensor_destroy(loss);
    for (int i = 0; i < PARAMS; i++) {
        struct dtensor *down = NULL;

        good(dtensor_scale(dtensor_tape_grad(net->tape, net->param[i]), -0.5,
                           &down, &job->err));
        good(dtensor_op_into("add_", 2, (const struct dtensor *const[]){
                             net->param[i], down }, NULL, 1, &net->param[i],
                             &job->err));
        dtensor_destroy(down);
    }
    return value;
}

static void train(int rank, int n, void *arg)
{
    const struct layout *l = arg;
    struct result *result = &results[l - layouts], mine;
    struct job the_job, *job = &the_job;

    memset(&mine, 0, sizeof mine);
    job_open(job, rank, n, NULL);
    for (int k = 0; k < 4; k++) {
        const int wide = k / 2, repro = k % 2;
        struct network net;

        dtensor_set_repro(job->ctx, repro);
        network_make(job, l, wide ? DTENSOR_F64 : DTENSOR_F32, &net);
        for (int s = 0; s < STEPS; s++) {        /* both, with one result     */
            good(dtensor_tape_keep(net.tape, s % 2 ? DTENSOR_KEEP_USED
                                   : DTENSOR_KEEP_PASSED, &job->err));
            mine.loss[wide][repro][s] = step(job, &net);
        }
        elements_of(job, net.param[W2], mine.w2[wide][repro]);
        network_destroy(&net);
    }
    if (rank == 0)
        *result = mine;
    dtensor_fini(job->ctx);
}

/* ------------------------------------------------------------ comparing --- */

static double off_by(const struct result *a, const struct result *b, int wide)
{
    double most = 0;

    for (int s = 0; s < STEPS; s++)
        most = fmax(most, fabs(a->loss[wide][0][s] - b->loss[wide][0][s]));
    return most;
}

static bool same_bits(const struct result *a, const struct result *b, int repro)
{
    for (int wide = 0; wide < 2; wide++)
        if (memcmp(a->loss[wide][repro], b->loss[wide][repro],
                   sizeof a->loss[0][0]) != 0 ||
            memcmp(a->w2[wide][repro], b->w2[wide][repro],
                   sizeof a->w2[0][0]) != 0)
            return false;
    return true;
}

int main(void)
{
    int others = 0;

    results = mmap(NULL, LAYOUTS * sizeof *results, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < LAYOUTS; i++) {
        const struct layout *l = &layouts[i];
        const struct result *r = &results[i];
        int n = 1, failed;

        for (int m = 0; m < l->ndim; m++)
            n *= l->size[m];
        failed = ranks_run(n, 300, train, (void *)l, NULL);
        ok(failed == 0 && r->loss[1][1][STEPS - 1] < r->loss[1][1][0],
           "%s, %d ranks: the loss falls from %.4f to %.4f", l->name, n,
           r->loss[1][1][0], r->loss[1][1][STEPS - 1]);
        ok(off_by(r, &results[0], 1) < 1e-12 &&
           off_by(r, &results[0], 0) < 1e-5,
           "the losses are those of one rank but for %.1g (f64), %.1g (f32)",
           off_by(r, &results[0], 1), off_by(r, &results[0], 0));
        ok(same_bits(r, &results[0], 1), "under repro, losses and parameters "
           "are those of one rank bit for bit");
        others += !same_bits(r, &results[0], 0);
    }
    note("without repro the bits of %d of %d layouts differ", others, LAYOUTS);
    return done();
}

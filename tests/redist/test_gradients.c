/* test_gradients.c - plan pairs on real ranks: which gradient comes back
 *
 * A gradient of known values arrives and is brought where it belongs; it is
 * never divided by the number of ranks, and where nothing has to move no
 * signal is sent.  The gradient of that way back is right, too.
 *
 * Without this test, training could get gradients that are too large by the
 * number of replicas.
 */
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "redist/plan.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/tensor_job.h"

#include <stdbool.h>
#include <string.h>

static const struct {
    const char *from, *to, *grad;      /* NULL: as usual                      */
    const char *back;                  /* where the gradient ends             */
    bool quiet;                        /* and nobody hears of it              */
} cases[] = {
    { "S(0)", "R", NULL, "S(0)", true },
    { "R", "S(0)", NULL, "R", false },
    { "R", "R", NULL, "R", true },
    { "R", "R", "P", "R", false },
    { "P", "R", NULL, "R", true },
    { "P", "R", "S(1)", "R", false },
    { "P(avg)", "R", NULL, "R", true },
    { "P", "S(0)", NULL, "R", false },
    { "P", "P", NULL, "R", true },
    { "P", "P", "P", "P(sum)", true },
    { "S(0)", "S(1)", NULL, "S(0)", false },
    { "S(0)", "S(1)", "P", "S(0)", false },
    { "R", "P", NULL, "R", true },
    { "R", "P", "P", "R", false },
    { "S(0)", "P", NULL, "S(0)", true },
    { "S(0:1,0,3,1)", "SS(1,2)", NULL, "S(0:1,0,3,1)", false },
    { "P,S(0)", "R,R", NULL, "R,S(0)", true },
    { "P,S(0)", "S(0),R", NULL, "R,S(0)", false },
    { "S(0),P", "S(1),S(0)", NULL, "S(0),R", false },
    { "P,P", "S(0),S(0)", NULL, "R,R", false },
    { "P,P", "R,R", "R,P", "R,P(sum)", true },
    { "S(0),S(0)", "S(1),S(1)", NULL, "S(0),S(0)", false },
    { "R,S(1)", "P,R", "P,R", "R,S(1)", false },
};

static uint64_t signals_sent(const struct job *job)
{
    uint64_t sent = 0;

    for (int r = 0; r < job->n; r++)
        sent += job->ctx->peers[r].sent;
    return sent;
}

static bool is_right(struct job *job, const struct dtensor *t)
{
    return is_partial(dtensor_spec_of(t)) ? whole_is_right(job, t)
                                          : local_is_right(job, t);
}

/* Run it on a tensor of known elements; how many signals did it take, of all
 * ranks?
 */
static uint64_t run(struct job *job, struct dtensor_plan *plan,
                    const struct dtensor_spec *src,
                    const struct dtensor_spec *dst, const char *what)
{
    struct dtensor *a = make(job, src, -1), *b = NULL;
    uint64_t before, sent;

    good(dtensor_zeros(dst, &b, &job->err));
    good(dtensor_plan_run(plan, a, b, &job->err));   /* connects              */
    before = signals_sent(job);
    good(dtensor_plan_run(plan, a, b, &job->err));
    sent = signals_sent(job) - before;
    need(is_right(job, b), "%s is wrong", what);
    dtensor_destroy(a);
    dtensor_destroy(b);
    good(dtensor_allreduce(src->mesh, &sent, &sent, 1, DTENSOR_U64, DTENSOR_SUM,
                           &job->err));
    return sent;
}

static void one_case(struct job *job, int c)
{
    static const int sizes[] = { 2, 2 };
    const int64_t shape[] = { 5, 3 };
    const struct dtensor_mesh *mesh;
    struct dtensor_spec src, dst, arrives, leaves, again;
    struct dtensor_plan *pair[2], *twice[2];
    char back[60], what[200];
    uint64_t sent;

    snprintf(what, sizeof what, "%s -> %s, a gradient %s", cases[c].from,
             cases[c].to, cases[c].grad ? cases[c].grad : "as usual");
    if (strchr(cases[c].back, ',') && !strchr(cases[c].back, ':'))
        good(dtensor_mesh_create(job->ctx, 2, sizes, NULL, NULL, &mesh,
                                 &job->err));
    else
        good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    src = spec_of(job, mesh, DTENSOR_F64, shape, cases[c].from);
    dst = spec_of(job, mesh, DTENSOR_F64, shape, cases[c].to);
    arrives = spec_of(job, mesh, DTENSOR_F64, shape,
                      cases[c].grad ? cases[c].grad : cases[c].to);
    for (int m = 0; m < dtensor_mesh_ndim(mesh) && !cases[c].grad; m++)
        if (arrives.placement[m].kind == DTENSOR_PARTIAL)
            arrives.placement[m].kind = DTENSOR_REPLICATE;
    good(dtensor_grad_spec(&src, &arrives, &leaves, &job->err));
    dtensor_placements_format(mesh, leaves.placement, back, sizeof back);
    need(strcmp(back, cases[c].back) == 0, "%s goes to %s", what, back);
    good(dtensor_plan_pair(&src, &dst, cases[c].grad ? &arrives : NULL, NULL,
                           pair, &job->err));
    run(job, pair[0], &src, &dst, what);
    sent = run(job, pair[1], &arrives, &leaves, what);
    need((sent == 0) == cases[c].quiet, "%s sends %d signals", what, (int)sent);
    good(dtensor_grad_spec(&arrives, &leaves, &again, &job->err));
    good(dtensor_plan_pair(&arrives, &leaves, &leaves, NULL, twice, &job->err));
    run(job, twice[1], &leaves, &again, "the gradient of a gradient");
    for (int i = 0; i < 2; i++) {
        dtensor_plan_destroy(pair[i]);
        dtensor_plan_destroy(twice[i]);
    }
}

static void gradients(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;

    job_open(job, rank, n, arg);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        one_case(job, (int)c);
    dtensor_fini(job->ctx);
}

int main(void)
{
    ok(ranks_run(4, 60, gradients, NULL, NULL) == 0, "gradients go where their "
       "tensors lie, undivided, and without a signal where nothing moves");
    return done();
}

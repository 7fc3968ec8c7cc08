/* test_compare.c - dtensor_equal() for any two placements, and replicas that
 * differ
 *
 * Every pair of placements on 2 x 2 and on 4: a tensor equals itself with any
 * placements, and every rank sees a change of one element, wherever it is.  If
 * one tensor only has to be sharded, nothing but the result is sent.
 *
 * Without this test, tensors with different placements could compare as equal,
 * or ranks could get different answers.
 */
#include "base/compiler.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/tensor_job.h"

#include <stdbool.h>
#include <string.h>

static const int64_t shape[] = { 5, 6 };

static const char *const lines[] = { "R", "S(0)", "S(1)", "P", "P(max)",
                                     "SS(0,2)", "C(1,1)", "S(0:0,2,3,0)" };
static const char *const squares[] = {
    "R,R", "S(0),R", "R,S(0)", "S(0),S(0)", "S(1),S(0)", "S(0),P", "P,P",
    "P(avg),S(1)", "R,P(min)", "SS(0,2),S(0)", "C(1,2),R", "S(0:1,4),R",
    "S(0:3,2),S(1)", "R,S(0:4,1)"
};

static int same(struct job *job, const struct dtensor *a,
                const struct dtensor *b)
{
    int equal = 9;

    good(dtensor_equal(a, b, &equal, &job->err));
    return equal;
}

/* Change element (4,5), the last, wherever it lies; of terms in one. */
static void change_last(struct job *job, struct dtensor *t)
{
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    struct dtensor *full = NULL;
    double x[30];

    good(dtensor_full_tensor(t, x, sizeof x, &job->err));
    x[29] += 1;
    good(dtensor_distribute(spec, x, -1, &full, &job->err));
    memcpy(dtensor_to_local(t) ? dtensor_to_local(t) : x,
           dtensor_to_local(full) ? dtensor_to_local(full) : x,
           dtensor_local_bytes(t));
    dtensor_destroy(full);
}

static void pair(struct job *job, const struct dtensor_mesh *mesh,
                 const char *one, const char *other)
{
    struct dtensor_spec spec = spec_of(job, mesh, DTENSOR_F64, shape, one);
    struct dtensor *a = make(job, &spec, -1), *b;

    spec = spec_of(job, mesh, DTENSOR_F64, shape, other);
    b = make(job, &spec, -1);
    need(same(job, a, b) == 1, "%s and %s differ", one, other);
    change_last(job, b);
    need(same(job, a, b) == 0, "%s and %s, changed, are equal", one, other);
    need(same(job, b, a) == 0, "%s and %s, turned, are equal", one, other);
    change_last(job, a);
    need(same(job, a, b) == 1, "%s and %s, both changed, differ", one, other);
    dtensor_destroy(a);
    dtensor_destroy(b);
}

static void pairs(int rank, int n, void *arg)
{
    const struct dtensor_mesh *line, *square;
    struct job the_job, *job = &the_job;

    job_open(job, rank, n, arg);
    good(dtensor_mesh_find(job->ctx, "world", &line, &job->err));
    good(dtensor_mesh_create(job->ctx, 2, (const int[]){ 2, 2 }, NULL, NULL,
                             &square, &job->err));
    for (size_t i = 0; i < DTN_COUNT(lines); i++)
        for (size_t k = 0; k < DTN_COUNT(lines); k++)
            if (rounds_pick())
                pair(job, line, lines[i], lines[k]);
    for (size_t i = 0; i < DTN_COUNT(squares); i++)
        for (size_t k = 0; k < DTN_COUNT(squares); k++)
            if (rounds_pick())
                pair(job, square, squares[i], squares[k]);
    dtensor_fini(job->ctx);
}

/* ------------------------------------------------------------ what travels */

static uint64_t signals_sent(const struct job *job)
{
    uint64_t sent = 0;

    for (int r = 0; r < job->n; r++)
        sent += job->ctx->peers[r].sent;
    return sent;
}

/* Signals of one comparison, when its plans have been made. */
static uint64_t signals_of(struct job *job, const char *one, const char *other)
{
    const struct dtensor_mesh *mesh;
    struct dtensor_spec spec;
    struct dtensor *a, *b;
    uint64_t before;

    good(dtensor_mesh_create(job->ctx, 2, (const int[]){ 2, 2 }, NULL, NULL,
                             &mesh, &job->err));
    spec = spec_of(job, mesh, DTENSOR_F64, shape, one);
    a = make(job, &spec, -1);
    spec = spec_of(job, mesh, DTENSOR_F64, shape, other);
    b = make(job, &spec, -1);
    same(job, a, b);
    before = signals_sent(job);
    same(job, a, b);
    dtensor_destroy(a);
    dtensor_destroy(b);
    return signals_sent(job) - before;
}

static void travels(int rank, int n, void *arg)
{
    static const char *const quiet[][2] = {
        { "R,R", "S(0),S(1)" }, { "S(0),R", "R,S(1)" }, { "S(1),R", "R,R" },
        { "R,R", "C(1,1),R" }, { "S(0),S(1)", "S(0),R" }
    };
    struct job the_job, *job = &the_job;
    uint64_t alike;

    job_open(job, rank, n, arg);
    alike = signals_of(job, "R,R", "R,R");
    for (size_t i = 0; i < DTN_COUNT(quiet); i++)
        need(signals_of(job, quiet[i][0], quiet[i][1]) == alike,
             "%s against %s moves elements", quiet[i][0], quiet[i][1]);
    need(signals_of(job, "S(0),R", "S(1),R") > alike, "S(0) against S(1) moves "
         "nothing");
    dtensor_fini(job->ctx);
}

/* --------------------------------------------------------------- replicas */

static int agree(struct job *job, const struct dtensor *t)
{
    int equal = 9;

    good(dtensor_replicas_equal(t, &equal, &job->err));
    return equal;
}

/* Rank `odd`'s byte is another one: its replicas see it, if there are any. */
static void torn(struct job *job, const struct dtensor_mesh *mesh,
                 const char *placements, bool replicated)
{
    struct dtensor_spec spec = spec_of(job, mesh, DTENSOR_F64, shape,
                                       placements);
    struct dtensor *t = make(job, &spec, -1);
    unsigned char *part = dtensor_to_local(t);

    need(agree(job, t) == 1, "%s: replicas differ", placements);
    for (int odd = 0; odd < job->n; odd++) {
        int holds = dtensor_local_bytes(t) > 0;

        good(dtensor_broadcast(mesh, odd, &holds, 1, DTENSOR_I32, &job->err));
        if (job->rank == odd && holds)
            part[dtensor_local_bytes(t) - 1] ^= 1;
        need(agree(job, t) == !(replicated && holds), "%s: rank %d is odd",
             placements, odd);
        if (job->rank == odd && holds)
            part[dtensor_local_bytes(t) - 1] ^= 1;
    }
    dtensor_destroy(t);
}

/* Bytes, not numbers: a NaN agrees with itself, 0 and -0 do not. */
static void bytes(struct job *job, const struct dtensor_mesh *mesh)
{
    struct dtensor_spec spec = spec_of(job, mesh, DTENSOR_F64, shape, "R,R");
    struct dtensor *t = NULL;

    good(dtensor_full(&spec, 0.0 / 0.0, &t, &job->err));
    need(agree(job, t) == 1, "a NaN is not its replica");
    need(same(job, t, t) == 0, "a NaN equals itself");
    dtensor_destroy(t);
    good(dtensor_zeros(&spec, &t, &job->err));
    if (job->rank == 3)
        *(double *)dtensor_to_local(t) = -0.0;
    need(agree(job, t) == 0, "0 and -0 are the same bytes");
    dtensor_destroy(t);
}

static void replicas(int rank, int n, void *arg)
{
    const struct dtensor_mesh *square, *two;
    struct job the_job, *job = &the_job;
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    job_open(job, rank, n, arg);
    good(dtensor_mesh_create(job->ctx, 2, (const int[]){ 2, 2 }, NULL, NULL,
                             &square, &job->err));
    torn(job, square, "R,R", true);
    torn(job, square, "S(0),R", true);
    torn(job, square, "R,S(1)", true);
    torn(job, square, "P,R", true);
    torn(job, square, "R,S(0:0,5)", true);
    torn(job, square, "S(0),S(1)", false);
    torn(job, square, "P,S(1)", false);
    bytes(job, square);
    good(dtensor_mesh_create(job->ctx, 1, (const int[]){ 2 }, NULL,
                             (const int[]){ 2, 1 }, &two, &job->err));
    spec = spec_of(job, two, DTENSOR_F64, shape, "R");
    t = make(job, &spec, -1);
    if (rank == 1)
        *(double *)dtensor_to_local(t) = 7;
    need(agree(job, t) == (rank == 0 || rank == 3), "rank %d of a mesh of 1 "
         "and 2", rank);
    dtensor_destroy(t);
    dtensor_fini(job->ctx);
}

int main(void)
{
    ok(ranks_run(4, 60, pairs, NULL, NULL) == 0, "4 ranks: any of %zu "
       "placements equals any other, or differs in one element",
       DTN_COUNT(lines) + DTN_COUNT(squares));
    ok(ranks_run(4, 60, travels, NULL, NULL) == 0, "a tensor that has only to "
       "be cut is compared without moving it");
    ok(ranks_run(4, 60, replicas, NULL, NULL) == 0, "replicas that differ in "
       "one bit are seen by every rank");
    return done();
}

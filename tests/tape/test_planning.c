/* test_planning.c - one program in a job and in a context that only plans
 *
 * The program calls operators, attention and tapes, in a scope of the counters
 * for each.  It runs on 4 ranks, and without them in a context whose tensors
 * have no elements: there the counters must tell as many collectives of each
 * kind as each rank has made, the bytes of all ranks together, and the memory
 * that the tape of rank 0 keeps.  What needs elements is refused.
 *
 * Without this test, a plan of a model could be that of another program, or a
 * call could give elements that nobody has computed.
 */
#include "dtensor.h"
#include "job/ctx.h"
#include "tests/support/job.h"
#include "tests/support/ranks.h"
#include "tests/support/tap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 4, KINDS = DTENSOR_DEBUG_NKINDS, CASES_MAX = 20 };

/* What a case moves and keeps. */
struct moved {
    uint64_t calls[DTENSOR_NDIRECTIONS][KINDS];
    uint64_t bytes[DTENSOR_NDIRECTIONS][KINDS];
    uint64_t kept;
};

static struct moved (*counted)[CASES_MAX]; /* [RANKS] in a job                */
static double *crowd;                      /* ranks for each CPU there, which */
                                           /* algorithms are chosen by        */
static struct job *job;

/* -------------------------------------------------------------- program --- */

static struct dtensor *zeros(const char *placements, enum dtensor_dtype dtype,
                             int ndim, const int64_t shape[])
{
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    good(dtensor_spec_init(&spec, job->ctx, "world", placements, dtype, ndim,
                           shape, &job->err));
    good(dtensor_zeros(&spec, &t, &job->err));
    return t;
}

/* An operator of inputs that lie so; some are indices. */
struct step {
    const char *name;
    const char *op;               /* NULL: attention                          */
    const char *in[4];            /* how inputs lie; "i" before it: indices   */
    int64_t shape[4][4];          /* their shapes, up to a 0                  */
    struct dtensor_op_args args;
    enum dtensor_attention_method method;
};

static const struct step steps[] = {
    { "linear", "linear", { "R", "S(0)", "S(0)" },
      { { 8, 16 }, { 32, 16 }, { 32 } }, { 0 }, 0 },
    { "rows", "linear", { "S(0)", "R", "R" },
      { { 8, 16 }, { 32, 16 }, { 32 } }, { 0 }, 0 },
    { "gathered", "matmul", { "S(1)", "S(1)" }, { { 16, 16 }, { 16, 8 } },
      { 0 }, 0 },
    { "softmax", "softmax", { "S(1)" }, { { 64, 512 } },
      { .dim = { 1 }, .ndims = 1 }, 0 },
    { "norm", "layer_norm", { "S(1)", "S(0)", "S(0)" },
      { { 64, 512 }, { 512 }, { 512 } }, { .count = 1 }, 0 },
    { "loss", "cross_entropy", { "S(1)", "iR" }, { { 64, 512 }, { 64 } },
      { .reduction = DTENSOR_OP_MEAN }, 0 },
    { "uneven", "linear", { "S(0)", "S(1)" }, { { 7, 9 }, { 5, 9 } }, { 0 },
      0 },
    { "dropout", "dropout", { "S(0)" }, { { 8, 16 } }, { .p = 0.5 }, 0 },
    { "whole", NULL, { "S(1)", "S(1)", "S(1)" },
      { { 2, 4, 16, 8 }, { 2, 4, 16, 8 }, { 2, 4, 16, 8 } }, { 0 },
      DTENSOR_ATTENTION_AUTO },
    { "ring", NULL, { "S(2)", "S(2)", "S(2)" },
      { { 2, 4, 16, 8 }, { 2, 4, 16, 8 }, { 2, 4, 16, 8 } }, { 0 },
      DTENSOR_ATTENTION_RING },
    { "gather", NULL, { "HT(2)", "HT(2)", "HT(2)" },
      { { 2, 4, 16, 8 }, { 2, 4, 16, 8 }, { 2, 4, 16, 8 } },
      { .causal = 1 }, DTENSOR_ATTENTION_GATHER },
    { "heads", NULL, { "S(2)", "S(2)", "S(2)" },
      { { 2, 4, 16, 8 }, { 2, 4, 16, 8 }, { 2, 4, 16, 8 } }, { 0 },
      DTENSOR_ATTENTION_HEADS }
};
enum { NSTEPS = sizeof steps / sizeof steps[0] };

static int inputs_make(const struct step *s, struct dtensor *in[4],
                       struct dtensor_tape *tape)
{
    int n = 0;

    for (; n < 4 && s->in[n]; n++) {
        const bool index = s->in[n][0] == 'i';
        int ndim = 0;

        while (ndim < 4 && s->shape[n][ndim])
            ndim++;
        in[n] = zeros(s->in[n] + index, index ? DTENSOR_I64 : DTENSOR_F64,
                      ndim, s->shape[n]);
        if (!index)
            good(dtensor_tape_watch(tape, in[n], &job->err));
    }
    return n;
}

static struct dtensor *forward(const struct step *s, int n,
                               struct dtensor *const in[])
{
    const struct dtensor *const *from = (const struct dtensor *const *)in;
    const struct dtensor_attention_options how = { .method = s->method,
        .causal = s->args.causal };
    struct dtensor *y = NULL;

    if (s->op && strcmp(s->op, "dropout") == 0)
        good(dtensor_dropout(in[0], s->args.p, NULL, &y, NULL, &job->err));
    else if (s->op)
        good(dtensor_op(s->op, n, from, &s->args, 1, &y, &job->err));
    else
        good(dtensor_attention(in[0], in[1], in[2], &how, &y, &job->err));
    return y;
}

static void backward(struct dtensor_tape *tape, const struct dtensor *y)
{
    struct dtensor_spec spec = *dtensor_spec_of(y);
    struct dtensor *ones = NULL;

    if (spec.placement[0].kind == DTENSOR_PARTIAL)
        spec.placement[0].kind = DTENSOR_REPLICATE;
    good(dtensor_ones(&spec, &ones, &job->err));
    good(dtensor_tape_backward(tape, y, ones, &job->err));
    dtensor_destroy(ones);
}

static void step_run(const struct step *s, struct moved *moved)
{
    struct dtensor *in[4] = { NULL }, *y;
    struct dtensor_tape *tape = NULL;
    int n;

    good(dtensor_debug_push(job->ctx, s->name, &job->err));
    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    n = inputs_make(s, in, tape);
    good(dtensor_tape_begin(tape, &job->err));
    y = forward(s, n, in);
    good(dtensor_tape_end(tape, &job->err));
    good(dtensor_tape_bytes(tape, NULL, &moved->kept, &job->err));
    backward(tape, y);
    dtensor_destroy(y);
    for (int i = 0; i < n; i++)
        dtensor_destroy(in[i]);
    dtensor_tape_destroy(tape);
    good(dtensor_debug_pop(job->ctx, &job->err));
}

static void program(struct moved moved[])
{
    struct dtensor_debug_count count;

    good(dtensor_debug_begin(job->ctx, NULL, &job->err));
    for (int i = 0; i < NSTEPS; i++)
        step_run(&steps[i], &moved[i]);
    good(dtensor_debug_end(job->ctx, &job->err));
    for (int i = 0; i < NSTEPS; i++)
        for (int d = 0; d < DTENSOR_NDIRECTIONS; d++)
            for (int k = 0; k < KINDS; k++) {
                good(dtensor_debug_counts(job->ctx, steps[i].name,
                                          (enum dtensor_direction)d, k, &count,
                                          &job->err));
                moved[i].calls[d][k] = count.calls;
                moved[i].bytes[d][k] = count.predicted_bytes;
            }
}

static void rank_main(int rank, int n, void *arg)
{
    struct job mine;

    (void)arg;
    job = &mine;
    job_open(job, rank, n, NULL);
    *crowd = job->ctx->cpus.ranks_per_cpu;
    program(counted[rank]);
    dtensor_fini(job->ctx);
}

/* ------------------------------------------------------------- compared --- */

/* Calls of each kind, and bytes of all: a batch counts its bytes as those of
 * its first tensor.
 */
static bool side_agrees(int i, int d, const struct moved *told)
{
    uint64_t bytes = 0, bytes_told = 0;
    bool agree = true;

    for (int k = 0; k < KINDS; k++) {
        bytes_told += told->bytes[d][k];
        for (int r = 0; r < RANKS; r++) {
            bytes += counted[r][i].bytes[d][k];
            agree = agree && counted[r][i].calls[d][k] == told->calls[d][k];
        }
        if (told->calls[d][k] != counted[0][i].calls[d][k])
            printf("# direction %d, kind %d: %" PRIu64 " calls, told %" PRIu64
                   "\n", d, k, counted[0][i].calls[d][k], told->calls[d][k]);
    }
    if (bytes != bytes_told)
        printf("# direction %d: %" PRIu64 " bytes, told %" PRIu64 "\n", d,
               bytes, bytes_told);
    return agree && bytes == bytes_told;
}

static bool step_agrees(int i, const struct moved *told)
{
    bool agree = told->kept == counted[0][i].kept;

    if (!agree)
        printf("# keeps %" PRIu64 ", not %" PRIu64 "\n", counted[0][i].kept,
               told->kept);
    for (int d = 0; d < DTENSOR_NDIRECTIONS; d++)
        agree = side_agrees(i, d, told) && agree;
    return agree;
}

/* -------------------------------------------------------------- refused --- */

static bool refused(int rc)
{
    return rc == DTENSOR_EINVAL && strstr(job->err.text, "only plans");
}

static void refusals(void)
{
    const int64_t shape[] = { 8, 4 };
    struct dtensor *t = zeros("S(0)", DTENSOR_F64, 2, shape);
    struct dtensor *r = zeros("R", DTENSOR_F64, 2, shape), *made = NULL;
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    double full[32] = { 0 };
    FILE *null = fopen("/dev/null", "w");
    int equal = 7;

    ok(dtensor_local_bytes(t) == 0 && !dtensor_to_local(t),
       "a tensor has no elements");
    ok(refused(dtensor_from_local(spec, full, 64, &made, &job->err)) && !made,
       "from_local is refused: %s", job->err.text);
    ok(refused(dtensor_distribute(spec, full, 0, &made, &job->err)) && !made,
       "elements are not distributed");
    ok(refused(dtensor_full_tensor(t, full, sizeof full, &job->err)),
       "the whole of a tensor is refused");
    ok(refused(dtensor_full_tensor(r, full, sizeof full, &job->err)),
       "also where no rank would send");
    ok(refused(dtensor_print(t, null, &job->err)) &&
       refused(dtensor_print(r, null, &job->err)), "printing is refused");
    ok(refused(dtensor_equal(t, r, &equal, &job->err)) && equal == 7,
       "comparing is refused");
    ok(refused(dtensor_replicas_equal(r, &equal, &job->err)) && equal == 7,
       "comparing replicas is refused");
    ok(refused(dtensor_save(t, "/tmp/dtensor-planning.npy", &job->err)) &&
       access("/tmp/dtensor-planning.npy", F_OK) != 0, "saving is refused");
    ok(refused(dtensor_load(spec, "/dev/null", &made, &job->err)) && !made,
       "loading is refused: %s", job->err.text);
    fclose(null);
    dtensor_destroy(t);
    dtensor_destroy(r);
}

int main(void)
{
    static struct moved told[CASES_MAX];
    struct job lone;

    job = &lone;
    crowd = mmap(NULL, sizeof *crowd + sizeof *counted * RANKS,
                 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (crowd == MAP_FAILED)
        return 99;
    counted = (struct moved (*)[CASES_MAX])(crowd + 1);
    ok(ranks_run(RANKS, 120, rank_main, NULL, NULL) == 0,
       "the program runs on %d ranks", RANKS);
    good(dtensor_init_offline(NULL, RANKS, 0, &job->ctx, &job->err));
    job->ctx->cpus.ranks_per_cpu = *crowd;
    program(told);
    for (int i = 0; i < NSTEPS; i++)
        ok(step_agrees(i, &told[i]), "%s: a context that only plans tells "
           "what ran", steps[i].name);
    refusals();
    dtensor_fini(job->ctx);
    return done();
}

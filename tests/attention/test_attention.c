/* test_attention.c - attention with the sequence cut
 *
 * Results and gradients of every way, in every placement of the sequence, on 1,
 * 2, 4 and 8 ranks, against the operator on whole tensors; what is refused, in
 * its words; and a rank that dies while keys go round.
 *
 * Without this test, a ring could skip a block of keys that a query sees, or
 * count one twice, and the model would still learn something.
 */
#include "base/compiler.h"
#include "dtensor.h"
#include "tests/support/job.h"

#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

enum { ELEMENTS = 2 * 8 * 32 * 6 };       /* of the largest tensor            */

/* A call: n x h x L x D queries, keys of M rows, values of V columns. */
struct shapes {
    int64_t n, h, rows, keys, width, values;
};

/* q, k and v, and the gradient of the result. */
struct set {
    struct dtensor *t[4];
};

/* ------------------------------------------------------------- tensors --- */

static struct dtensor *tensor(struct job *job, const struct dtensor_mesh *mesh,
                              const char *placements, enum dtensor_dtype dtype,
                              const int64_t shape[4], uint64_t seed)
{
    struct dtensor_spec wide, spec;
    struct dtensor *t = NULL, *cast = NULL;
    static double full[ELEMENTS];
    int64_t count = 1;

    for (int d = 0; d < 4; d++)
        count *= shape[d];
    need(count <= ELEMENTS, "%d elements are too few", ELEMENTS);
    for (int64_t i = 0; i < count; i++)
        full[i] = rand_below(&seed, 2001) / 1000.0 - 1;
    good(dtensor_spec_on(&wide, mesh, placements, DTENSOR_F64, 4, shape,
                         &job->err));
    good(dtensor_spec_on(&spec, mesh, placements, dtype, 4, shape, &job->err));
    good(dtensor_distribute(&wide, full, -1, &t, &job->err));
    good(dtensor_cast(t, dtype, &cast, &job->err));
    dtensor_destroy(t);
    return cast;
}

static struct set set_make(struct job *job, const struct dtensor_mesh *mesh,
                           const char *placements, const char *grad,
                           enum dtensor_dtype dtype, const struct shapes *s)
{
    const int64_t shape[4][4] = {
        { s->n, s->h, s->rows, s->width }, { s->n, s->h, s->keys, s->width },
        { s->n, s->h, s->keys, s->values }, { s->n, s->h, s->rows, s->values }
    };
    struct set set;

    for (int i = 0; i < 4; i++)
        set.t[i] = tensor(job, mesh, i < 3 ? placements : grad, dtype, shape[i],
                          77 + (uint64_t)i);
    return set;
}

static void set_destroy(struct set *set)
{
    for (int i = 0; i < 4; i++)
        dtensor_destroy(set->t[i]);
}

/* The whole tensor as f64. */
static void whole(struct job *job, const struct dtensor *t, double full[])
{
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    struct dtensor *cast = NULL;
    size_t count = 1;

    for (int d = 0; d < spec->ndim; d++)
        count *= (size_t)spec->shape[d];
    good(dtensor_cast(t, DTENSOR_F64, &cast, &job->err));
    good(dtensor_full_tensor(cast, full, count * sizeof full[0], &job->err));
    dtensor_destroy(cast);
}

static void alike(struct job *job, const struct dtensor *a,
                  const struct dtensor *b, double bound, const char *what)
{
    static double one[ELEMENTS], other[ELEMENTS];
    const struct dtensor_spec *spec = dtensor_spec_of(a);
    int64_t count = 1;

    for (int d = 0; d < spec->ndim; d++)
        count *= spec->shape[d];
    whole(job, a, one);
    whole(job, b, other);
    for (int64_t i = 0; i < count; i++)
        need(fabs(one[i] - other[i]) <= bound, "%s: element %d is %.17g, not "
             "%.17g", what, (int)i, one[i], other[i]);
}

/* ------------------------------------------------------------- compare --- */

/* The result and the gradients of q, k and v; by the operator if `how` is NULL.
 */
static void run(struct job *job, const struct set *in,
                const struct dtensor_attention_options *how, bool causal,
                struct dtensor *made[4])
{
    const struct dtensor *const *qkv = (const struct dtensor *const *)in->t;
    const struct dtensor_op_args args = { .causal = causal };
    struct dtensor_tape *tape = NULL;

    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    for (int i = 0; i < 3; i++)
        good(dtensor_tape_watch(tape, qkv[i], &job->err));
    good(dtensor_tape_begin(tape, &job->err));
    if (how)
        good(dtensor_attention(qkv[0], qkv[1], qkv[2], how, &made[0],
                               &job->err));
    else
        good(dtensor_op("attention", 3, qkv, &args, 1, &made[0], &job->err));
    good(dtensor_tape_end(tape, &job->err));
    good(dtensor_tape_backward(tape, made[0], in->t[3], &job->err));
    for (int i = 0; i < 3; i++) {
        const struct dtensor *grad = dtensor_tape_grad(tape, qkv[i]);

        need(grad, "input %d has no gradient", i);
        good(dtensor_clone(grad, &made[i + 1], &job->err));
    }
    dtensor_tape_destroy(tape);
}

/* Bounds of the difference: rounding of f32, of f64, of bf16. */
static double bound_of(enum dtensor_dtype dtype)
{
    return dtype == DTENSOR_F64 ? 1e-13 : dtype == DTENSOR_F32 ? 1e-5 : 0.06;
}

static void compare(struct job *job, const struct dtensor_mesh *mesh,
                    const char *placements, enum dtensor_dtype dtype,
                    const struct shapes *s, bool causal)
{
    static const char *const what[4] = { "result", "gradient of q",
                                         "gradient of k", "gradient of v" };
    const int ndim = dtensor_mesh_ndim(mesh);
    const char *none = ndim == 1 ? "R" : "R,R";
    struct set same = set_make(job, mesh, none, none, dtype, s);
    struct set cut = set_make(job, mesh, placements, none, dtype, s);
    struct dtensor *want[4], *have[4];
    char text[160];

    run(job, &same, NULL, causal, want);
    for (int method = 0; method < DTENSOR_ATTENTION_METHODS; method++) {
        const struct dtensor_attention_options how = { .causal = causal,
            .method = (enum dtensor_attention_method)method };

        run(job, &cut, &how, causal, have);
        for (int i = 0; i < 4; i++) {
            snprintf(text, sizeof text, "%s, %s, %s, method %d, %s", placements,
                     dtensor_dtype_name(dtype), causal ? "causal" : "all keys",
                     method, what[i]);
            alike(job, have[i], want[i], bound_of(dtype), text);
            dtensor_destroy(have[i]);
        }
    }
    for (int i = 0; i < 4; i++)
        dtensor_destroy(want[i]);
    set_destroy(&same);
    set_destroy(&cut);
}

static void one_dimension(struct job *job)
{
    static const char *const placements[] = { "S(2)", "HT(2)", "SS(2,2)",
                                              "C(2,2)" };
    static const enum dtensor_dtype dtypes[] = { DTENSOR_F64, DTENSOR_F32,
                                                 DTENSOR_BF16 };
    const struct shapes s = { 1, 8, 32, 32, 5, 6 };
    const struct shapes more = { 1, 8, 16, 32, 3, 2 };
    const struct dtensor_mesh *mesh = NULL;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    for (size_t p = 0; p < DTN_COUNT(placements); p++)
        for (int causal = 0; causal < 2; causal++)
            compare(job, mesh, placements[p], dtypes[(p + (size_t)causal) % 3],
                    &s, causal);
    compare(job, mesh, "S(2)", DTENSOR_F64, &more, false);
    compare(job, mesh, "HT(2)", DTENSOR_F32, &more, false);
}

static void two_dimensions(struct job *job)
{
    static const char *const placements[] = { "S(0),HT(2)", "HT(2),S(1)",
                                              "R,S(2)" };
    const struct shapes s = { 2, 4, 16, 16, 4, 3 };
    const int size[2] = { 2, job->n / 2 };
    const struct dtensor_mesh *mesh = NULL;

    good(dtensor_mesh_create(job->ctx, 2, size, NULL, NULL, &mesh,
                             &job->err));
    for (size_t p = 0; p < DTN_COUNT(placements); p++)
        compare(job, mesh, placements[p], p ? DTENSOR_F64 : DTENSOR_F32, &s,
                true);
}

/* ------------------------------------------------------------- refused --- */

static void refused(struct job *job, const char *placements,
                    const struct shapes *s,
                    const struct dtensor_attention_options *how,
                    const char *words)
{
    const struct dtensor_mesh *mesh = NULL;
    struct dtensor *out = NULL;
    struct set in;
    int rc;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    in = set_make(job, mesh, placements, "R", DTENSOR_F32, s);
    rc = dtensor_attention(in.t[0], in.t[1], in.t[2], how, &out, &job->err);
    need(rc == DTENSOR_EINVAL && !out && strstr(job->err.text, words),
         "%d \"%s\" instead of \"%s\"", rc, job->err.text, words);
    set_destroy(&in);
}

/* Keys of more heads than queries; the words have the placements of both. */
static void bad_heads(struct job *job)
{
    const struct shapes s = { 1, 2, 16, 16, 4, 4 };
    const struct shapes more = { 1, 3, 16, 16, 4, 4 };
    const struct dtensor_mesh *mesh = NULL;
    struct dtensor *out = NULL;
    struct set in, other;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    in = set_make(job, mesh, "S(2)", "R", DTENSOR_F32, &s);
    other = set_make(job, mesh, "S(2)", "R", DTENSOR_F32, &more);
    need(dtensor_attention(in.t[0], other.t[1], other.t[2], NULL, &out,
                           &job->err) == DTENSOR_EINVAL &&
         strstr(job->err.text, "attention of 1x2x16x4 f32 S(2), 1x3x16x4 f32 "
                "S(2)"), "%s", job->err.text);
    set_destroy(&in);
    set_destroy(&other);
}

static void bad_calls(struct job *job)
{
    const struct shapes s = { 1, 2, 16, 16, 4, 4 };
    const struct shapes odd = { 1, 3, 10, 10, 4, 4 };
    const struct shapes two = { 1, 2, 16, 24, 4, 4 };
    struct dtensor_attention_options how = { .causal = 1 };
    struct dtensor *out = NULL;

    refused(job, "HT(2)", &odd, &how, "a sequence of 10 has no heads and "
            "tails of one length over 4 ranks (it can be 8 or 16; or shard it "
            "by S(2))");
    refused(job, "S(2)", &two, &how, "16 queries and 24 keys under a causal "
            "mask");
    how.method = DTENSOR_ATTENTION_RING;
    refused(job, "S(2)", &odd, &how, "method ring needs as many rows on each "
            "rank, but 10 queries or 10 keys are not sharded evenly over 4 "
            "ranks");
    refused(job, "R", &s, &how, "method ring needs one mesh dimension that "
            "shards dimension 2");
    refused(job, "P", &s, &how, "method ring needs one mesh dimension");
    how.method = DTENSOR_ATTENTION_HEADS;
    refused(job, "S(2)", &odd, &how, "method heads cannot shard 3 heads over "
            "4 ranks evenly");
    how.method = (enum dtensor_attention_method)17;
    refused(job, "S(2)", &s, &how, "there is no method 17");
    need(dtensor_attention(NULL, NULL, NULL, NULL, &out, &job->err) ==
         DTENSOR_EINVAL && strstr(job->err.text, "q is NULL"), "%s",
         job->err.text);
}

/* What a call would take; uneven lengths are gathered; a group is open. */
static void predicted(struct job *job)
{
    const int64_t shape[4] = { 1, 4, 4096, 64 };
    struct dtensor_attention_options how = { .causal = 1 };
    struct dtensor_attention_info by_chunks, by_ends;
    struct dtensor_spec in[3];

    for (int i = 0; i < 3; i++)
        good(dtensor_spec_init(&in[i], job->ctx, "world", "S(2)", DTENSOR_F32,
                               4, shape, &job->err));
    good(dtensor_attention_predict(in, &how, &by_chunks, &job->err));
    need(by_chunks.method == DTENSOR_ATTENTION_HEADS,
         "method %d is taken where only heads share the work evenly",
         (int)by_chunks.method);
    for (int i = 0; i < 3; i++)
        good(dtensor_spec_init(&in[i], job->ctx, "world", "HT(2)", DTENSOR_F32,
                               4, shape, &job->err));
    good(dtensor_attention_predict(in, &how, &by_ends, &job->err));
    need(by_ends.predicted_us[DTENSOR_ATTENTION_RING] <
         by_chunks.predicted_us[DTENSOR_ATTENTION_RING] &&
         by_ends.predicted_us[DTENSOR_ATTENTION_GATHER] <
         by_chunks.predicted_us[DTENSOR_ATTENTION_GATHER] &&
         isinf(by_ends.predicted_us[DTENSOR_ATTENTION_AUTO]),
         "head and tail save nothing");
    need(by_ends.method == DTENSOR_ATTENTION_RING && by_ends.why,
         "method %d is taken where the ring hides what it moves",
         (int)by_ends.method);
    dtensor_set_repro(job->ctx, 1);
    good(dtensor_attention_predict(in, &how, &by_ends, &job->err));
    need(by_ends.method == DTENSOR_ATTENTION_HEADS,
         "method %d is taken under repro", (int)by_ends.method);
    dtensor_set_repro(job->ctx, 0);
}

static void uneven(struct job *job)
{
    const struct shapes odd = { 1, 3, 10, 10, 4, 4 };
    const struct dtensor_attention_options how = { .causal = 1 };
    const struct dtensor_mesh *mesh = NULL;
    struct dtensor *want[4], *have[4];
    struct set same, cut;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    same = set_make(job, mesh, "R", "R", DTENSOR_F64, &odd);
    cut = set_make(job, mesh, "S(2)", "S(2)", DTENSOR_F64, &odd);
    run(job, &same, NULL, true, want);
    run(job, &cut, &how, true, have);
    for (int i = 0; i < 4; i++) {
        alike(job, have[i], want[i], 1e-13, "uneven");
        dtensor_destroy(want[i]);
        dtensor_destroy(have[i]);
    }
    set_destroy(&same);
    set_destroy(&cut);
}

/* ---------------------------------------------------------------- jobs --- */

static void rank_main(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;

    job_open(job, rank, n, NULL);
    one_dimension(job);
    if (n >= 4)
        two_dimensions(job);
    if (n == 4) {
        bad_calls(job);
        bad_heads(job);
        predicted(job);
        uneven(job);
    }
    dtensor_fini(job->ctx);
}

/* Rank 1 dies; the others, which wait for its keys, say so. */
static void rank_dies(int rank, int n, void *arg)
{
    const struct shapes s = { 1, 2, 32, 32, 4, 4 };
    const struct dtensor_attention_options how = {
        .method = DTENSOR_ATTENTION_RING };
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh = NULL;
    struct dtensor *out = NULL;
    struct set in;
    int rc = 0;

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    in = set_make(job, mesh, "S(2)", "R", DTENSOR_F32, &s);
    good(dtensor_attention(in.t[0], in.t[1], in.t[2], &how, &out, &job->err));
    if (rank == 1)
        raise(SIGKILL);
    while (rc == 0) {
        dtensor_destroy(out);
        out = NULL;
        rc = dtensor_attention(in.t[0], in.t[1], in.t[2], &how, &out,
                               &job->err);
    }
    need(!out && strstr(job->err.text, "rank 1"), "%s", job->err.text);
    set_destroy(&in);
    dtensor_fini(job->ctx);
}

int main(void)
{
    for (int n = 1; n <= 8; n *= 2)
        ok(ranks_run(n, 240, rank_main, NULL, NULL) == 0,
           "on %d ranks every way gives what whole tensors give", n);
    ok(ranks_run(4, 240, rank_dies, NULL, NULL) == 1,
       "a rank that dies is named by the others");
    return done();
}

/* test_skipped.c - what a causal mask hides is not computed
 *
 * Four ranks attend under a causal mask, and the scores that each computes are
 * counted, forward and backward.  With the sequence cut in neighbouring parts
 * rank r has the scores of r parts before its own and half of its own; with
 * head and tail dealt out, HT, all ranks have the same number.
 *
 * Without this test, a ring could compute all scores and mask half of them, or
 * the balance could be one in name only: results are the same.
 */
#include "dtensor.h"
#include "math/attention.h"
#include "tests/support/job.h"

#include <stdbool.h>
#include <stdint.h>

enum { RANKS = 4, HEADS = 2, ROWS = 16, WIDTH = 4 };     /* ROWS: of a rank   */

static int64_t scores;            /* that this rank has computed              */

void __real_dtn_attention(const struct dtn_attention *a,
                          const struct dtn_array *out,
                          const struct dtn_array *lse, void *workspace);
void __wrap_dtn_attention(const struct dtn_attention *a,
                          const struct dtn_array *out,
                          const struct dtn_array *lse, void *workspace);
void __real_dtn_attention_backward(const struct dtn_attention *a,
                                   const struct dtn_attention_grads *grads,
                                   void *workspace);
void __wrap_dtn_attention_backward(const struct dtn_attention *a,
                                   const struct dtn_attention_grads *grads,
                                   void *workspace);

/* Of all queries and keys of a call, or only those up to its own. */
static void count(const struct dtn_attention *a)
{
    const int64_t queries = a->q->shape[2], keys = a->k->shape[2];

    for (int64_t i = 0; i < queries; i++)
        scores += a->causal && i + 1 < keys ? i + 1 : keys;
}

void __wrap_dtn_attention(const struct dtn_attention *a,
                          const struct dtn_array *out,
                          const struct dtn_array *lse, void *workspace)
{
    count(a);
    __real_dtn_attention(a, out, lse, workspace);
}

void __wrap_dtn_attention_backward(const struct dtn_attention *a,
                                   const struct dtn_attention_grads *grads,
                                   void *workspace)
{
    count(a);
    __real_dtn_attention_backward(a, grads, workspace);
}

/* The scores of rows that begin at `first`, with all keys up to their own. */
static int64_t seen(int64_t first, int64_t rows)
{
    return rows * first + rows * (rows + 1) / 2;
}

static int64_t expected(int rank, bool balanced)
{
    const int64_t half = ROWS / 2;

    return HEADS * (balanced ? seen(rank * half, half) +
                               seen((2 * RANKS - 1 - rank) * half, half)
                             : seen(rank * ROWS, ROWS));
}

static void counted(const struct job *job, bool balanced, const char *what)
{
    need(scores == expected(job->rank, balanced), "%s, %s: %d scores, not %d",
         balanced ? "HT(2)" : "S(2)", what, (int)scores,
         (int)expected(job->rank, balanced));
    scores = 0;
}

static void attend(struct job *job, bool balanced,
                   enum dtensor_attention_method method)
{
    const int64_t shape[] = { 1, HEADS, RANKS * ROWS, WIDTH };
    const struct dtensor_attention_options how = { .causal = 1,
                                                   .method = method };
    struct dtensor *in[3] = { NULL }, *out = NULL;
    struct dtensor_tape *tape = NULL;
    struct dtensor_spec spec;

    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    good(dtensor_spec_init(&spec, job->ctx, "world", balanced ? "HT(2)"
                           : "S(2)", DTENSOR_F64, 4, shape, &job->err));
    for (int i = 0; i < 3; i++) {
        good(dtensor_randn(&spec, NULL, &in[i], &job->err));
        good(dtensor_tape_watch(tape, in[i], &job->err));
    }
    good(dtensor_tape_begin(tape, &job->err));
    good(dtensor_attention(in[0], in[1], in[2], &how, &out, &job->err));
    good(dtensor_tape_end(tape, &job->err));
    counted(job, balanced, "forward");
    good(dtensor_tape_backward(tape, out, out, &job->err));
    counted(job, balanced, "backward");
    for (int i = 0; i < 3; i++)
        dtensor_destroy(in[i]);
    dtensor_destroy(out);
    dtensor_tape_destroy(tape);
}

static void rank_main(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;

    (void)arg;
    job_open(job, rank, n, NULL);
    for (int balanced = 0; balanced < 2; balanced++) {
        attend(job, balanced, DTENSOR_ATTENTION_RING);
        attend(job, balanced, DTENSOR_ATTENTION_GATHER);
    }
    dtensor_fini(job->ctx);
}

int main(void)
{
    ok(ranks_run(RANKS, 60, rank_main, NULL, NULL) == 0,
       "each rank computes the scores that the mask lets through, and with "
       "head and tail all compute the same number");
    return done();
}

/* turns.c - a collective of ours and libibverbs alone, which take turns
 *
 *     dtensor-run -n 2 turns FILE
 *
 * One call of each after the other, in one pair of processes.  So both see the
 * same machine: a run in which other programs use the processors is slow for
 * both.  Before each call an exchange by libibverbs is the barrier; the slower
 * process of each call counts.  Rank 0 prints the best and the median:
 *
 *     sum_bare 17.1 18.4        us, 8 bytes with a number written both ways at
 *                               once, seen, and added
 *     sum_ours 19.0 20.7        us, dtensor_allreduce() of 8 bytes
 *     rows_gathers 7900 8100    us, both ways 512 rows of 2 KiB, 16 in a write
 *     rows_keeps 8300 8500      us, the same, and the 512 rows that a rank
 *                               keeps are copied to their place
 *     rows_ours 8700 9000       us, dtensor_redistribute_into() from S(0) to
 *                               S(1) of 1024 x 1024 floats: the same work
 */
#include "base/wait.h"
#include "dtensor.h"
#include "tests/rdma/writes.h"
#include "tests/support/job.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SUMS = WRITES_CALLS, ROWS = 150, WARM = 20, EDGE = 1024, ROW = 2048 };

struct turns {
    struct job job;
    struct writes w;
    const struct dtensor_mesh *world;
    float *in, *out;              /* [2] ours                                 */
    float sum[2];                 /* of libibverbs alone                      */
    uint64_t sums;                /* made by libibverbs alone                 */
    struct dtensor *rows, *columns;
};

/* ---------------------------------------------------------- contestants --- */

/* Two places in turn: the other may be one sum ahead. */
static void sum_bare(struct turns *t)
{
    const size_t at = WRITES_FREE + ++t->sums % 2 * 16;
    struct ibv_sge sge = writes_piece(&t->w, at, 16);
    struct ibv_send_wr wr = writes_request(&t->w, &sge, 1, at);
    const float *theirs = (const void *)(t->w.in + at);
    const _Atomic uint64_t *number = (const void *)(t->w.in + at + 8);

    memcpy(t->w.out + at, t->in, 8);
    memcpy(t->w.out + at + 8, &t->sums, 8);
    writes_post(&t->w, &wr, 1);
    while (atomic_load_explicit(number, memory_order_acquire) != t->sums)
        ;
    for (int i = 0; i < 2; i++)
        t->sum[i] = t->in[i] + theirs[i];
}

static void sum_ours(struct turns *t)
{
    struct job *job = &t->job;

    good(dtensor_allreduce(t->world, t->in, t->out, 2, DTENSOR_F32,
                           DTENSOR_SUM, &job->err));
}

static void rows_gathers(struct turns *t)
{
    writes_rows(&t->w, ROW, END_PIECES);
}

/* The rows that stay: half of each row of two blocks, to a third block. */
static void rows_keeps(struct turns *t)
{
    unsigned char *to = t->w.out + 2 * WRITES_BLOCK;

    for (size_t at = 0; at < WRITES_BLOCK; at += ROW)
        memcpy(to + at, t->w.out + 2 * at + ROW, ROW);
    writes_rows(&t->w, ROW, END_PIECES);
}

static void rows_ours(struct turns *t)
{
    struct job *job = &t->job;

    good(dtensor_redistribute_into(t->rows, t->columns, &job->err));
}

/* ---------------------------------------------------------- measurement --- */

struct contestant {
    const char *name;
    void (*call)(struct turns *t);
};

enum { MOST = 3 };

static double call_us(struct turns *t, const struct contestant *who)
{
    int64_t start;

    writes_exchange(&t->w, 8);
    start = dtn_now_ns();
    who->call(t);
    return (double)(dtn_now_ns() - start) / 1e3;
}

static void measure(struct turns *t, const struct contestant *who, int n,
                    int calls)
{
    static double us[MOST][WRITES_CALLS];

    for (int i = -WARM; i < calls; i++)
        for (int c = 0; c < n; c++) {
            const double took = call_us(t, &who[c]);

            if (i >= 0)
                us[c][i] = took;
        }
    for (int c = 0; c < n; c++) {
        writes_slower(&t->w, us[c], calls);
        writes_sort(us[c], calls);
        if (t->job.rank == 0)
            printf("%s %.2f %.2f\n", who[c].name, us[c][0], us[c][calls / 2]);
        writes_exchange(&t->w, 8);
    }
}

static void measure_sums(struct turns *t)
{
    static const struct contestant who[] = { { "sum_bare", sum_bare },
                                             { "sum_ours", sum_ours } };
    struct job *job = &t->job;
    void *in, *out;

    good(dtensor_alloc(job->ctx, 8, &in, &job->err));
    good(dtensor_alloc(job->ctx, 8, &out, &job->err));
    t->in = in;
    t->out = out;
    t->in[0] = (float)job->rank + 1;
    t->in[1] = (float)job->rank + 10;
    measure(t, who, 2, SUMS);
    need(t->sum[0] == 3 && t->sum[1] == 21, "bare sums are wrong");
    need(t->out[0] == 3 && t->out[1] == 21, "our sums are wrong");
    dtensor_free(job->ctx, in);
    dtensor_free(job->ctx, out);
}

static struct dtensor *tensor(struct job *job, const char *placements)
{
    const int64_t shape[] = { EDGE, EDGE };
    struct dtensor_spec spec;
    struct dtensor *t;

    good(dtensor_spec_init(&spec, job->ctx, "world", placements, DTENSOR_F32, 2,
                           shape, &job->err));
    good(dtensor_arange(&spec, &t, &job->err));
    return t;
}

static void measure_rows(struct turns *t)
{
    static const struct contestant who[] = { { "rows_gathers", rows_gathers },
                                             { "rows_keeps", rows_keeps },
                                             { "rows_ours", rows_ours } };
    const float *first;

    t->rows = tensor(&t->job, "S(0)");
    t->columns = tensor(&t->job, "S(1)");
    memset(dtensor_to_local(t->columns), 0, 4);
    measure(t, who, 3, ROWS);
    first = dtensor_to_local(t->columns);
    need(first[0] == (float)(t->job.rank * EDGE / 2)
         && first[EDGE * EDGE / 2 - 1] == (float)(EDGE * EDGE
            - (1 - t->job.rank) * EDGE / 2 - 1), "our rows are wrong");
    dtensor_destroy(t->rows);
    dtensor_destroy(t->columns);
}

int main(int argc, char **argv)
{
    static struct turns t;
    struct job *job = &t.job;

    if (argc < 2)
        return 64;
    good(dtensor_init(NULL, &job->ctx, &job->err));
    job->rank = dtensor_rank(job->ctx);
    writes_open(&t.w, argv[1], job->rank + 1);
    good(dtensor_mesh_find(job->ctx, "world", &t.world, &job->err));
    measure_sums(&t);
    measure_rows(&t);
    dtensor_fini(job->ctx);
    return 0;
}

/* batch_times.c - a batch beside its plans, run one by one
 *
 * `batch_times N [bytes...]` runs ten tensors of f64 on N ranks of this host,
 * by shared memory or as DTN_CLUSTER says, from P to R and from S(0) to S(1),
 * with so many bytes on each rank.  Before each run the ranks write the sources
 * and meet at a barrier.  It prints the median of the time of a tensor, of the
 * slowest rank.  `make check` does not run it: times are of a quiet machine.
 */
#include "dtensor.h"
#include "tests/support/job.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { TENSORS = 10, RUNS = 100, FIRST = 5 };

static int nsizes;
static long sizes[32];

/* The tensors of one size. */
struct tensors {
    const struct dtensor_mesh *mesh;
    struct dtensor_spec from, to;
    struct dtensor *in[TENSORS], *out[TENSORS];
    struct dtensor_plan *plan;
    struct dtensor_batch *batch;
};

static void tensors_make(struct job *job, const char *const way[2], long bytes,
                         struct tensors *t)
{
    struct dtensor_spec from[TENSORS], to[TENSORS];
    const bool whole = way[0][0] == 'P';       /* each rank has all of it     */
    const int64_t shape[] = { whole ? 1 : job->n, bytes / 8 };

    good(dtensor_spec_on(&t->from, t->mesh, way[0], DTENSOR_F64, 2, shape,
                         &job->err));
    good(dtensor_spec_on(&t->to, t->mesh, way[1], DTENSOR_F64, 2, shape,
                         &job->err));
    for (int i = 0; i < TENSORS; i++) {
        from[i] = t->from;
        to[i] = t->to;
        good(dtensor_zeros(&t->from, &t->in[i], &job->err));
        good(dtensor_zeros(&t->to, &t->out[i], &job->err));
    }
    good(dtensor_plan_create(&t->from, &t->to, NULL, &t->plan, &job->err));
    good(dtensor_batch_create(TENSORS, from, to, &t->batch, &job->err));
}

static void tensors_free(struct tensors *t)
{
    dtensor_plan_destroy(t->plan);
    dtensor_batch_destroy(t->batch);
    for (int i = 0; i < TENSORS; i++) {
        dtensor_destroy(t->in[i]);
        dtensor_destroy(t->out[i]);
    }
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* One run of all, in us, on the slowest rank. */
static double run_us(struct job *job, const struct tensors *t, bool batch)
{
    double begin, us;

    for (int i = 0; i < TENSORS; i++)
        good(dtensor_fill_value(t->in[i], i, &job->err));
    good(dtensor_barrier(t->mesh, &job->err));
    begin = now_us();
    for (int i = 0; i < TENSORS && !batch; i++)
        good(dtensor_plan_run(t->plan, t->in[i], t->out[i], &job->err));
    if (batch)
        good(dtensor_batch_run(t->batch,
                               (const struct dtensor *const *)t->in,
                               (struct dtensor *const *)t->out,
                               &job->err));
    us = now_us() - begin;
    good(dtensor_allreduce(t->mesh, &us, &us, 1, DTENSOR_F64, DTENSOR_MAX,
                           &job->err));
    return us;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void size_time(struct job *job, const struct dtensor_mesh *mesh,
                      const char *const way[2], long bytes)
{
    static double us[2][RUNS];
    struct tensors t = { .mesh = mesh };

    tensors_make(job, way, bytes, &t);
    for (int r = -FIRST; r < RUNS; r++)
        for (int batch = 0; batch < 2; batch++) {
            const double took = run_us(job, &t, batch);

            if (r >= 0)
                us[batch][r] = took / TENSORS;
        }
    for (int k = 0; k < 2; k++)
        qsort(us[k], RUNS, sizeof us[k][0], compare);
    if (job->rank == 0)
        note("%-4s to %-4s %8ld bytes: plans %9.2f us, batch %9.2f, %.2f",
             way[0], way[1], bytes, us[0][RUNS / 2], us[1][RUNS / 2],
             us[1][RUNS / 2] / us[0][RUNS / 2]);
    tensors_free(&t);
}

static void rank_main(int rank, int n, void *arg)
{
    static const char *const ways[][2] = { { "P", "R" }, { "S(0)", "S(1)" } };
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh = NULL;

    (void)arg;
    job_open(job, rank, n, NULL);
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    for (int w = 0; w < 2; w++)
        for (int i = 0; i < nsizes; i++)
            size_time(job, mesh, ways[w], sizes[i]);
    dtensor_fini(job->ctx);
}

int main(int argc, char **argv)
{
    for (int i = 2; i < argc && nsizes < 32; i++)
        sizes[nsizes++] = atol(argv[i]);
    for (long bytes = 64; argc <= 2 && bytes <= 2 << 20; bytes *= 4)
        sizes[nsizes++] = bytes;
    return ranks_run(argc > 1 ? atoi(argv[1]) : 2, 600, rank_main, NULL, NULL);
}

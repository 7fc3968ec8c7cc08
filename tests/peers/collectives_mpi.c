/* collectives_mpi.c - MPI's collectives timed as dtensor-bench times ours
 *
 * Each iteration writes the whole input, meets at a barrier, times the call,
 * and reads the whole output; the slowest rank of each iteration counts.
 * Bytes are those of dtensor-bench: of an all-gather over 2 ranks, 1024 are
 * 512 from each.  Usage: collectives_mpi TEST,TEST... ITERATIONS BYTES...;
 * prints "TEST BYTES MIN_US MEDIAN_US P99_US WRONG" for each.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

/* ----------------------------------------------------------------- calls --- */

static void call_allreduce(const float *in, float *out, int count)
{
    MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void call_allgather(const float *in, float *out, int count)
{
    MPI_Allgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD);
}

static void call_reduce_scatter(const float *in, float *out, int count)
{
    MPI_Reduce_scatter_block(in, out, count, MPI_FLOAT, MPI_SUM,
                             MPI_COMM_WORLD);
}

static void call_all_to_all(const float *in, float *out, int count)
{
    MPI_Alltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD);
}

static void call_broadcast(const float *in, float *out, int count)
{
    (void)out;
    MPI_Bcast((void *)(size_t)in, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

/* ------------------------------------------------------ expected results --- */

/* Element i of what a rank writes in an iteration. */
static float term(int from, size_t i, int iter)
{
    return (float)((i + (size_t)from + (size_t)iter) % 7);
}

static float sum(size_t i, int iter)
{
    float total = 0;

    for (int r = 0; r < ranks; r++)
        total += term(r, i, iter);
    return total;
}

static float expect_allreduce(size_t i, size_t count, int iter)
{
    (void)count;
    return sum(i, iter);
}

static float expect_allgather(size_t i, size_t count, int iter)
{
    return term((int)(i / count), i % count, iter);
}

static float expect_reduce_scatter(size_t i, size_t count, int iter)
{
    return sum((size_t)rank * count + i, iter);
}

static float expect_all_to_all(size_t i, size_t count, int iter)
{
    return term((int)(i / count), (size_t)rank * count + i % count, iter);
}

static float expect_broadcast(size_t i, size_t count, int iter)
{
    (void)count;
    return term(0, i, iter);
}

static const struct test {
    const char *name;
    bool in_blocks, out_blocks;   /* one for each rank                         */
    bool in_place;
    void (*call)(const float *in, float *out, int count);
    float (*expect)(size_t i, size_t count, int iter);
} tests[] = {
    { "allreduce", false, false, false, call_allreduce, expect_allreduce },
    { "allgather", false, true, false, call_allgather, expect_allgather },
    { "reduce_scatter", true, false, false, call_reduce_scatter,
      expect_reduce_scatter },
    { "all_to_all", true, true, false, call_all_to_all, expect_all_to_all },
    { "broadcast", false, false, true, call_broadcast, expect_broadcast },
};

/* ----------------------------------------------------------- measurement --- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* One iteration: how long the call took; adds the wrong elements to *wrong. */
static double once(const struct test *test, float *in, float *out,
                   size_t count, int iter, long *wrong)
{
    size_t sent = count * (test->in_blocks ? (size_t)ranks : 1);
    size_t received = count * (test->out_blocks ? (size_t)ranks : 1);
    const float *result = test->in_place ? in : out;
    double start, took;

    for (size_t i = 0; i < sent; i++)
        in[i] = !test->in_place || rank == 0 ? term(rank, i, iter) : -1;
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    test->call(in, out, (int)count);
    took = (MPI_Wtime() - start) * 1e6;
    for (size_t i = 0; i < received; i++)
        *wrong += result[i] != test->expect(i, count, iter);
    return took;
}

static void measure(const struct test *test, size_t bytes, int iters,
                    double *us)
{
    bool blocks = test->in_blocks || test->out_blocks;
    size_t unit = sizeof(float) * (blocks ? (size_t)ranks : 1);
    size_t count = bytes < unit ? 1 : bytes / unit;
    float *in = malloc(count * unit), *out = malloc(count * unit);
    long wrong = 0;

    for (int i = -iters / 10 - 3; i < iters; i++)
        us[i < 0 ? 0 : i] = once(test, in, out, count, i + iters, &wrong);
    MPI_Allreduce(MPI_IN_PLACE, us, iters, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    qsort(us, (size_t)iters, sizeof *us, compare);
    if (rank == 0)
        printf("%s %zu %.3f %.3f %.3f %ld\n", test->name, count * unit, us[0],
               us[iters / 2], us[iters * 99 / 100], wrong);
    free(in);
    free(out);
}

static bool wanted(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && strchr(",", at[length]))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    int iters = argc > 2 ? atoi(argv[2]) : 1000;
    double *us = malloc(sizeof *us * (size_t)iters);

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t t = 0; t < sizeof tests / sizeof *tests; t++)
        for (int i = 3; i < argc && wanted(argv[1], tests[t].name); i++)
            measure(&tests[t], strtoul(argv[i], NULL, 10), iters, us);
    MPI_Finalize();
    free(us);
    return 0;
}

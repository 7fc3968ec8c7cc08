/* collectives_mpi.c - MPI's collectives timed as dtensor-bench times ours
 *
 * Each iteration writes the whole input, meets at a barrier, times the call,
 * and reads the whole output; the slowest rank of each iteration counts.
 * Usage: collectives_mpi TEST,TEST... ITERATIONS BYTES...; prints "TEST BYTES
 * MIN_US MEDIAN_US P99_US WRONG" for each.
 */
#include "mpi_calls.h"

/* One iteration: how long the call took; adds the wrong elements to *wrong. */
static double once(const struct test *test, float *in, float *out,
                   size_t count, int iter, long *wrong)
{
    double start, took;

    fill(in, count * (test->in_blocks ? (size_t)ranks : 1), iter);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    test->mpi(in, out, (int)count);
    took = (MPI_Wtime() - start) * 1e6;
    *wrong += test->check(test->rooted ? in : out, count, iter);
    return took;
}

static void measure(const struct test *test, size_t bytes, int iters,
                    double *us)
{
    size_t unit = test_unit(test);
    size_t count = bytes < unit ? 1 : bytes / unit;
    float *in = malloc(count * unit), *out = malloc(count * unit);
    long wrong = 0;

    for (int i = -iters / 10 - 3; i < iters; i++)
        us[i < 0 ? 0 : i] = once(test, in, out, count, i + iters, &wrong);
    slowest(us, iters);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s %zu", test->name, count * unit);
        print_times(us, iters);
        printf(" %ld\n", wrong);
    }
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    int iters = argc > 2 ? atoi(argv[2]) : 1000;
    double *us = malloc(sizeof *us * (size_t)iters);

    mpi_open(&argc, &argv);
    for (int t = 0; t < NTESTS; t++)
        for (int i = 3; i < argc && wanted(argv[1], tests[t].name); i++)
            measure(&tests[t], strtoul(argv[i], NULL, 10), iters, us);
    MPI_Finalize();
    free(us);
    return 0;
}

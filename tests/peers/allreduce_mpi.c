/* allreduce_mpi.c - MPI_Allreduce timed as dtensor-bench times ours
 *
 * Each iteration writes the whole input, meets at a barrier, times the call,
 * and reads the whole output; the slowest rank of each iteration counts, and
 * of those the median.  Usage: allreduce_mpi ITERATIONS BYTES...; prints
 * "BYTES MEDIAN_US P99_US" for each size.  Built by tests/figures.sh.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void write_all(float *in, size_t count, int rank, int iter)
{
    for (size_t i = 0; i < count; i++)
        in[i] = (float)((i + (size_t)rank + (size_t)iter) % 7);
}

/* Every element, against what two or more ranks must have written. */
static size_t read_all(const float *out, size_t count, int ranks, int iter)
{
    size_t wrong = 0;

    for (size_t i = 0; i < count; i++) {
        size_t expected = 0;

        for (int r = 0; r < ranks; r++)
            expected += (i + (size_t)r + (size_t)iter) % 7;
        wrong += out[i] != (float)expected;
    }
    return wrong;
}

static void measure(size_t bytes, int iters, double *us)
{
    size_t count = bytes / sizeof(float), wrong = 0;
    float *in = malloc(bytes), *out = malloc(bytes);
    int rank, ranks;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = -iters / 10 - 3; i < iters; i++) {
        double start;

        write_all(in, count, rank, i + iters);
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (i >= 0)
            us[i] = (MPI_Wtime() - start) * 1e6;
        wrong += read_all(out, count, ranks, i + iters);
    }
    MPI_Allreduce(MPI_IN_PLACE, us, iters, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    qsort(us, (size_t)iters, sizeof *us, compare);
    if (wrong)
        printf("rank %d: %zu elements are wrong\n", rank, wrong);
    if (rank == 0)
        printf("%zu %.3f %.3f\n", bytes, us[iters / 2], us[iters * 99 / 100]);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    int iters = argc > 1 ? atoi(argv[1]) : 1000;
    double *us = malloc(sizeof *us * (size_t)iters);

    MPI_Init(&argc, &argv);
    for (int i = 2; i < argc; i++)
        measure(strtoul(argv[i], NULL, 10), iters, us);
    MPI_Finalize();
    free(us);
    return 0;
}

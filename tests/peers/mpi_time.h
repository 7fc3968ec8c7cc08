/* mpi_time.h - what the programs that time an MPI share: ranks, and times
 *
 * A call's time is that of its slowest rank, and what is told of many calls is
 * the least, the median and the 99th percentile.
 */
#ifndef MPI_TIME_H
#define MPI_TIME_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;           /* mpi_open() sets them                     */

static inline void mpi_open(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

static inline void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Be the rank of our library that MPI says this process is. */
static inline void be_rank(void)
{
    static const char *const names[][2] = {
        { "DTN_RANK", "DTN_LOCAL_RANK" }, { "DTN_WORLD_SIZE", "DTN_LOCAL_SIZE" }
    };
    int here[2];
    MPI_Comm host;
    int job = (int)getpid();
    char text[32];

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                        &host);
    MPI_Comm_rank(host, &here[0]);
    MPI_Comm_size(host, &here[1]);
    MPI_Comm_free(&host);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "%d", i == 0 ? rank : ranks);
        setenv(names[i][0], text, 1);
        snprintf(text, sizeof text, "%d", here[i]);
        setenv(names[i][1], text, 1);
    }
    MPI_Bcast(&job, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(text, sizeof text, "peers-%d", job);
    setenv("DTN_JOB", text, 1);
}

/* ---------------------------------------------------------------- times --- */

static inline int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static inline void slowest(double *us, int calls)
{
    MPI_Allreduce(MPI_IN_PLACE, us, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

/* Sorts them and prints "MIN MEDIAN P99". */
static inline void print_times(double *us, int calls)
{
    qsort(us, (size_t)calls, sizeof *us, compare);
    printf(" %.3f %.3f %.3f", us[0], us[calls / 2], us[calls * 99 / 100]);
}

#endif

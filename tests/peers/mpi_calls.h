/* mpi_calls.h - MPI's collectives beside ours: calls, inputs, results
 *
 * Inputs are small whole numbers, a function of rank, place and call, so that
 * sums are exact and nothing that an earlier call left can pass for a result.
 * Bytes are those of dtensor-bench: of an all-gather over 2 ranks, 1024 are 512
 * from each.
 */
#ifndef MPI_CALLS_H
#define MPI_CALLS_H

#include "mpi_time.h"

#include <stdbool.h>

/* ------------------------------------------------------- input, output --- */

/* Element i of what a rank writes for a call. */
static inline float term(int from, size_t i, int call)
{
    return (float)((unsigned)(i * 5 + (size_t)from + (size_t)call) & 7);
}

static inline void fill(float *in, size_t n, int call)
{
    for (size_t i = 0; i < n; i++)
        in[i] = term(rank, i, call);
}

/* How many of out[0..n) are not what `from` has from element `first` on. */
static inline long differ(const float *out, size_t n, int from, size_t first,
                          int call)
{
    int wrong = 0;

    for (size_t i = 0; i < n; i++)
        wrong += out[i] != term(from, first + i, call);
    return wrong;
}

/* The same of the sum over all ranks. */
static inline long differ_sum(const float *out, size_t n, size_t first,
                              int call)
{
    int wrong = 0;

    for (size_t i = 0; i < n; i++) {
        float sum = 0;

        for (int r = 0; r < ranks; r++)
            sum += term(r, first + i, call);
        wrong += out[i] != sum;
    }
    return wrong;
}

/* ---------------------------------------------------------------- calls --- */

static inline void mpi_allreduce(float *in, float *out, int count)
{
    MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static inline long check_allreduce(const float *out, size_t count, int call)
{
    return differ_sum(out, count, 0, call);
}

static inline void mpi_allgather(float *in, float *out, int count)
{
    MPI_Allgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD);
}

static inline long check_allgather(const float *out, size_t count, int call)
{
    long wrong = 0;

    for (int r = 0; r < ranks; r++)
        wrong += differ(out + (size_t)r * count, count, r, 0, call);
    return wrong;
}

static inline void mpi_reduce_scatter(float *in, float *out, int count)
{
    MPI_Reduce_scatter_block(in, out, count, MPI_FLOAT, MPI_SUM,
                             MPI_COMM_WORLD);
}

static inline long check_reduce_scatter(const float *out, size_t count,
                                        int call)
{
    return differ_sum(out, count, (size_t)rank * count, call);
}

static inline void mpi_all_to_all(float *in, float *out, int count)
{
    MPI_Alltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD);
}

static inline long check_all_to_all(const float *out, size_t count, int call)
{
    long wrong = 0;

    for (int r = 0; r < ranks; r++)
        wrong += differ(out + (size_t)r * count, count, r,
                        (size_t)rank * count, call);
    return wrong;
}

static inline void mpi_broadcast(float *in, float *out, int count)
{
    (void)out;
    MPI_Bcast(in, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static inline long check_broadcast(const float *out, size_t count, int call)
{
    return differ(out, count, 0, 0, call);
}

/* Each rank of the first half sends a message to one of the second half. */
static inline int message_peer(void)
{
    return (rank + ranks / 2) % ranks;
}

static inline bool message_comes(void)
{
    return rank >= ranks / 2;
}

static inline void mpi_message(float *in, float *out, int count)
{
    (void)out;
    if (message_comes())
        MPI_Recv(in, count, MPI_FLOAT, message_peer(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    else
        MPI_Send(in, count, MPI_FLOAT, message_peer(), 0, MPI_COMM_WORLD);
}

static inline long check_message(const float *out, size_t count, int call)
{
    return differ(out, count, message_comes() ? message_peer() : rank, 0, call);
}

/* Each rank sends to the next one. */
static inline int next_rank(void)
{
    return (rank + 1) % ranks;
}

static inline int last_rank(void)
{
    return (rank + ranks - 1) % ranks;
}

static inline void mpi_exchange(float *in, float *out, int count)
{
    MPI_Sendrecv(in, count, MPI_FLOAT, next_rank(), 0, out, count, MPI_FLOAT,
                 last_rank(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static inline void mpi_exchange_started(float *in, float *out, int count)
{
    MPI_Request requests[2];

    MPI_Irecv(out, count, MPI_FLOAT, last_rank(), 0, MPI_COMM_WORLD,
              &requests[0]);
    MPI_Isend(in, count, MPI_FLOAT, next_rank(), 0, MPI_COMM_WORLD,
              &requests[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
}

static inline long check_exchange(const float *out, size_t count, int call)
{
    return differ(out, count, last_rank(), 0, call);
}

/* The same in parts: with more than two ranks the parts go to all others in
 * turn.  So a grid sends the sides of many fields.
 */
enum { PARTS = 16 };

static inline int part_ahead(int part)
{
    return (rank + 1 + part % (ranks - 1)) % ranks;
}

static inline int part_behind(int part)
{
    return (rank + ranks - 1 - part % (ranks - 1)) % ranks;
}

static inline void mpi_exchange_parts(float *in, float *out, int count)
{
    MPI_Request requests[2 * PARTS];
    MPI_Status statuses[2 * PARTS];

    for (int i = 0; i < PARTS; i++)
        MPI_Irecv(out + i * count, count, MPI_FLOAT, part_behind(i), 0,
                  MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < PARTS; i++)
        MPI_Isend(in + i * count, count, MPI_FLOAT, part_ahead(i), 0,
                  MPI_COMM_WORLD, &requests[PARTS + i]);
    MPI_Waitall(2 * PARTS, requests, statuses);
}

static inline long check_exchange_parts(const float *out, size_t count,
                                        int call)
{
    long wrong = 0;

    for (size_t i = 0; i < PARTS; i++)
        wrong += differ(out + i * count, count, part_behind((int)i), i * count,
                        call);
    return wrong;
}

enum {
    ALLREDUCE, ALLGATHER, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST, MESSAGE,
    EXCHANGE, EXCHANGE_STARTED, EXCHANGE_PARTS, NTESTS
};

static const struct test {
    const char *name;
    bool in_blocks, out_blocks;   /* one for each rank or part                */
    bool rooted;                  /* in place, and nothing comes to a sender  */
    void (*mpi)(float *in, float *out, int count);
    long (*check)(const float *out, size_t count, int call);  /* how many are */
                                                               /* wrong */
} tests[NTESTS] = {
    { "allreduce", false, false, false, mpi_allreduce, check_allreduce },
    { "allgather", false, true, false, mpi_allgather, check_allgather },
    { "reduce_scatter", true, false, false, mpi_reduce_scatter,
      check_reduce_scatter },
    { "all_to_all", true, true, false, mpi_all_to_all, check_all_to_all },
    { "broadcast", false, false, true, mpi_broadcast, check_broadcast },
    { "message", false, false, true, mpi_message, check_message },
    { "exchange", false, false, false, mpi_exchange, check_exchange },
    { "exchange_started", false, false, false, mpi_exchange_started,
      check_exchange },
    { "exchange_parts", true, true, false, mpi_exchange_parts,
      check_exchange_parts },
};

/* How many blocks a buffer with blocks has: one for each rank, or each part. */
static inline size_t test_blocks(const struct test *test)
{
    return test == &tests[EXCHANGE_PARTS] ? (size_t)PARTS : (size_t)ranks;
}

/* Bytes of the unit that a size is rounded down to: an element of each block.
 */
static inline size_t test_unit(const struct test *test)
{
    return sizeof(float)
         * (test->in_blocks || test->out_blocks ? test_blocks(test) : 1);
}

/* Is it one of "allgather,broadcast"? */
static inline bool wanted(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && strchr(",", at[length]))
            return true;
    return false;
}

#endif

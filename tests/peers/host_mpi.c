/* host_mpi.c - collectives of one host by two libraries and the bare machine,
 * in one loop
 *
 * Contestants take turns, a call each, so that they see the same machine:
 *
 *     bound     the least that two ranks must do: each tells the other that its
 *               input is there, then copies the bytes it must get out of the
 *               peer's memory, and the block that it keeps.  Where the result
 *               is a sum, it adds its own block to the peer's.  In an allreduce
 *               of more than 8 KiB that is half of the input, and it then
 *               waits for the peer's sums and copies them.
 *     alloc     ours, on memory of dtensor_alloc()
 *     private   ours, on memory of malloc()
 *     mpi       the MPI's, on memory of malloc()
 *
 * Each has an input and an output of its own.  Two that shared an output would
 * find more of it in the caches: the bound of 8 MiB was 1.4 times as fast.
 *
 * A call is preceded by writing the whole output, with what is no result, and
 * the whole input, and followed by reading and comparing the whole output.
 * Else the lines of the output would be where the contestant before left them:
 * after some in the peer's cache, and 64 KiB took 7 us to come in instead of 2.
 * Ranks meet at a gate, which names the time of CLOCK_MONOTONIC at which all
 * begin; the slowest rank counts, and of the calls the median.  With begin 1000
 * and ends 1300 and 1290 ns the call took 300.  When ranks outnumber CPUs the
 * gate cannot name a time: there each rank counts from its own start.
 *
 * Before all that two ranks throw a cache line to and fro: half a turn, the
 * median of 100 times 100, is the hop that no message can beat.  When ranks
 * outnumber CPUs these two share a CPU and yield it: half a turn is a switch.
 * A rank that waits for one on its CPU is away for two of them.
 *
 * Usage: mpirun -n RANKS host_mpi TEST,TEST... CALLS BYTES...; CALLS are those
 * of small sizes, of more than 64 KiB fewer.  Prints "hop NS", or "switch NS"
 * where ranks outnumber CPUs, and then "TEST
 * BYTES CONTESTANT MIN MEDIAN P99 WRONG" in microseconds.  Built and run by
 * host.sh.
 */
#include "dtensor.h"
#include "mpi_calls.h"
#include "mpi_memory.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { RANKS_MAX = 64, HOP_TURNS = 100, HOP_TIMES = 100, START_NS = 400,
       PIECE = 512 << 10, TOGETHER = 8 << 10 };

enum who { BOUND, ALLOC, PRIVATE, MPI, NCONTESTANTS };

/* A number with two cache lines to itself. */
struct number {
    _Alignas(128) _Atomic int64_t value;
};

/* What the ranks share. */
struct shared {
    struct number start_ns, ball;
    struct number arrived[RANKS_MAX], told[RANKS_MAX];
};

struct bench {
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *world;
    struct shared *shared;
    bool crowded;                 /* more ranks than CPUs                     */
    int64_t gates, tellings;      /* passed; of this rank to its peer         */
    const struct test *test;
    size_t count;                 /* the argument of the call                 */
    size_t in_bytes, out_bytes, incoming_bytes, kept_bytes, summed_bytes;
    float *in[NCONTESTANTS], *out[NCONTESTANTS];
    const float *pull_from;       /* the peer's input, for the bound          */
    int calls;
};

static int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---------------------------------------------------------------- tests --- */

static int ours_allreduce(struct bench *b, float *in, float *out,
                          struct dtensor_error *err)
{
    return dtensor_allreduce(b->world, in, out, b->count, DTENSOR_F32,
                             DTENSOR_SUM, err);
}

static int ours_allgather(struct bench *b, float *in, float *out,
                          struct dtensor_error *err)
{
    return dtensor_allgather(b->world, in, out, b->count, DTENSOR_F32, err);
}

static int ours_reduce_scatter(struct bench *b, float *in, float *out,
                               struct dtensor_error *err)
{
    return dtensor_reduce_scatter(b->world, in, out, b->count, DTENSOR_F32,
                                  DTENSOR_SUM, err);
}

static int ours_all_to_all(struct bench *b, float *in, float *out,
                           struct dtensor_error *err)
{
    return dtensor_all_to_all(b->world, in, out, b->count, DTENSOR_F32, err);
}

static int ours_broadcast(struct bench *b, float *in, float *out,
                          struct dtensor_error *err)
{
    (void)out;
    return dtensor_broadcast(b->world, 0, in, b->count, DTENSOR_F32, err);
}

static int ours_message(struct bench *b, float *in, float *out,
                        struct dtensor_error *err)
{
    (void)out;
    return message_comes()
         ? dtensor_recv(b->world, message_peer(), in, b->count, DTENSOR_F32,
                        err)
         : dtensor_send(b->world, message_peer(), in, b->count, DTENSOR_F32,
                        err);
}

/* As at the edges of a grid: a send and a receive in a group. */
static int exchange_record(struct bench *b, float *in, float *out,
                           struct dtensor_error *err)
{
    return dtensor_group_begin(b->ctx, err)
        || dtensor_send(b->world, next_rank(), in, b->count, DTENSOR_F32, err)
        || dtensor_recv(b->world, last_rank(), out, b->count, DTENSOR_F32, err);
}

static int ours_exchange(struct bench *b, float *in, float *out,
                         struct dtensor_error *err)
{
    return exchange_record(b, in, out, err) || dtensor_group_end(b->ctx, err);
}

static int ours_exchange_started(struct bench *b, float *in, float *out,
                                 struct dtensor_error *err)
{
    struct dtensor_request *request = NULL;

    return exchange_record(b, in, out, err)
        || dtensor_group_start(b->ctx, &request, err)
        || dtensor_wait(request, err);
}

static int ours_exchange_parts(struct bench *b, float *in, float *out,
                               struct dtensor_error *err)
{
    const size_t count = b->count;
    int rc = dtensor_group_begin(b->ctx, err);

    for (size_t i = 0; rc == 0 && i < PARTS; i++)
        rc = dtensor_send(b->world, part_ahead((int)i), in + i * count,
                          count, DTENSOR_F32, err)
            || dtensor_recv(b->world, part_behind((int)i), out + i * count,
                            count, DTENSOR_F32, err);
    return rc || dtensor_group_end(b->ctx, err);
}

static const struct ours {
    int sums;                     /* a block comes in to be added             */
    int twice;                    /* comes in once in parts and once as sums; */
                                  /* or all of it comes in, of two ranks      */
    int keeps;                    /* OUT has a block of this rank's IN, too   */
    int (*call)(struct bench *b, float *in, float *out,
                struct dtensor_error *err);
} ours[NTESTS] = {
    [ALLREDUCE] = { 1, 2, 0, ours_allreduce },
    [ALLGATHER] = { 0, 1, 1, ours_allgather },
    [REDUCE_SCATTER] = { 1, 1, 0, ours_reduce_scatter },
    [ALL_TO_ALL] = { 0, 1, 1, ours_all_to_all },
    [BROADCAST] = { 0, 0, 0, ours_broadcast },
    [MESSAGE] = { 0, 0, 0, ours_message },
    [EXCHANGE] = { 0, 2, 0, ours_exchange },
    [EXCHANGE_STARTED] = { 0, 2, 0, ours_exchange_started },
    [EXCHANGE_PARTS] = { 0, 2, 0, ours_exchange_parts },
};

/* ---------------------------------------------------------- contestants --- */

static void gate_pause(const struct bench *b)
{
    if (b->crowded)
        sched_yield();
}

static void copy_bound(unsigned char *to, const void *mem, size_t bytes)
{
    const unsigned char *from = mem;

    for (size_t at = 0, n; at < bytes; at += n) {  /* whole, 8 MiB are slower */
        n = bytes - at < PIECE ? bytes - at : PIECE;
        memcpy(to + at, from + at, n);
    }
}

static void sum_bound(float *restrict to, const float *restrict mine,
                      const float *restrict theirs, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof *to; i++)
        to[i] = mine[i] + theirs[i];
}

/* Tell the peer that this rank is as far, and wait for the same word. */
static void meet_bound(struct bench *b)
{
    _Atomic int64_t *theirs = &b->shared->told[(rank + 1) % ranks].value;

    b->tellings++;
    atomic_store_explicit(&b->shared->told[rank].value, b->tellings,
                          memory_order_release);
    while (atomic_load_explicit(theirs, memory_order_acquire) < b->tellings)
        gate_pause(b);
}

/* Where the block of this rank is in the input of each rank. */
static size_t block_at(const struct bench *b)
{
    if (b->test->in_blocks)
        return (size_t)rank * (b->in_bytes / (size_t)ranks);
    return b->summed_bytes < b->in_bytes ? (size_t)rank * b->summed_bytes : 0;
}

/* Each rank adds a block of its own, as in a reduce-scatter. */
static void call_bound(struct bench *b)
{
    const size_t summed = b->summed_bytes, at = block_at(b);
    const size_t rest = summed == 0 ? at : rank == 0 ? summed : 0;
    const float *in = b->in[BOUND];
    unsigned char *out = (unsigned char *)b->out[BOUND];
    const unsigned char *from = (const unsigned char *)b->pull_from;

    meet_bound(b);
    copy_bound(out + b->incoming_bytes, in + at / sizeof *in, b->kept_bytes);
    sum_bound(b->out[BOUND], in + at / sizeof *in,
              b->pull_from + at / sizeof *in, summed);
    if (summed > 0 && b->incoming_bytes > summed)
        meet_bound(b);
    copy_bound(out + summed, from + rest, b->incoming_bytes - summed);
}

static const char *const names[NCONTESTANTS] = {
    [BOUND] = "bound", [ALLOC] = "alloc", [PRIVATE] = "private", [MPI] = "mpi",
};

/* One call; how many elements came out wrong is added by check(). */
static void make_call(struct bench *b, enum who who)
{
    struct dtensor_error err;

    if (who == BOUND)
        call_bound(b);
    else if (who == MPI)
        b->test->mpi(b->in[MPI], b->out[MPI], (int)b->count);
    else if (ours[b->test - tests].call(b, b->in[who], b->out[who], &err) != 0)
        die(b->test->name, err.text);
}

/* ------------------------------------------------------------- the gate --- */

/* Meet the others; the time at which all begin. */
static int64_t gate(struct bench *b)
{
    struct shared *shared = b->shared;
    int64_t start;

    atomic_store(&shared->arrived[rank].value, ++b->gates);
    for (int r = 0; r < ranks; r++)
        while (atomic_load(&shared->arrived[r].value) < b->gates)
            gate_pause(b);
    if (b->crowded)
        return now_ns();
    /* Of rank 0, for this gate: a later one cannot be there yet. */
    if (rank == 0)
        atomic_store(&shared->start_ns.value, now_ns() + START_NS);
    atomic_store(&shared->arrived[rank].value, ++b->gates);
    while (atomic_load(&shared->arrived[0].value) < b->gates)
        gate_pause(b);
    start = atomic_load(&shared->start_ns.value);
    while (now_ns() < start)
        continue;
    return start;
}

/* ------------------------------------------------------------ measuring --- */

/* A turn of one contestant: microseconds; adds the wrong elements to *wrong. */
static double turn(struct bench *b, enum who who, int number, long *wrong)
{
    const size_t written = b->incoming_bytes + b->kept_bytes;
    float *in = b->in[who], *out = b->out[who];
    int64_t start;
    double us;

    if (!b->test->rooted)
        memset(out, 0xff, who == BOUND ? written : b->out_bytes);
    fill(in, b->in_bytes / sizeof *in, number);
    start = gate(b);
    make_call(b, who);
    us = (double)(now_ns() - start) / 1e3;
    if (who != BOUND)
        *wrong += b->test->check(b->test->rooted ? in : out, b->count, number);
    gate(b);                      /* nobody writes what a peer still reads    */
    return us;
}

/* Times of the slowest rank of each call, contestant by contestant. */
static void measure(struct bench *b, double *us, long wrong[])
{
    for (int i = -b->calls / 10 - 3; i < b->calls; i++)
        for (int t = 0; t < NCONTESTANTS; t++) {
            int who = (t + i + b->calls) % NCONTESTANTS;
            double took = turn(b, who, i + b->calls, &wrong[who]);

            if (i >= 0)
                us[who * b->calls + i] = took;
        }
    slowest(us, NCONTESTANTS * b->calls);
    MPI_Allreduce(MPI_IN_PLACE, wrong, NCONTESTANTS, MPI_LONG, MPI_SUM,
                  MPI_COMM_WORLD);
}

static void report(const struct bench *b, size_t bytes, double *us,
                   const long wrong[])
{
    for (int c = 0; c < NCONTESTANTS; c++) {
        printf("%s %zu %s", b->test->name, bytes, names[c]);
        print_times(us + c * b->calls, b->calls);
        printf(" %ld\n", wrong[c]);
    }
    fflush(stdout);
}

static float *take_alloc(struct bench *b, size_t size)
{
    struct dtensor_error err;
    void *mem;

    if (dtensor_alloc(b->ctx, size, &mem, &err) != 0)
        die("dtensor_alloc", err.text);
    return mem;
}

static void give_back(struct bench *b)
{
    free(b->out[BOUND]);
    dtensor_free(b->ctx, b->in[ALLOC]);
    dtensor_free(b->ctx, b->out[ALLOC]);
    for (int who = PRIVATE; who < NCONTESTANTS; who++) {
        free(b->in[who]);
        free(b->out[who]);
    }
}

static void measure_size(struct bench *b, size_t bytes, int calls, double *us)
{
    const struct test *test = b->test;
    const size_t n = (size_t)ranks, unit = test_unit(test);
    const size_t blocks = test_blocks(test);
    long wrong[NCONTESTANTS] = { 0 };
    unsigned char *pull;
    size_t size;

    b->count = bytes < unit ? 1 : bytes / unit;
    size = b->count * unit;
    b->in_bytes = b->count * sizeof(float) * (test->in_blocks ? blocks : 1);
    b->out_bytes = b->count * sizeof(float) * (test->out_blocks ? blocks : 1);
    b->incoming_bytes = !test->rooted
        ? size / n * (n - 1) * (size_t)ours[test - tests].twice
        : rank == 0 ? 0 : size;
    b->kept_bytes = ours[test - tests].keeps ? size / n : 0;
    b->summed_bytes = !ours[test - tests].sums ? 0
        : ours[test - tests].twice == 2 && size <= TOGETHER ? size : size / n;
    b->calls = size <= 65536 ? calls : (int)(65536 * (size_t)calls / size) + 8;
    pull = share(2 * size * n);   /* 4 ranks load and add 1.5 times the size  */
    b->in[BOUND] = (float *)(void *)(pull + 2 * size * (size_t)rank);
    b->pull_from = (float *)(void *)(pull + 2 * size
                                     * ((size_t)(rank + 1) % n));
    b->out[BOUND] = take(2 * size);
    b->in[ALLOC] = take_alloc(b, size);
    b->out[ALLOC] = take_alloc(b, size);
    for (int who = PRIVATE; who < NCONTESTANTS; who++) {
        b->in[who] = take(size);
        b->out[who] = take(size);
    }
    measure(b, us, wrong);
    if (rank == 0)
        report(b, size, us, wrong);
    give_back(b);
    munmap(pull, 2 * size * n);
}

/* Put ranks 0 and 1 on the first CPU of `all`, and the others on the second. */
static void share_cpu(const cpu_set_t *all)
{
    cpu_set_t one;
    int cpu = 0;

    for (int left = rank < 2 || CPU_COUNT(all) < 2 ? 0 : 1; left >= 0; cpu++)
        left -= CPU_ISSET(cpu, all) ? 1 : 0;
    CPU_ZERO(&one);
    CPU_SET(cpu - 1, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* Nanoseconds of a line's way from rank 0 to rank 1. */
static double measure_hop(struct bench *b)
{
    _Atomic int64_t *ball = &b->shared->ball.value;
    double ns[HOP_TIMES];

    gate(b);
    for (int64_t t = 0, next = 0; rank < 2 && t < HOP_TIMES; t++) {
        int64_t start = now_ns();

        for (int i = 0; i < HOP_TURNS; i++, next += 2) {
            while (atomic_load_explicit(ball, memory_order_acquire)
                   != next + rank)
                gate_pause(b);
            atomic_store_explicit(ball, next + rank + 1,
                                  memory_order_release);
        }
        ns[t] = (double)(now_ns() - start) / (2 * HOP_TURNS);
    }
    gate(b);
    qsort(ns, HOP_TIMES, sizeof *ns, compare);
    return ns[HOP_TIMES / 2];
}

/* ----------------------------------------------------------------- main --- */

int main(int argc, char **argv)
{
    int calls = argc > 2 ? atoi(argv[2]) : 300;
    double *us = malloc(sizeof *us * NCONTESTANTS * (size_t)(calls + 8)), hop;
    struct bench b = { .calls = 0 };
    struct dtensor_error err;
    cpu_set_t cpus;

    mpi_open(&argc, &argv);
    if (ranks < 2 || ranks > RANKS_MAX)
        die("ranks", "expected 2 to 64");
    be_rank();
    b.crowded = ranks > sysconf(_SC_NPROCESSORS_ONLN);
    b.shared = share(sizeof *b.shared);
    if (!us || dtensor_init(NULL, &b.ctx, &err) != 0
        || dtensor_mesh_find(b.ctx, "world", &b.world, &err) != 0)
        die("init", us ? err.text : "out of memory");
    sched_getaffinity(0, sizeof cpus, &cpus);
    if (b.crowded)
        share_cpu(&cpus);
    hop = measure_hop(&b);
    sched_setaffinity(0, sizeof cpus, &cpus);
    if (rank == 0)
        printf("%s %.1f\n", b.crowded ? "switch" : "hop", hop);
    for (int t = 0; t < NTESTS; t++) {
        b.test = &tests[t];
        for (int i = 3; i < argc && wanted(argv[1], tests[t].name); i++)
            measure_size(&b, strtoul(argv[i], NULL, 10), calls, us);
    }
    dtensor_fini(b.ctx);
    MPI_Finalize();
    free(us);
    return 0;
}

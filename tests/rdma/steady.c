/* steady.c - one rank that calls allreduce again and again
 *
 *     steady SECONDS [MAX-BYTES]
 *
 * It is started by hand on each host of a job.  Rank r adds (r + 1) * ((i +
 * call) % 7) to element i, so with two ranks element 3 of call 1 is 3 * 4 = 12.
 * Every element of every call is checked.  The length changes from call to
 * call, from 8 bytes to 2 MiB or MAX-BYTES.  Element 0 says when rank 0 thinks
 * that the time is over.
 *
 * It prints "steady" after 20 calls, so that a fault can be timed to hit a run,
 * and one line in the end.  Times are in milliseconds; gap is the longest call,
 * after the time from the last good call to the failure:
 *
 *     calls=5120 gap=12 code=EPEER rank=1 after=478 text=node1: allreduce ...
 */
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { COUNT_MAX = 1 << 19, STEADY_CALLS = 20 };

struct steady {
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *mesh;
    int32_t *data;
    size_t max_count;
    long calls;
    int64_t end_ns, last_ns, gap_ns;
    bool over;
};

static int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static size_t count_of(const struct steady *steady)
{
    static const size_t counts[] = { 2, 2, 1000, 2, 65537, 2, COUNT_MAX };
    size_t which = (size_t)steady->calls % (sizeof counts / sizeof counts[0]);

    return counts[which] < steady->max_count ? counts[which]
                                             : steady->max_count;
}

static void data_fill(struct steady *steady, size_t count)
{
    int32_t factor = dtensor_rank(steady->ctx) + 1;

    for (size_t i = 1; i < count; i++)
        steady->data[i] = factor * (int32_t)((i + (size_t)steady->calls) % 7);
    steady->data[0] = factor == 1 && now_ns() >= steady->end_ns;
}

/* The first wrong byte ends the program. */
static void data_check(const struct steady *steady, size_t count)
{
    int32_t n = dtensor_world_size(steady->ctx), factor = n * (n + 1) / 2;

    for (size_t i = 1; i < count; i++) {
        int32_t want = factor * (int32_t)((i + (size_t)steady->calls) % 7);

        if (steady->data[i] != want) {
            printf("wrong: call %ld, element %zu of %zu is %d, expected %d\n",
                   steady->calls, i, count, steady->data[i], want);
            exit(2);
        }
    }
}

static int steady_open(struct steady *steady, double seconds,
                       struct dtensor_error *err)
{
    void *mem;
    int rc = dtensor_init(NULL, &steady->ctx, err);

    if (rc == 0)
        rc = dtensor_mesh_find(steady->ctx, "world", &steady->mesh, err);
    if (rc == 0)
        rc = dtensor_alloc(steady->ctx, COUNT_MAX * sizeof *steady->data, &mem,
                           err);
    if (rc != 0)
        return rc;
    steady->data = mem;
    steady->last_ns = now_ns();
    steady->end_ns = steady->last_ns + (int64_t)(seconds * 1e9);
    return 0;
}

static int steady_call(struct steady *steady, struct dtensor_error *err)
{
    size_t count = count_of(steady);
    int64_t took_ns;
    int rc;

    data_fill(steady, count);
    rc = dtensor_allreduce(steady->mesh, steady->data, steady->data, count,
                           DTENSOR_I32, DTENSOR_SUM, err);
    if (rc != 0)
        return rc;
    data_check(steady, count);
    took_ns = now_ns() - steady->last_ns;
    steady->last_ns += took_ns;
    steady->gap_ns = took_ns > steady->gap_ns ? took_ns : steady->gap_ns;
    steady->over = steady->data[0] != 0;
    if (++steady->calls == STEADY_CALLS) {
        puts("steady");
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct steady steady = { .max_count = COUNT_MAX };
    struct dtensor_error err = { .rank = -1 };
    int rc;

    if (argc < 2)
        return 64;
    if (argc > 2 && atoi(argv[2]) >= 8)
        steady.max_count = (size_t)atoi(argv[2]) / sizeof *steady.data;
    rc = steady_open(&steady, atof(argv[1]), &err);
    while (rc == 0 && !steady.over)
        rc = steady_call(&steady, &err);
    printf("calls=%ld gap=%d code=%s rank=%d after=%d text=%s\n", steady.calls,
           (int)(steady.gap_ns / 1000000), rc == 0 ? "0" : dtensor_errname(rc),
           rc == 0 ? -1 : err.rank,
           (int)((now_ns() - steady.last_ns) / 1000000), rc == 0 ? "" :
           err.text);
    fflush(stdout);
    if (steady.ctx)
        dtensor_free(steady.ctx, steady.data);
    dtensor_fini(steady.ctx);
    return rc != 0;
}

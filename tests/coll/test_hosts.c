/* test_hosts.c - collectives and redistributes of ranks on several hosts
 *
 * Ranks of a host share memory, hosts speak TCP.  Inputs are whole numbers, so
 * every result is exact whatever the order of a sum.
 *
 * Without this test, hierarchical algorithms would run only in the checker,
 * and an error in the exchange between hosts would show first on a real
 * cluster.
 */
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/hosts.h"
#include "tests/support/world.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#define COUNT_MAX 20000
#define RANKS_MAX 8

struct shape {
    const char *name;
    struct hosts hosts;
    const char *swap;             /* the plan of an all-to-all by rails       */
    const char *tuning;           /* more of the cluster file                 */
};

static bool layered;              /* some host has several ranks              */
static const char *swap;          /* as in struct shape                       */

static void host_open(struct world *world, int rank, const struct shape *shape)
{
    int local = hosts_be(&shape->hosts, rank);

    world_open(world);
    layered = world->n > shape->hosts.n;
    swap = shape->swap;
    need(dtensor_local_size(world->ctx) == local, "%d local ranks",
         dtensor_local_size(world->ctx));
}

/* ------------------------------------------------------------- collectives */

static float input(int rank, size_t i)
{
    return (float)(((size_t)rank * 31 + i * 7 + i / 11) % 50);
}

static float total(int n, size_t i)
{
    float sum = 0;

    for (int r = 0; r < n; r++)
        sum += input(r, i);
    return sum;
}

static void fill(const struct world *world, float *buf, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf[i] = input(world->rank, i);
}

static void done_well(const struct world *world, int rc, const char *what)
{
    need(rc == 0, "%s: %s", what, world->err.text);
}

static void equal(const struct world *world, size_t i, float got, float want)
{
    need(got == want, "%s: element %zu is %g, not %g",
         dtensor_last_plan(world->ctx), i, got, want);
}

/* With [tuning] rails the plan of the last call is by rails. */
static void by_rails(const struct world *world, const char *plan)
{
    need(!swap || strstr(dtensor_last_plan(world->ctx), plan), "by %s, not %s",
         dtensor_last_plan(world->ctx), plan);
}

static void try_reductions(struct world *world, float *in, float *out,
                           size_t count, int root)
{
    size_t mine = (size_t)world->rank * count;
    int n = world->n, rc;

    fill(world, in, count);
    rc = dtensor_allreduce(world->mesh, in, out, count, DTENSOR_F32,
                           DTENSOR_SUM, &world->err);
    done_well(world, rc, "allreduce");
    for (size_t i = 0; i < count; i++)
        equal(world, i, out[i], total(n, i));
    by_rails(world, count < 1000 ? "rail-doubling" : "rail-");
    need(swap || count <= 1024 || layered
         == (strstr(dtensor_last_plan(world->ctx), "hierarchical")
             || strstr(dtensor_last_plan(world->ctx), "rail-")),
         "by %s", dtensor_last_plan(world->ctx));

    rc = dtensor_reduce(world->mesh, root, in, out, count, DTENSOR_F32,
                        DTENSOR_MAX, &world->err);
    done_well(world, rc, "reduce");
    for (size_t i = 0; world->rank == root && i < count; i++)
        for (int r = 0; r < n; r++)
            need(out[i] >= input(r, i), "max: element %zu", i);

    rc = dtensor_allreduce(world->mesh, in, in, count, DTENSOR_F32,
                           DTENSOR_SUM, &world->err);
    done_well(world, rc, "allreduce in place");
    for (size_t i = 0; i < count; i++)
        equal(world, i, in[i], total(n, i));

    fill(world, in, (size_t)n * count);
    rc = dtensor_reduce_scatter(world->mesh, in, out, count, DTENSOR_F32,
                                DTENSOR_SUM, &world->err);
    done_well(world, rc, "reduce_scatter");
    by_rails(world, "rail-halving");
    for (size_t i = 0; i < count; i++)
        equal(world, i, out[i], total(n, mine + i));
    rc = dtensor_reduce_scatter(world->mesh, in, in + mine, count, DTENSOR_F32,
                                DTENSOR_SUM, &world->err);
    done_well(world, rc, "reduce_scatter in place");
    for (size_t i = 0; i < count; i++)
        equal(world, i, in[mine + i], total(n, mine + i));
}

static void try_moves(struct world *world, float *in, float *out, size_t count,
                      int root)
{
    size_t mine = (size_t)world->rank * count;
    int n = world->n, rc;

    fill(world, in, (size_t)n * count);
    rc = dtensor_allgather(world->mesh, in, out, count, DTENSOR_F32,
                           &world->err);
    done_well(world, rc, "allgather");
    by_rails(world, "rail-bruck");
    for (size_t i = 0; i < (size_t)n * count; i++)
        equal(world, i, out[i], input((int)(i / count), i % count));
    memset(out, 0, (size_t)n * count * sizeof *out);
    memcpy(out + mine, in, count * sizeof *out);
    rc = dtensor_allgather(world->mesh, out + mine, out, count, DTENSOR_F32,
                           &world->err);
    done_well(world, rc, "allgather in place");
    for (size_t i = 0; i < (size_t)n * count; i++)
        equal(world, i, out[i], input((int)(i / count), i % count));

    rc = dtensor_all_to_all(world->mesh, in, out, count, DTENSOR_F32,
                            &world->err);
    done_well(world, rc, "all_to_all");
    by_rails(world, swap);
    for (size_t i = 0; i < (size_t)n * count; i++)
        equal(world, i, out[i], input((int)(i / count), mine + i % count));

    rc = dtensor_broadcast(world->mesh, root, in, count, DTENSOR_F32,
                           &world->err);
    done_well(world, rc, "broadcast");
    for (size_t i = 0; i < count; i++)
        equal(world, i, in[i], input(root, i));
}

static void collectives(int rank, int n, void *arg)
{
    static const size_t counts[] = { 1, 13, 1000, 1030, COUNT_MAX };
    static float foreign[2][RANKS_MAX * 1000];
    size_t bytes = (size_t)n * COUNT_MAX * sizeof(float);
    struct world world;
    void *in, *out;

    host_open(&world, rank, arg);
    need(dtensor_alloc(world.ctx, bytes, &in, &world.err) == 0
         && dtensor_alloc(world.ctx, bytes, &out, &world.err) == 0, "%s",
         world.err.text);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int root = 0; root < n; root++) {
            try_reductions(&world, in, out, counts[c], root);
            try_moves(&world, in, out, counts[c], root);
            need(dtensor_barrier(world.mesh, &world.err) == 0, "barrier: %s",
                 world.err.text);
        }
    try_reductions(&world, foreign[0], foreign[1], 1000, n - 1);
    try_moves(&world, foreign[0], foreign[1], 1000, n - 1);
    dtensor_free(world.ctx, in);
    dtensor_free(world.ctx, out);
    dtensor_fini(world.ctx);
}

/* ------------------------------------------------------------ redistribute */

static void turn(struct world *world, const char *from, const char *to)
{
    const int64_t rows = 67, cols = 301, shape[] = { rows, cols };
    int64_t local[2], offset[2];
    struct dtensor *a, *b;
    struct dtensor_spec spec;
    const float *got;
    int rc = dtensor_spec_init(&spec, world->ctx, "world", from, DTENSOR_F32,
                               2, shape, &world->err);
    float full[67 * 301];

    for (int i = 0; i < rows * cols; i++)
        full[i] = (float)i;
    if (rc == 0)
        rc = dtensor_distribute(&spec, full, -1, &a, &world->err);
    if (rc == 0)
        rc = dtensor_redistribute(a, to, &b, &world->err);
    need(rc == 0, "%s -> %s: %s", from, to, world->err.text);
    dtensor_spec_local(dtensor_spec_of(b), world->rank, local, offset);
    got = dtensor_to_local(b);
    for (int64_t i = 0; i < local[0] * local[1]; i++)
        equal(world, (size_t)i, got[i],
              (float)((offset[0] + i / local[1]) * cols + offset[1]
                      + i % local[1]));
    dtensor_destroy(a);
    dtensor_destroy(b);
}

static void redistributes(int rank, int n, void *arg)
{
    static const char *const ways[][2] = {
        { "S(0)", "S(1)" }, { "S(1)", "S(0)" }, { "S(0)", "R" },
        { "S(1)", "R" }, { "P(max)", "R" }, { "P(max)", "S(0)" },
        { "P(max)", "S(1)" }, { "R", "S(1)" }
    };
    struct world world;

    host_open(&world, rank, arg);
    for (int round = 0; round < 3; round++)
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
            turn(&world, ways[w][0], ways[w][1]);
    dtensor_fini(world.ctx);
}

/* ------------------------------------------------------------------ deaths */

/* A rank dies between two calls: everyone hears of it, on all hosts. */
static void murdered(int rank, int n, void *arg)
{
    static float in[1000], out[1000];
    struct world world;
    int victim = n - 1, rc = 0;

    host_open(&world, rank, arg);
    for (int i = 0; rc == 0; i++) {
        if (i == 20 && rank == victim)
            raise(SIGKILL);
        rc = dtensor_allreduce(world.mesh, in, out, 1000, DTENSOR_F32,
                               DTENSOR_SUM, &world.err);
        need(rc == 0 || i >= 20, "call %d: %s", i, world.err.text);
    }
    need(rc == DTENSOR_EPEER && world.err.rank == victim, "%s",
         world.err.text);
    dtensor_fini(world.ctx);
}

static int shape_ranks(const struct shape *shape)
{
    int n = 0;

    for (int h = 0; h < shape->hosts.n; h++)
        n += shape->hosts.ranks[h];
    return n;
}

#define RAILS "[tuning]\nallreduce = 0-inf:rails\nallgather = 0-inf:rails\n" \
    "reduce_scatter = 0-inf:rails\nall_to_all = 0-inf:rails\n"

/* The rails of equal hosts, where a message costs more than a hop with
 * all-to-alls by bruck; and of unequal ones.
 */
static void rails(const char *path)
{
    static const struct shape shapes[] = {
        { "2x2", { 2, { 2, 2 } }, "rail-put", RAILS },
        { "3x2", { 3, { 2, 2, 2 } }, "rail-put", RAILS },
        { "4x2", { 4, { 2, 2, 2, 2 } }, "rail-bruck", RAILS
          "inter_latency_ns = 10000\ninter_message_ns = 500000\n" },
        { "4+2", { 2, { 4, 2 } }, "rail-put", RAILS },
        { "3+1+2", { 3, { 3, 1, 2 } }, "rail-put", RAILS }
    };

    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct shape shape = shapes[s];

        hosts_write(&shape.hosts, path, "", shape.tuning);
        ok(ranks_run(shape_ranks(&shape), 60, collectives, &shape, NULL) == 0,
           "hosts x ranks %s by rails, an all-to-all by %s: exact, in place "
           "and not", shape.name, shape.swap);
        unlink(path);
    }
}

int main(void)
{
    static const struct shape shapes[] = {
        { .name = "2x2", .hosts = { 2, { 2, 2 } } },
        { .name = "2x3", .hosts = { 2, { 3, 3 } } },
        { .name = "3x2", .hosts = { 3, { 2, 2, 2 } } },
        { .name = "4x1", .hosts = { 4, { 1, 1, 1, 1 } } },
        { .name = "1+3", .hosts = { 2, { 1, 3 } } },
        { .name = "3+1+2", .hosts = { 3, { 3, 1, 2 } } }
    };
    char path[64];

    snprintf(path, sizeof path, "hosts-%d.ini", (int)getpid());
    setenv("DTN_CLUSTER", path, 1);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct shape shape = shapes[s];
        int n = shape_ranks(&shape), status[RANKS_MAX];

        hosts_write(&shape.hosts, path, "", "");
        ok(ranks_run(n, 60, collectives, &shape, NULL) == 0,
           "hosts x ranks %s: every collective is exact, every root, in place "
           "and not, registered and foreign memory", shape.name);
        ok(ranks_run(n, 60, redistributes, &shape, NULL) == 0,
           "hosts x ranks %s: shards, replicas and terms turn into each other",
           shape.name);
        ok(ranks_run(n, 60, murdered, &shape, status) == 1
           && WIFSIGNALED(status[n - 1]), "hosts x ranks %s: a rank killed is "
           "EPEER for it on all others", shape.name);
        unlink(path);
    }
    rails(path);
    return done();
}

/* test_zerocopy.c - transports without mapping copy nothing that can be
 * written in place
 *
 * Real ranks, memory from dtensor_alloc(); the growth of
 * dtensor_copied_bytes() during a call is compared with what it must be.  Rows
 * too short for a put and memory that must be staged show that copies are
 * counted at all.
 *
 * Without this test, a change could add a copy of every message, and only
 * benchmarks would show it.
 */
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/rdma.h"
#include "tests/support/world.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

/* ------------------------------------------------------------ redistribute */

/* Element i of each must be i; returns the bytes copied on the way. */
static uint64_t turn(struct world *world, const char *from, const char *to,
                     int64_t rows, int64_t cols)
{
    const int64_t shape[] = { rows, cols };
    int64_t local[2], offset[2];
    struct dtensor_spec spec;
    struct dtensor *a, *b;
    const double *got;
    uint64_t before;
    int rc = dtensor_spec_init(&spec, world->ctx, "world", from, DTENSOR_F64,
                               2, shape, &world->err);

    if (rc == 0)
        rc = dtensor_arange(&spec, &a, &world->err);
    need(rc == 0, "arange: %s", world->err.text);
    before = dtensor_copied_bytes(world->ctx);
    rc = dtensor_redistribute(a, to, &b, &world->err);
    need(rc == 0, "redistribute: %s", world->err.text);
    before = dtensor_copied_bytes(world->ctx) - before;
    dtensor_spec_local(dtensor_spec_of(b), world->rank, local, offset);
    got = dtensor_to_local(b);
    for (int64_t i = 0; i < local[0]; i++)
        for (int64_t j = 0; j < local[1]; j++)
            need(got[i * local[1] + j]
                 == (double)((offset[0] + i) * cols + offset[1] + j),
                 "%s -> %s: element %" PRId64 ",%" PRId64 " is %g", from, to,
                 offset[0] + i, offset[1] + j, got[i * local[1] + j]);
    dtensor_destroy(a);
    dtensor_destroy(b);
    return before;
}

/* 101 x 3001 f64 over n ranks: runs of 6000 bytes and more, uneven. */
static void long_rows(int rank, int n, void *arg)
{
    struct world world;
    uint64_t copied;

    world_open(&world);
    for (int round = 0; round < 3; round++) {
        copied = turn(&world, "S(0)", "S(1)", 101, 3001);
        need(copied == 0, "S(0) -> S(1) copied %" PRIu64 " bytes", copied);
        copied = turn(&world, "S(1)", "S(0)", 101, 3001);
        need(copied == 0, "S(1) -> S(0) copied %" PRIu64 " bytes", copied);
        copied = turn(&world, "S(0)", "R", 101, 3001);
        need(copied == 0, "S(0) -> R copied %" PRIu64 " bytes", copied);
        copied = turn(&world, "S(1)", "R", 101, 3001);
        need(copied == 0, "S(1) -> R copied %" PRIu64 " bytes", copied);
    }
    dtensor_fini(world.ctx);
}

/* 12 x 12 f64 over n ranks, n a divisor of 12: every element that leaves is
 * packed where runs are short in IN, each that comes is unpacked where they
 * are so in OUT.
 */
static void short_rows(int rank, int n, void *arg)
{
    struct world world;
    uint64_t moved = (uint64_t)(12 / n * (12 - 12 / n)) * sizeof(double);
    uint64_t copied;

    world_open(&world);
    copied = turn(&world, "S(0)", "S(1)", 12, 12);
    need(copied == moved, "S(0) -> S(1) copied %" PRIu64 ", not %" PRIu64,
         copied, moved);
    copied = turn(&world, "S(1)", "S(0)", 12, 12);
    need(copied == moved, "S(1) -> S(0) copied %" PRIu64 ", not %" PRIu64,
         copied, moved);
    dtensor_fini(world.ctx);
}

/* ------------------------------------------------------------- collectives */

#define COUNT 40000

/* One of each on [n * COUNT] elements; the bytes that were copied. */
static uint64_t collect(struct world *world, double *in, double *out)
{
    const enum dtensor_dtype f64 = DTENSOR_F64;
    struct dtensor_error *err = &world->err;
    uint64_t before = dtensor_copied_bytes(world->ctx);
    int rc;

    rc = dtensor_broadcast(world->mesh, world->n - 1, in, COUNT, f64, err);
    if (rc == 0)
        rc = dtensor_allgather(world->mesh, in, out, COUNT, f64, err);
    if (rc == 0)
        rc = dtensor_all_to_all(world->mesh, in, out, COUNT, f64, err);
    if (rc == 0)
        rc = dtensor_reduce_scatter(world->mesh, in, out, COUNT, f64,
                                    DTENSOR_SUM, err);
    for (size_t i = 0; i < COUNT; i++)
        in[i] = world->rank + 1;
    if (rc == 0)
        rc = dtensor_allreduce(world->mesh, in, out, COUNT, f64, DTENSOR_SUM,
                               err);
    need(rc == 0, "%s", err->text);
    for (size_t i = 0; i < COUNT; i++)
        need(out[i] == world->n * (world->n + 1) / 2, "sum %zu is %g", i,
             out[i]);
    return dtensor_copied_bytes(world->ctx) - before;
}

/* What no rank adds to needs no other place than its last. */
static void collectives(int rank, int n, void *arg)
{
    size_t bytes = (size_t)n * COUNT * sizeof(double);
    struct world world;
    uint64_t copied;
    void *in, *out;

    world_open(&world);
    need(dtensor_alloc(world.ctx, bytes, &in, &world.err) == 0
         && dtensor_alloc(world.ctx, bytes, &out, &world.err) == 0, "%s",
         world.err.text);
    copied = collect(&world, in, out);
    need(copied == 0, "copied %" PRIu64 " bytes", copied);
    dtensor_free(world.ctx, in);
    dtensor_free(world.ctx, out);
    dtensor_fini(world.ctx);
}

/* Registered, given back, and registered again in one piece. */
static void registered(int rank, int n, void *arg)
{
    const char *wire = arg;
    size_t bytes = (size_t)n * COUNT * sizeof(double);
    char *mem = malloc(2 * bytes);
    double *in = (double *)mem, *out = (double *)(mem + bytes);
    struct world world;
    uint64_t first, without, again;

    world_open(&world);
    need(mem && dtensor_register(world.ctx, in, bytes, &world.err) == 0
         && dtensor_register(world.ctx, out, bytes, &world.err) == 0, "%s",
         world.err.text);
    first = collect(&world, in, out);
    dtensor_unregister(world.ctx, out);
    dtensor_unregister(world.ctx, in);
    without = collect(&world, in, out);
    need(dtensor_register(world.ctx, mem, 2 * bytes, &world.err) == 0, "%s",
         world.err.text);
    again = collect(&world, in, out);
    need(first == 0 && again == 0, "copied %" PRIu64 " and %" PRIu64
         " bytes of registered memory", first, again);
    need(strcmp(wire, "rc") == 0 ? without > 0 : true, "copied %" PRIu64
         " bytes of other memory", without);
    need(strcmp(wire, "tcp") == 0 ? without == 0 : true, "copied %" PRIu64
         " bytes of other memory", without);
    dtensor_fini(world.ctx);
    free(mem);
}

/* More buffers than a device is made to know at a time, 1024, each used once;
 * after each a small message, into boxes that were named when ranks met.
 */
static void many(int rank, int n, void *arg)
{
    enum { BUFFERS = 1100, COUNT_EACH = 2048 };
    double small[100];
    struct world world;
    void *mem;

    world_open(&world);
    for (int i = 0; i < BUFFERS; i++) {
        need(dtensor_alloc(world.ctx, COUNT_EACH * sizeof(double), &mem,
                           &world.err) == 0, "%s", world.err.text);
        for (int e = 0; e < COUNT_EACH; e++)
            ((double *)mem)[e] = rank == i % n ? i + e : -1;
        for (int e = 0; e < 100; e++)
            small[e] = rank + e;
        need(dtensor_broadcast(world.mesh, i % n, mem, COUNT_EACH, DTENSOR_F64,
                               &world.err) == 0
             && dtensor_allreduce(world.mesh, small, small, 100, DTENSOR_F64,
                                  DTENSOR_SUM, &world.err) == 0,
             "buffer %d: %s", i, world.err.text);
        for (int e = 0; e < COUNT_EACH; e++)
            need(((double *)mem)[e] == i + e, "buffer %d: element %d", i, e);
        for (int e = 0; e < 100; e++)
            need(small[e] == n * e + n * (n - 1) / 2, "sum %d: element %d", i,
                 e);
    }
    dtensor_fini(world.ctx);
}

/* Over shm: what the first calls of a context copy. */
static void unchanged(int rank, int n, void *arg)
{
    size_t bytes = (size_t)n * COUNT * sizeof(double);
    char *mem = malloc(2 * bytes);
    struct world world;
    uint64_t copied[2];

    for (int registers = 0; registers < 2; registers++) {
        world_open(&world);
        need(mem && (!registers || dtensor_register(world.ctx, mem, 2 * bytes,
                                                    &world.err) == 0),
             "%s", world.err.text);
        copied[registers] = collect(&world, (double *)mem,
                                    (double *)(mem + bytes));
        dtensor_fini(world.ctx);
    }
    need(copied[0] == copied[1], "copied %" PRIu64 " bytes, of registered "
         "memory %" PRIu64, copied[0], copied[1]);
    free(mem);
}

/* register_limit is 8194 bytes. */
static void refused(int rank, int n, void *arg)
{
    static char mem[1 << 16];
    struct world world;
    struct dtensor_error *err = &world.err;
    void *own;

    world_open(&world);
    need(dtensor_alloc(world.ctx, 4096, &own, err) == 0, "%s", err->text);
    need(dtensor_register(world.ctx, own, 4096, err) == DTENSOR_EINVAL
         && strstr(err->text, "dtensor_alloc"), "%s", err->text);
    need(dtensor_register(world.ctx, mem, 0, err) == DTENSOR_EINVAL
         && dtensor_register(world.ctx, NULL, 64, err) == DTENSOR_EINVAL
         && strstr(err->text, "at least one byte"), "%s", err->text);
    need(dtensor_register(world.ctx, mem + 4096, 4096, err) == 0, "%s",
         err->text);
    for (int at = 0; at <= 8192; at += 2048)
        need(dtensor_register(world.ctx, mem + at, 2049, err)
             == (at == 0 || at == 8192 ? 0 : DTENSOR_EINVAL), "at %d: %s", at,
             err->text);
    dtensor_unregister(world.ctx, mem + 1);
    need(dtensor_register(world.ctx, mem + 20000, 1, err) == DTENSOR_ENOMEM
         && strstr(err->text, "register_limit"), "%s", err->text);
    dtensor_unregister(world.ctx, mem);
    need(dtensor_register(world.ctx, mem + 20000, 1, err) == 0, "%s",
         err->text);
    dtensor_fini(world.ctx);
}

/* Shared memory maps only memory of the arena.  What is folded is staged, the
 * part that peers read or write; what is copied, if long, is fetched from
 * process to process where that is allowed: it is right in either case.
 */
static void staged(int rank, int n, void *arg)
{
    static double in[10000], out[10000];
    struct world world;
    uint64_t copied;

    world_open(&world);
    for (size_t count = 1000; count <= 10000; count *= 10) {
        for (size_t i = 0; i < count; i++)
            in[i] = (double)(rank + 1) * (double)i;
        copied = dtensor_copied_bytes(world.ctx);
        need(dtensor_allreduce(world.mesh, in, out, count, DTENSOR_F64,
                               DTENSOR_SUM, &world.err) == 0, "%s",
             world.err.text);
        copied = dtensor_copied_bytes(world.ctx) - copied;
        need(copied > 0 && copied <= 16 * count, "copied %" PRIu64 " bytes "
             "for %zu", copied, count);
        for (size_t i = 0; i < count; i++)
            need(out[i] == (double)i * n * (n + 1) / 2, "element %zu is %g", i,
                 out[i]);
    }
    for (size_t i = 0; i < 10000; i++)
        in[i] = (double)(rank + 1) * (double)i;
    copied = dtensor_copied_bytes(world.ctx);
    need(dtensor_broadcast(world.mesh, 1, in, 10000, DTENSOR_F64, &world.err)
         == 0, "%s", world.err.text);
    copied = dtensor_copied_bytes(world.ctx) - copied;
    need(copied <= sizeof in, "copied %" PRIu64 " bytes", copied);
    for (size_t i = 0; i < 10000; i++)
        need(in[i] == 2.0 * (double)i, "element %zu is %g", i, in[i]);
    dtensor_fini(world.ctx);
}

/* Short messages are eager: nobody reads or writes a buffer of the user. */
static void short_messages(int rank, int n, void *arg)
{
    static double in[100], out[100];
    struct world world;

    world_open(&world);
    for (int i = 0; i < 100; i++)
        in[i] = 1000 * rank + i;
    need(dtensor_group_begin(world.ctx, &world.err) == 0
         && dtensor_send(world.mesh, (rank + 1) % n, in, 100, DTENSOR_F64,
                         &world.err) == 0
         && dtensor_recv(world.mesh, (rank + n - 1) % n, out, 100, DTENSOR_F64,
                         &world.err) == 0
         && dtensor_group_end(world.ctx, &world.err) == 0, "%s",
         world.err.text);
    for (int i = 0; i < 100; i++)
        need(out[i] == 1000 * ((rank + n - 1) % n) + i, "element %d is %g", i,
             out[i]);
    need(dtensor_copied_bytes(world.ctx) == 0, "copied %" PRIu64 " bytes",
         dtensor_copied_bytes(world.ctx));
    dtensor_fini(world.ctx);
}

/* --------------------------------------------------------------------- all */

static void run_with(const char *wire, int n, const char *lines,
                     rank_main_f *fn, const char *claim)
{
    const char *absent = strcmp(wire, "rc") == 0 ? rdma_absent() : NULL;
    const char *path;

    if (absent) {
        skip(claim, absent);
        return;
    }
    path = ranks_file(wire, n, lines);
    setenv("DTN_CLUSTER", path, 1);
    ok(ranks_run(n, 60, fn, (void *)(uintptr_t)wire, NULL) == 0,
       "%s, %d ranks: %s", wire, n,
       claim);
    unlink(path);
}

static void run(const char *wire, int n, rank_main_f *fn, const char *claim)
{
    run_with(wire, n, NULL, fn, claim);
}

int main(int argc, char **argv)
{
    static const char *const wires[] = { "tcp", "rc" };

    for (size_t w = 0; w < sizeof wires / sizeof *wires; w++) {
        if (argc > 1 && strcmp(argv[1], wires[w]) != 0)
            continue;
        for (int n = 2; n <= 4; n++)
            run(wires[w], n, long_rows, "shards turned into other shards and "
                "replicas: no byte is copied");
        run(wires[w], 3, short_rows, "rows too short to put: what moves is "
            "copied once at one end, and counted");
        run(wires[w], 3, collectives, "broadcast, allgather, all_to_all, "
            "reduce_scatter, allreduce: no byte is copied");
        run(wires[w], 3, registered, "nor of registered memory of the user's");
        run(wires[w], 3, many, "1100 buffers, one after the other, and what is "
            "small between them");
    }
    if (argc > 1)
        return done();
    run("shm", 3, unchanged, "to register memory changes nothing");
    run_with("shm", 1, "register_limit = 8194\n", refused,
             "what cannot be registered is refused in words");
    run("shm", 3, staged,
        "memory that peers do not reach is fetched, or staged "
        "and counted");
    run("shm", 3, short_messages, "short messages are not staged");
    return done();
}

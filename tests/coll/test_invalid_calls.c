/* test_invalid_calls.c - invalid arguments of collectives: EINVAL in words,
 * nothing touched
 *
 * A table of invalid arguments, each tried with every collective that it is
 * wrong for, in every way a call can be made: run, started, made persistent,
 * recorded in a group.  Both ranks are refused alike, so the context stays
 * usable; all collectives then show it.
 *
 * Without this test, a wrong count or root could be accepted and write beyond
 * a buffer, or make the context unusable.
 */
#include "base/compiler.h"
#include "coll/request.h"
#include "mesh/mesh.h"
#include "dtensor.h"
#include "tests/support/world.h"

#include <stdbool.h>
#include <string.h>

enum { N = 2, COUNT = 8, BYTES = N * COUNT * 8 };

struct attempt {
    struct dtensor_call call;
    void *in, *out;
    bool has_in, has_out;         /* this rank's buffers mean something       */
};

static unsigned char in[2 * BYTES], out[2 * BYTES];
static enum dtensor_redop loose;  /* a function that is not associative       */

static bool reduces(const struct attempt *a)
{
    return a->call.coll == DTENSOR_ALLREDUCE || a->call.coll == DTENSOR_REDUCE
        || a->call.coll == DTENSOR_REDUCE_SCATTER;
}

static bool blocked(const struct attempt *a)
{
    return a->call.coll >= DTENSOR_ALLGATHER && a->call.coll < DTENSOR_BARRIER;
}

static bool sized(const struct attempt *a)
{
    return a->call.coll != DTENSOR_BARRIER;
}

static bool scratches(const struct attempt *a)
{
    return a->has_in && a->has_out;
}

static bool reads(const struct attempt *a)
{
    return a->has_in;
}

static bool writes(const struct attempt *a)
{
    return a->has_out;
}

static bool whole(const struct attempt *a)
{
    return sized(a) && !blocked(a);
}

static bool pairs(const struct attempt *a)
{
    return a->call.coll == DTENSOR_ALL_TO_ALL;
}

static bool listed(const struct attempt *a)
{
    return blocked(a) && !pairs(a);
}

static bool any(const struct attempt *a)
{
    return a->call.coll < DTENSOR_NCOLLECTIVES;
}

/* -------------------------------------------------------------- spoiled --- */

static const size_t even[N] = { COUNT, COUNT }, huge[N] = { SIZE_MAX / 2, 2 };
static const size_t odd[N] = { 1, 1 };

static void no_in(struct attempt *a) { a->in = NULL; }
static void no_out(struct attempt *a) { a->out = NULL; }
static void apart_by_4(struct attempt *a) { a->out = in + 4; }
static void in_behind(struct attempt *a) { a->in = out + 4; }
static void many(struct attempt *a) { a->call.count = SIZE_MAX / 2; }
static void half(struct attempt *a) { a->call.count = PTRDIFF_MAX / 4 - 1; }
static void lists(struct attempt *a) { a->call.counts = even; }
static void list_huge(struct attempt *a) { a->call.counts = huge; }
static void received(struct attempt *a) { a->call.recv_counts = even; }
static void type_99(struct attempt *a)
{
    a->call.dtype = (enum dtensor_dtype)99;
}

static void type_less(struct attempt *a)
{
    a->call.dtype = (enum dtensor_dtype)-1;
}

static void op_99(struct attempt *a) { a->call.op = (enum dtensor_redop)99; }
static void op_less(struct attempt *a) { a->call.op = (enum dtensor_redop)-1; }
static void op_bits(struct attempt *a) { a->call.op = DTENSOR_BXOR; }
static void op_gone(struct attempt *a) { a->call.op = DTENSOR_REDOP_LAST; }
static void op_loose(struct attempt *a) { a->call.op = loose; }
static void root_less(struct attempt *a) { a->call.root = -1; }
static void root_more(struct attempt *a) { a->call.root = N; }

static void op_order(struct attempt *a)
{
    a->call.dtype = DTENSOR_C64;
    a->call.op = DTENSOR_MAX;
}

static void own_differs(struct attempt *a)
{
    a->call.counts = even;
    a->call.recv_counts = odd;
}

static void list_pairs_huge(struct attempt *a)
{
    a->call.counts = a->call.recv_counts = huge;
}

static const struct spoiled {
    const char *name;
    void (*spoil)(struct attempt *a);
    bool (*wrong)(const struct attempt *a);
    const char *words;
} spoiled[] = {
    { "in is NULL", no_in, reads, "`in` is NULL" },
    { "out is NULL", no_out, writes, "`out` is NULL" },
    { "out begins in in", apart_by_4, scratches, "overlap" },
    { "in begins in out", in_behind, scratches, "overlap" },
    { "no memory holds count", many, sized, "overflow memory" },
    { "no memory holds count for each", half, blocked, "overflow memory" },
    { "no memory holds counts", list_huge, listed, "overflow memory" },
    { "no memory holds counts", list_pairs_huge, pairs, "overflow memory" },
    { "counts for one buffer", lists, whole, "counts must be NULL" },
    { "counts without recv_counts", lists, pairs, "go together" },
    { "recv_counts without counts", received, any, "go together" },
    { "unlike counts of the own block", own_differs, pairs, "sends itself" },
    { "dtype 99", type_99, any, "there is no dtype 99" },
    { "dtype -1", type_less, any, "there is no dtype -1" },
    { "root -1", root_less, any, "root -1 is not a position" },
    { "root n", root_more, any, "expected 0 to 1" },
    { "reduction 99", op_99, reduces, "there is no reduction 99" },
    { "reduction -1", op_less, reduces, "there is no reduction -1" },
    { "bits of floats", op_bits, reduces, "no reduction bxor for f32" },
    { "an order of complex numbers", op_order, reduces,
      "no reduction max for c64" },
    { "a reduction that is gone", op_gone, reduces, "destroyed" },
    { "no order under repro", op_loose, reduces, "not declared associative" },
};

/* -------------------------------------------------------------- refused --- */

static struct attempt attempt(enum dtensor_collective coll, int rank)
{
    struct attempt a = { .call = { .coll = coll, .count = COUNT,
                                   .dtype = DTENSOR_F32, .root = 0,
                                   .op = DTENSOR_SUM },
                         .in = in, .out = out };

    a.has_in = sized(&a) && (rank == 0 || (coll != DTENSOR_BROADCAST
                                           && coll != DTENSOR_SCATTER));
    a.has_out = sized(&a) && (rank == 0 || (coll != DTENSOR_REDUCE
                                            && coll != DTENSOR_GATHER));
    return a;
}

enum how { RUN, START, PERSIST, RECORD, NHOWS };

static int make(struct world *world, const struct dtensor_mesh *mesh,
                const struct attempt *a, enum how how)
{
    struct dtensor_request *request = NULL;
    struct dtensor_persistent *persistent = NULL;
    int rc = DTENSOR_EINVAL;

    world->err = (struct dtensor_error){ 0 };
    switch (how) {
    case RUN:
        return dtensor_call_run(mesh, &a->call, a->in, a->out, &world->err);
    case START:
        rc = dtensor_call_start(mesh, &a->call, a->in, a->out, &request,
                                &world->err);
        break;
    case PERSIST:
        rc = dtensor_persistent_create(mesh, &a->call, a->in, a->out,
                                       &persistent, &world->err);
        break;
    case RECORD:
        need(dtensor_group_begin(world->ctx, NULL) == 0, "begin");
        rc = dtensor_call_run(mesh, &a->call, a->in, a->out, &world->err);
        need(dtensor_group_end(world->ctx, NULL) == 0, "end");
        break;
    case NHOWS:
        break;
    }
    need(!request && !persistent, "something was made");
    return rc;
}

static void refused(struct world *world, const struct dtensor_mesh *mesh,
                    const struct attempt *a, const char *name,
                    const char *words)
{
    static const char *const hows[NHOWS] = { "run", "started", "persistent",
                                             "in a group" };

    for (int how = 0; how < NHOWS; how++) {
        int rc;

        memset(in, 0x5a, sizeof in);
        memset(out, 0xa5, sizeof out);
        rc = make(world, mesh, a, (enum how)how);
        need(rc == DTENSOR_EINVAL && strstr(world->err.text, words),
             "collective %d, %s, %s: %s: %s", (int)a->call.coll, name,
             hows[how], dtensor_errname(rc), rc ? world->err.text : "done");
        for (size_t i = 0; i < sizeof out; i++)
            need(in[i] == 0x5a && out[i] == 0xa5, "collective %d, %s, %s: byte "
                 "%zu was touched", (int)a->call.coll, name, hows[how], i);
    }
}

static void nothing(void *dst, const void *left, const void *right,
                    size_t count, enum dtensor_dtype dtype, void *arg)
{
    (void)dst, (void)left, (void)right, (void)count, (void)dtype, (void)arg;
}

static void one_main(int rank, int n, void *arg)
{
    const struct spoiled *one = arg;
    struct world world;
    int tried = 0;

    (void)n;
    world_open(&world);
    need(dtensor_redop_create(world.ctx, nothing, NULL, 0, &loose, &world.err)
         == 0, "%s", world.err.text);
    dtensor_set_repro(world.ctx, 1);
    for (int coll = 0; coll < DTENSOR_NCOLLECTIVES; coll++) {
        struct attempt a = attempt((enum dtensor_collective)coll, rank);
        struct attempt roots = attempt((enum dtensor_collective)coll, 0);

        if (one->wrong(&a)) {
            one->spoil(&a);
            refused(&world, world.mesh, &a, one->name, one->words);
            tried++;
        } else if (one->wrong(&roots)) {      /* calls that are refused count */
            root_less(&a);
            refused(&world, world.mesh, &a, one->name, "not a position");
        }
    }
    need(tried > 0, "there was nothing to refuse");
    dtensor_set_repro(world.ctx, 0);
    memset(in, 0, sizeof in);
    for (int coll = 0; coll < DTENSOR_NCOLLECTIVES; coll++) {
        struct attempt a = attempt((enum dtensor_collective)coll, rank);

        need(dtensor_call_run(world.mesh, &a.call, in, out, &world.err) == 0,
             "afterwards: %s", world.err.text);
    }
    dtensor_fini(world.ctx);
}

/* Rank 0 is not in the mesh; no such collectives; sends and receives. */
static void others_main(int rank, int n, void *arg)
{
    const struct dtensor_mesh *one;
    struct world world;

    (void)n, (void)arg;
    world_open(&world);
    need(dtensor_mesh_create(world.ctx, 1, (int[]){ 1 }, NULL, (int[]){ 1 },
                             &one, &world.err) == 0, "%s", world.err.text);
    for (int coll = -1; coll <= DTENSOR_NCOLLECTIVES + 1; coll++) {
        struct attempt a = attempt((enum dtensor_collective)coll, rank);

        if (coll < 0 || coll >= DTENSOR_NCOLLECTIVES)
            refused(&world, world.mesh, &a, "number", "there is no collective");
        else if (rank == 0)
            refused(&world, one, &a, "outside", "rank 0 is not in this mesh");
    }
    need(dtensor_barrier(world.mesh, &world.err) == 0, "%s", world.err.text);
    dtensor_fini(world.ctx);
}

static const struct message {
    const char *name;
    int peer;                     /* -2: itself                               */
    bool null;
    size_t count;
    int dtype;
    const char *words;
} messages[] = {
    { "peer -1", -1, false, 4, DTENSOR_F32, "not a position" },
    { "peer n", N, false, 4, DTENSOR_F32, "expected 0 to 1" },
    { "itself", -2, false, 4, DTENSOR_F32, "itself" },
    { "NULL", -3, true, 4, DTENSOR_F32, "the buffer is NULL" },
    { "overflow", -3, false, SIZE_MAX / 2, DTENSOR_F32, "overflow memory" },
    { "dtype", -3, false, 4, 99, "there is no dtype 99" },
};

static void messages_main(int rank, int n, void *arg)
{
    struct world world;

    (void)n, (void)arg;
    world_open(&world);
    for (size_t i = 0; i < DTN_COUNT(messages); i++)
        for (int recv = 0; recv < 2; recv++) {
            const struct message *m = &messages[i];
            int peer = m->peer >= -1 ? m->peer : m->peer == -2 ? rank : !rank;
            int rc = (recv ? dtensor_recv(world.mesh, peer, m->null ? NULL
                      : out, m->count, (enum dtensor_dtype)m->dtype, &world.err)
                      : dtensor_send(world.mesh, peer, m->null ? NULL : out,
                      m->count, (enum dtensor_dtype)m->dtype, &world.err));

            need(rc == DTENSOR_EINVAL && strstr(world.err.text, m->words)
                 && strncmp(world.err.text, recv ? "recv" : "send", 4) == 0,
                 "%s: %s", m->name, rc ? world.err.text : "done");
        }
    need(dtensor_barrier(world.mesh, &world.err) == 0, "%s", world.err.text);
    dtensor_fini(world.ctx);
}

int main(void)
{
    for (size_t i = 0; i < DTN_COUNT(spoiled); i++)
        ok(ranks_run(N, 30, one_main, (void *)(uintptr_t)&spoiled[i], NULL)
           == 0, "%s: refused in words", spoiled[i].name);
    ok(ranks_run(N, 30, others_main, NULL, NULL) == 0,
       "a rank outside the mesh, no such collective: refused in words");
    ok(ranks_run(N, 30, messages_main, NULL, NULL) == 0,
       "sends and receives: refused in words");
    return done();
}

/* test_two_wires.c - memory that one of two transports cannot reach
 *
 * Ranks over tcp, which reaches any memory, have a second transport that
 * reaches only the arena, as rc does.  So memory of malloc() is staged.  What
 * was registered with tcp by then is unregistered, and no call leaves more
 * registered than it found.
 *
 * Without this test, each call between hosts of [transport] inter_node = rc and
 * intra_node = tcp could leave memory of the program registered, which a peer
 * can then write after it was freed.
 */
#include "job/ctx.h"
#include "transport/arena.h"
#include "transport/tcp/tcp.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/support/tap.h"
#include "tests/support/world.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 100000, CALLS = 10 };

static struct dtn_arena *arena;

static int second_reg(struct dtn_transport *tp, void *mem, size_t size,
                      struct dtn_remote *remote)
{
    (void)tp;
    if (!dtn_arena_contains(arena, mem, size))
        return DTENSOR_EINVAL;
    *remote = (struct dtn_remote){ 1, 1 };
    return 0;
}

static void second_unreg(struct dtn_transport *tp, struct dtn_remote remote)
{
    (void)tp;
    (void)remote;
}

static int second_progress(struct dtn_transport *tp)
{
    (void)tp;
    return 0;
}

static const struct dtn_transport_ops second_ops = {
    .name = "second", .reg = second_reg, .unreg = second_unreg,
    .progress = second_progress
};

static int registered(const struct dtn_transport *tp)
{
    const struct dtn_tcp *tcp = dtn_tcp_of(tp);
    int n = 0;

    for (int i = 0; i < tcp->nregions; i++)
        n += tcp->regions[i].uses % 2 == 1;
    return n;
}

static void sums(int rank, int n, void *arg)
{
    struct dtn_transport second = { .ops = &second_ops };
    double *in = calloc(COUNT, sizeof *in), *out = calloc(COUNT, sizeof *out);
    struct world world;
    int before;

    (void)arg;
    need(in && out, "no memory");
    world_open(&world);
    arena = &world.ctx->arena;
    need(dtensor_barrier(world.mesh, &world.err) == 0, "%s", world.err.text);
    world.ctx->transports[world.ctx->ntransports++] = &second;
    before = registered(world.ctx->transports[0]);
    in[COUNT - 1] = rank + 1;
    for (int call = 0; call < CALLS; call++) {
        need(dtensor_allreduce(world.mesh, in, out, COUNT, DTENSOR_F64,
                               DTENSOR_SUM, &world.err) == 0, "%s",
             world.err.text);
        need(out[COUNT - 1] == n * (n + 1) / 2, "the sum is %g",
             out[COUNT - 1]);
        memset(out, 0, COUNT * sizeof *out);
    }
    need(registered(world.ctx->transports[0]) == before,
         "%d ranges are registered after %d calls, %d before",
         registered(world.ctx->transports[0]), CALLS, before);
    world.ctx->ntransports--;
    dtensor_fini(world.ctx);
    free(in);
    free(out);
}

int main(void)
{
    const char *path;

    unsetenv("DTN_TEST_WIRE");
    path = ranks_file("tcp", 2, NULL);
    setenv("DTN_CLUSTER", path, 1);
    ok(ranks_run(2, 30, sums, NULL, NULL) == 0,
       "what one transport refuses does not stay registered with the other");
    unlink(path);
    return done();
}

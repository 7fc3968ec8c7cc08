/* test_device_names.c - names of device memory are for cards alone
 *
 * Two ranks give each other names of host memory that are marked as a device's.
 * Without this test, a transport could map such a name, or let a CPU store
 * there, which no test with host memory would notice.
 */
#include "base/compiler.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/support/ranks.h"
#include "tests/support/wire.h"

static void names_rank(int rank, int n, void *arg)
{
    static const char bytes[4096];
    struct dtn_remote mine[WIRE_MAX] = { { 0, 0 } }, theirs[WIRE_MAX], name;
    const int peer = 1 - rank;
    struct wire w;
    void *mem;

    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    mem = wire_alloc(&w, sizeof bytes);
    mine[peer] = wire_reg(&w, mem, sizeof bytes);
    wire_swap(&w, mine, theirs);
    name = theirs[peer];
    name.key |= DTN_KEY_DEVICE;
    need(!w.tp->ops->map || !w.tp->ops->map(w.tp, peer, name), "it is mapped");
    for (size_t size = 8; size <= sizeof bytes; size *= 512) {
        size_t done = 0;
        int rc = w.tp->ops->put(w.tp, peer, name, bytes, size, &done);

        need(rc == DTENSOR_EINVAL && done == 0, "put of %zu bytes gives %s",
             size, dtensor_errname(rc));
    }
    wire_put(&w, peer, theirs[peer], bytes, sizeof bytes);
    wire_flush(&w, peer);
    wire_barrier(&w);
    w.tp->ops->unreg(w.tp, mine[peer]);
    wire_close(&w);
}

int main(void)
{
    static struct wire_kind kinds[] = { { "shm", &dtn_shm_ops, NULL },
                                        { "tcp", &dtn_tcp_ops, NULL } };

    for (size_t k = 0; k < DTN_COUNT(kinds); k++) {
        wire_prepare();
        ok(ranks_run(2, 60, names_rank, &kinds[k], NULL) == 0,
           "%s: memory of a device is neither mapped nor put to by a CPU",
           kinds[k].label);
        wire_cleanup();
    }
    return done();
}

/* shared.c - ranks of a simulated host write into each other's memory
 *
 * Stores are no calls of the kernel, so nothing else would run between two of
 * them.  Here a rank loses the CPU before each put, signal and consumption, and
 * after the last, for a time of the seed, and a fault may happen there.  In
 * which orders the stores themselves may be seen is for
 * tests/transport/test_shm_interleavings.
 */
#include "transport/shm/shm.h"
#include "transport/transport.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"

#include <stddef.h>

#define STORE_NS 1000             /* until another rank has seen it, at most  */

#define WRAPPED(type, name, ...)                                              \
    type __real_##name(__VA_ARGS__);                                          \
    type __wrap_##name(__VA_ARGS__)

static void others_run(void)
{
    if (!sim_self)
        return;
    sim_call();
    sim_block(sim_now() + (int64_t)sim_random(STORE_NS), false);
}

WRAPPED(int, dtn_shm_put, struct dtn_transport *tp, int peer,
        struct dtn_remote dst, const void *src, size_t size, size_t *done);
int __wrap_dtn_shm_put(struct dtn_transport *tp, int peer,
                       struct dtn_remote dst, const void *src, size_t size,
                       size_t *done)
{
    others_run();
    return __real_dtn_shm_put(tp, peer, dst, src, size, done);
}

WRAPPED(int, dtn_shm_signal, struct dtn_transport *tp, int peer,
        const struct dtn_signal *signal, const struct dtn_eager *data);
int __wrap_dtn_shm_signal(struct dtn_transport *tp, int peer,
                          const struct dtn_signal *signal,
                          const struct dtn_eager *data)
{
    others_run();
    return __real_dtn_shm_signal(tp, peer, signal, data);
}

WRAPPED(void, dtn_shm_consume, struct dtn_transport *tp, int peer);
void __wrap_dtn_shm_consume(struct dtn_transport *tp, int peer)
{
    others_run();
    __real_dtn_shm_consume(tp, peer);
    others_run();
}

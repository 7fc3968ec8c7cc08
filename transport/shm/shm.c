/* shm.c - ranks of one host, by loads and stores
 *
 * A rank maps the arenas of its peers (shm/peer.c).  So a put is a memcpy(),
 * and memory of a peer has an address here (shm/memory.c).  Signals are cache
 * lines in the arena of the receiver (shm/signal.c).
 */
#include "transport/shm/shm.h"
#include "base/error.h"
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "transport/process.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------ open and close --- */

static struct dtn_shm_control *shm_control_create(struct dtn_arena *arena,
                                                  int n)
{
    size_t size = sizeof(struct dtn_shm_control) +
                  (size_t)n * sizeof(struct dtn_shm_lane);
    struct dtn_shm_control *control = dtn_arena_alloc(arena, size);

    if (!control)
        return NULL;
    memset(control, 0, size);
    control->magic = DTN_SHM_MAGIC;
    control->nlanes = (uint64_t)n;
    return control;
}

static int shm_create(const struct dtn_open_args *args,
                      struct dtn_transport **tpp, struct dtensor_error *err)
{
    const int n = args->nlocal;
    struct dtn_shm *shm;

    if (args->arena->backing.fd < 0)
        return dtn_fail(err, DTENSOR_ENODEV, "shm: the arena of rank %d cannot "
                        "be mapped by others (set [transport] intra_node = "
                        "tcp)", args->rank);
    shm = calloc(1, sizeof *shm + (size_t)n * sizeof shm->peers[0]);
    if (!shm)
        return dtn_fail_nomem(err, "shm", sizeof *shm);
    shm->control = shm_control_create(args->arena, n);
    if (!shm->control) {
        free(shm);
        return dtn_arena_fail(args->arena, "shm",
                              (size_t)n * sizeof(struct dtn_shm_lane), err);
    }
    shm->base.ops = &dtn_shm_ops;
    shm->arena = args->arena;
    shm->log = args->log;
    shm->rank = args->rank;
    shm->first = args->first;
    shm->nlocal = n;
    shm->self = dtn_process_self();
    for (int i = 0; i < n; i++) {
        shm->peers[i].pidfd = -1;
        shm->peers[i].in = &shm->control->lane[i];
    }
    *tpp = &shm->base;
    return 0;
}

static void shm_close(struct dtn_transport *tp)
{
    struct dtn_shm *shm = dtn_shm_of(tp);

    /* The process may live on, so its peers learn from this that it left. */
    atomic_fetch_or_explicit(&shm->control->aborted, DTN_SHM_LEFT,
                             memory_order_release);
    for (int i = 0; i < shm->nlocal; i++) {
        dtn_shm_leave_device(shm, &shm->peers[i]);
        dtn_shm_disconnect(&shm->peers[i]);
    }
    dtn_shm_detach(shm);
    dtn_arena_free(shm->arena, shm->control);
    free(shm);
}

static void shm_address(const struct dtn_transport *tp, struct dtn_blob *blob)
{
    const struct dtn_shm *shm = dtn_shm_of(tp);
    const struct dtn_shm_address address = {
        .magic = DTN_SHM_MAGIC,
        .size = shm->arena->backing.size,
        .control = (uint64_t)((unsigned char *)shm->control -
                              shm->arena->backing.base),
        .nlanes = shm->control->nlanes,
        .control_addr = (uintptr_t)shm->control,
        .process = shm->self,
    };

    memcpy(blob->bytes, &address, sizeof address);
    blob->size = sizeof address;
    blob->fd = shm->arena->backing.fd;
}

/* ------------------------------------------------------ death and abort --- */

static int shm_health(struct dtn_transport *tp, int peer, int *culprit,
                      int *code)
{
    struct dtn_shm_peer *p = dtn_shm_peer(tp, peer);
    bool dead = dtn_shm_is_dead(p);
    uint64_t word;

    if (!p->control)
        return 0;                 /* not connected: nothing is known          */
    /* After the look at the process, so that a last abort is seen. */
    word = atomic_load_explicit(&p->control->aborted, memory_order_acquire);
    if (word & DTN_SHM_ABORTED) {
        *culprit = (int)(uint32_t)word;
        *code = -(int)(word >> 32 & 0xff);
        return DTENSOR_EABORT;
    }
    return dead || word & DTN_SHM_LEFT ? DTENSOR_EPEER : 0;
}

static void shm_abort(struct dtn_transport *tp, int culprit, int code)
{
    uint64_t word = DTN_SHM_ABORTED | (uint64_t)(-code & 0xff) << 32 |
                    (uint32_t)culprit;

    atomic_store_explicit(&dtn_shm_of(tp)->control->aborted, word,
                          memory_order_release);
}

static void shm_why(const struct dtn_transport *tp, int peer, char *buf,
                    size_t size)
{
    const struct dtn_shm_peer *p = dtn_shm_peer(tp, peer);
    bool left;

    *buf = '\0';
    if (!p->control)
        return;
    left = atomic_load_explicit(&p->control->aborted, memory_order_relaxed)
         & DTN_SHM_LEFT;
    snprintf(buf, size, "pid %lld%s", (long long)p->process.pid,
             left ? " has closed its context" : "");
}

const struct dtn_transport_ops dtn_shm_ops = {
    .name = "shm",
    .open = shm_create,
    .close = shm_close,
    .address = shm_address,
    .connect = dtn_shm_connect,
    .reg = dtn_shm_reg,
    .unreg = dtn_shm_unreg,
    .attach = dtn_shm_attach,
    .map = dtn_shm_map,
    .fetch = dtn_shm_fetch,
    .put = dtn_shm_put,
    .flush = dtn_shm_flush,
    .signal = dtn_shm_signal,
    .peek = dtn_shm_peek,
    .consume = dtn_shm_consume,
    .progress = dtn_shm_progress,
    .health = shm_health,
    .abort = shm_abort,
    .why = shm_why,
};

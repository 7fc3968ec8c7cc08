/* modelled_shm.c - transport/shm/shm.c and shm/signal.c, with hooks
 *
 * The two files are compiled here as they are, except that atomic operations
 * and memcpy() go to interleave.h.  The queue is of MODELLED_DEPTH signals, 2
 * unless it is defined, so that few signals go around it.
 */
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "transport/transport.h"
#undef DTN_QUEUE_DEPTH
#ifndef MODELLED_DEPTH
#define MODELLED_DEPTH 2
#endif
#define DTN_QUEUE_DEPTH MODELLED_DEPTH
#include "base/compiler.h"
#include "base/error.h"
#include "transport/process.h"
#include "transport/shm/shm.h"
#include "tests/transport/interleave.h"
#include "tests/transport/modelled_shm.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What close() gives back is used again by the next execution. */
static void kept(const void *mem)
{
    (void)mem;
}

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_fetch_or_explicit
#undef memcpy
#define atomic_load_explicit(at, order) interleave_load(__func__, at, order)
#define atomic_store_explicit(at, value, order) \
    interleave_store(__func__, at, value, order)
#define atomic_fetch_or_explicit(at, bits, order) \
    interleave_or(__func__, at, bits, order)
#define memcpy(to, from, bytes) interleave_copy(__func__, to, from, bytes)
#define dtn_shm_is_dead(peer) ((peer)->watched)
#define dtn_shm_leave_device(shm, peer) kept(peer)
#define dtn_shm_disconnect(peer) kept(peer)
#define dtn_shm_detach(shm) kept(shm)
#define dtn_arena_free(arena, mem) kept(mem)
#define free(mem) kept(mem)
#include "transport/shm/shm.c"
#include "transport/shm/signal.c"
#undef memcpy
#undef free

const int modelled_depth = DTN_QUEUE_DEPTH;
const struct dtn_transport_ops *const modelled_ops = &dtn_shm_ops;

/* The arena of a rank, as far as it is used. */
static struct memory {
    _Alignas(DTN_CACHE_LINE) unsigned char control[sizeof(
        struct dtn_shm_control)];
    struct dtn_shm_lane lane[MODELLED_RANKS];     /* of the control block     */
    unsigned char box[MODELLED_RANKS][DTN_QUEUE_DEPTH][MODELLED_BOX];
    unsigned char window[MODELLED_BOX];
} memories[MODELLED_RANKS];

static struct dtn_shm *ranks[MODELLED_RANKS];

static struct dtn_shm_control *control_of(int rank)
{
    return (struct dtn_shm_control *)(void *)memories[rank].control;
}

struct dtn_transport *modelled_rank(int rank)
{
    return &ranks[rank]->base;
}

unsigned char *modelled_box(int rank, int peer, int signal)
{
    return memories[rank].box[peer][signal % DTN_QUEUE_DEPTH];
}

unsigned char *modelled_window(int rank)
{
    return memories[rank].window;
}

struct dtn_remote modelled_name(int rank, const unsigned char *mem)
{
    const unsigned char *base = (const unsigned char *)&memories[rank];

    return (struct dtn_remote){ (uint64_t)(mem - base), DTN_SHM_KEY };
}

/* As shm_map_peer() does. */
static void connect_ranks(struct dtn_shm *shm, int peer)
{
    struct dtn_shm_peer *p = &shm->peers[peer];

    p->in = &memories[shm->rank].lane[peer];
    p->base = (unsigned char *)&memories[peer];
    p->size = sizeof memories[peer];
    p->control = control_of(peer);
    p->lane = &memories[peer].lane[shm->rank];
    p->out = p->lane->line;
    p->acked = &p->lane->consumed;
    p->pidfd = -1;
}

static void rank_begin(int rank)
{
    const size_t bytes = sizeof *ranks[rank]
                       + MODELLED_RANKS * sizeof ranks[rank]->peers[0];
    struct dtn_shm *shm = ranks[rank] ? ranks[rank] : malloc(bytes);

    if (!shm)
        abort();
    ranks[rank] = memset(shm, 0, bytes);
    shm->base.ops = &dtn_shm_ops;
    shm->rank = rank;
    shm->nlocal = MODELLED_RANKS;
    shm->control = control_of(rank);
    memset(&memories[rank], 0, sizeof memories[rank]);
    for (int peer = 0; peer < MODELLED_RANKS; peer++)
        connect_ranks(shm, peer);
    interleave_share(&memories[rank], sizeof memories[rank]);
}

void modelled_begin(void)
{
    for (int rank = 0; rank < MODELLED_RANKS; rank++)
        rank_begin(rank);
}

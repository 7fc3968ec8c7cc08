/* memory.c - the memory of ranks of the same host
 *
 * Memory of the arena is mapped by the peers.  Private memory, outside the
 * arena, is named to them from 32 KiB on, if all of them can read it by
 * cross-memory attach.  Smaller private memory is staged by the caller, which
 * is faster.
 *
 * The kernel finds private memory by the process id, which another process can
 * get after the peer's death, but not before a pidfd has reported the death.
 * So bytes that were read belong to the peer if health() finds it alive
 * afterwards, and bytes are written only after the peer was found alive.
 */
#include "base/copy.h"
#include "transport/arena.h"
#include "transport/exporter.h"
#include "transport/process.h"
#include "transport/shm/shm.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SHM_KEY_PRIVATE 2        /* private memory; addr is its address      */
#define SHM_FETCH_BYTES ((size_t)32 << 10)   /* smallest private memory      */
#define SHM_PAST_BYTES ((size_t)8 << 20)     /* least put by non-temporal    */
                                             /* stores                       */

/* Can all connected peers read the private memory of this rank? */
static bool shm_is_fetched(struct dtn_shm *shm)
{
    const struct dtn_shm_peer *p = shm->peers;

    if (shm->nfetching < shm->nconnected) {
        shm->nfetching = 0;
        for (int i = 0; i < shm->nlocal; i++)
            shm->nfetching += p[i].base &&
                              atomic_load_explicit(&p[i].in->fetches,
                                                   memory_order_acquire);
    }
    return shm->nconnected > 0 && shm->nfetching == shm->nconnected;
}

int dtn_shm_reg(struct dtn_transport *tp, void *mem, size_t size,
                struct dtn_remote *remote)
{
    const struct dtn_arena *arena = dtn_shm_of(tp)->arena;
    const struct dtn_backing *backing = &arena->backing;
    const struct dtn_exporter *exporter = dtn_shm_of(tp)->exporter;
    bool overlaps = (unsigned char *)mem + size > backing->base &&
                    (unsigned char *)mem < backing->base + backing->size;

    if (dtn_arena_contains(arena, mem, size)) {
        remote->addr = (uint64_t)((unsigned char *)mem - backing->base);
        remote->key = DTN_SHM_KEY;
    } else if (exporter && exporter->holds(exporter, mem, size)) {
        return dtn_shm_reg_device(dtn_shm_of(tp), mem, size, remote);
    } else if (size >= SHM_FETCH_BYTES && !overlaps
               && shm_is_fetched(dtn_shm_of(tp))) {
        remote->addr = (uintptr_t)mem;
        remote->key = SHM_KEY_PRIVATE;
    } else {
        return DTENSOR_EINVAL;
    }
    return 0;
}

void dtn_shm_unreg(struct dtn_transport *tp, struct dtn_remote remote)
{
}

void *dtn_shm_map(struct dtn_transport *tp, int peer,
                  struct dtn_remote remote)
{
    struct dtn_shm_peer *p = dtn_shm_peer(tp, peer);

    if (remote.key == (DTN_KEY_DEVICE | DTN_SHM_KEY))
        return dtn_shm_map_device(dtn_shm_of(tp), p, remote);
    if (remote.key != DTN_SHM_KEY || remote.addr > p->size)
        return NULL;
    return p->base + remote.addr;
}

/* A non-temporal store does not read the line that it overwrites, nor take it
 * from the CPU that read it last; but it leaves nothing in a shared cache.  us
 * of a copy between near and distant CPUs, memcpy() and non-temporal stores:
 *
 *      1 MiB     24   46     38   37
 *      8 MiB    327  628    323  309
 *     16 MiB   1760 1590   1100  990
 */
static void shm_copy(void *to, const void *from, size_t size)
{
    if (size < SHM_PAST_BYTES) {
        dtn_copy(to, from, size);
        return;
    }
    dtn_copy_nt(to, from, size);
    dtn_copy_fence();
}

int dtn_shm_put(struct dtn_transport *tp, int peer, struct dtn_remote dst,
                const void *src, size_t size, size_t *done)
{
    const struct dtn_shm_peer *p = dtn_shm_peer(tp, peer);
    int rc = 0;

    if (dst.key == SHM_KEY_PRIVATE)
        rc = dtn_shm_is_dead(p) ? DTENSOR_EPEER
           : dtn_process_write(&p->process, dst.addr, src, size);
    else if (dst.key == DTN_SHM_KEY && dst.addr <= p->size &&
             size <= p->size - dst.addr)
        shm_copy(p->base + dst.addr, src, size);
    else
        rc = DTENSOR_EINVAL;
    if (rc == 0)
        *done = size;
    return rc;
}

int dtn_shm_fetch(struct dtn_transport *tp, int peer, void *dst,
                  struct dtn_remote src, size_t size)
{
    if (src.key != SHM_KEY_PRIVATE)
        return DTENSOR_EINVAL;
    return dtn_process_read(&dtn_shm_peer(tp, peer)->process, dst, src.addr,
                            size);
}

int dtn_shm_flush(struct dtn_transport *tp, int peer)
{
    return 0;
}

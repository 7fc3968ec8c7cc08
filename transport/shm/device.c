/* device.c - the device memory of ranks of the same host
 *
 * A rank publishes the pieces of its device arena that peers may map.  The
 * table of pieces is in host memory, and grows when a buffer in a new piece is
 * named.  A peer gets the file descriptor of a piece from this rank's process
 * (pidfd_getfd(), which is allowed where cross-memory attach is), and maps the
 * piece at its own addresses.  Only the peer's device accesses these addresses,
 * not its CPU.
 *
 * The first piece is published at once.  Each peer tries to map it and writes
 * the result into our lane.  Device memory is named to peers only if all
 * connected peers could map it.
 */
#include "base/error.h"
#include "base/log.h"
#include "base/pidfd.h"
#include "transport/arena.h"
#include "transport/exporter.h"
#include "transport/process.h"
#include "transport/shm/shm.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { MAPS_YES = 1, MAPS_NO = 2 };           /* what a peer writes           */

static bool device_why(struct dtn_shm *shm, const char *fmt, ...)
    DTN_PRINTF(2, 3);
static bool device_why(struct dtn_shm *shm, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(shm->why, sizeof shm->why, fmt, ap);
    va_end(ap);
    shm->base.unreached = shm->why;
    return false;
}

/* --------------------------------------------------------- our pieces --- */

/* Show piece `i` of our arena to the peers. */
static bool piece_show(struct dtn_shm *shm, int i)
{
    struct dtn_shm_pieces *pieces = shm->pieces;
    const unsigned n = atomic_load_explicit(&pieces->n, memory_order_relaxed);
    int fd;

    if (shm->shown[i])
        return true;
    if (shm->exporter->share(shm->exporter, i, &fd) != 0)
        return device_why(shm, "cannot share memory of the GPU: %s",
                          shm->exporter->why(shm->exporter));
    pieces->piece[n].number = (uint32_t)i;
    pieces->piece[n].fd = fd;
    atomic_store_explicit(&pieces->n, n + 1, memory_order_release);
    shm->shown[i] = true;
    return true;
}

void dtn_shm_detach(struct dtn_shm *shm)
{
    dtn_arena_free(shm->arena, shm->pieces);
    shm->pieces = NULL;
}

void dtn_shm_attach(struct dtn_transport *tp,
                    const struct dtn_exporter *exporter)
{
    struct dtn_shm *shm = dtn_shm_of(tp);
    const struct dtn_backing *device = &exporter->arena->backing;

    shm->exporter = exporter;
    if (exporter->piece_bytes == 0
        || device->size > DTN_SHM_PIECES * exporter->piece_bytes) {
        device_why(shm, "%s cannot share its memory", exporter->name);
        return;
    }
    shm->pieces = dtn_arena_alloc(shm->arena, sizeof *shm->pieces);
    if (!shm->pieces) {
        device_why(shm, "there is no room in the arena");
        return;
    }
    memset(shm->pieces, 0, sizeof *shm->pieces);
    shm->pieces->bytes = device->size;
    shm->pieces->piece_bytes = exporter->piece_bytes;
    if (!piece_show(shm, 0)) {
        dtn_shm_detach(shm);
        return;
    }
    atomic_store_explicit(&shm->control->pieces, (uint64_t)(
        (unsigned char *)shm->pieces - shm->arena->backing.base),
        memory_order_release);
    for (int i = 0; i < shm->nlocal; i++)
        if (shm->peers[i].base)
            dtn_shm_try_device(shm, &shm->peers[i]);
}

/* ------------------------------------------------------- their pieces --- */

/* The table of a peer; NULL: it has none yet, or one that cannot be. */
static const struct dtn_shm_pieces *peer_pieces(const struct dtn_shm_peer *p)
{
    const uint64_t at = atomic_load_explicit(&p->control->pieces,
                                             memory_order_acquire);

    return at != 0 && at <= p->size - sizeof(struct dtn_shm_pieces)
        && at % DTN_CACHE_LINE == 0
         ? (const struct dtn_shm_pieces *)(p->base + at) : NULL;
}

static bool piece_join(struct dtn_shm *shm, struct dtn_shm_peer *p,
                       const struct dtn_shm_pieces *pieces, unsigned k)
{
    const size_t bytes = p->piece_bytes;
    const size_t i = pieces->piece[k].number, at = i * bytes;
    int fd = -1, rc;

    if (p->pidfd < 0)
        return device_why(shm, "sees the process of a peer in another PID "
                          "namespace (start the ranks in one, such as by "
                          "--pid=host)");
    if (i >= DTN_SHM_PIECES || at > p->device_bytes - bytes)
        return device_why(shm, "has a damaged table of a peer");
    fd = dtn_pidfd_getfd(p->pidfd, pieces->piece[k].fd);
    if (fd < 0)
        return device_why(shm, "may not take a file of a peer's process: %s "
                          "(see kernel.yama.ptrace_scope)", strerror(errno));
    rc = shm->exporter->join(shm->exporter, p->device + at, bytes, fd);
    close(fd);
    if (rc != 0)
        return device_why(shm, "cannot map memory of a peer's GPU: %s",
                          shm->exporter->why(shm->exporter));
    p->has[i / 8] |= (unsigned char)(1u << i % 8);
    return true;
}

/* Map what the peer has shown since the last time. */
static bool peer_join(struct dtn_shm *shm, struct dtn_shm_peer *p,
                      const struct dtn_shm_pieces *pieces)
{
    unsigned n = atomic_load_explicit(&pieces->n, memory_order_acquire);

    if (!p->device) {
        p->device_bytes = pieces->bytes;
        p->piece_bytes = pieces->piece_bytes;
        if (p->piece_bytes == 0 || p->device_bytes < p->piece_bytes)
            return device_why(shm, "has a damaged table of a peer");
        p->device = shm->exporter->reserve(shm->exporter, p->device_bytes);
        if (!p->device)
            return device_why(shm, "has no addresses for a peer's GPU: %s",
                              shm->exporter->why(shm->exporter));
    }
    n = n < DTN_SHM_PIECES ? n : DTN_SHM_PIECES;
    for (; p->joined < n; p->joined++)
        if (!piece_join(shm, p, pieces, p->joined))
            return false;
    return true;
}

void dtn_shm_try_device(struct dtn_shm *shm, struct dtn_shm_peer *p)
{
    const struct dtn_shm_pieces *pieces;
    bool good;

    if (p->tried || !shm->exporter)
        return;
    pieces = peer_pieces(p);
    if (!pieces)
        return;
    p->tried = true;
    good = peer_join(shm, p, pieces);
    if (!good)
        dtn_log(shm->log, DTN_LOG_INFO, "shm: this rank %s; device memory is "
                "staged", shm->why);
    atomic_store_explicit(&p->lane->maps, good ? MAPS_YES : MAPS_NO,
                          memory_order_release);
}

void dtn_shm_leave_device(struct dtn_shm *shm, struct dtn_shm_peer *p)
{
    for (size_t i = 0; i < DTN_SHM_PIECES && p->device; i++)
        if (p->has[i / 8] >> i % 8 & 1)
            shm->exporter->leave(shm->exporter, p->device + i * p->piece_bytes,
                                 p->piece_bytes);
    if (p->device)
        shm->exporter->release(shm->exporter, p->device, p->device_bytes);
    p->device = NULL;
    p->joined = 0;
}

/* -------------------------------------------------------------- names --- */

/* Can all connected peers map our device memory? */
static bool device_is_mapped(struct dtn_shm *shm)
{
    if (shm->nmapping == shm->nconnected)
        return true;
    shm->nmapping = 0;
    for (int i = 0; i < shm->nlocal; i++) {
        struct dtn_shm_peer *p = &shm->peers[i];
        uint32_t maps;

        if (!p->base)
            continue;
        dtn_shm_try_device(shm, p);
        maps = atomic_load_explicit(&p->in->maps, memory_order_acquire);
        if (maps != MAPS_YES)
            return device_why(shm, maps == MAPS_NO
                ? "reaches host memory only, as rank %d cannot map memory of "
                  "this rank's GPU (its log says why: DTN_LOG=info)"
                : "reaches host memory only, as rank %d has not opened its GPU "
                  "yet", shm->first + i);
        shm->nmapping++;
    }
    return true;
}

int dtn_shm_reg_device(struct dtn_shm *shm, const void *mem, size_t size,
                       struct dtn_remote *remote)
{
    const struct dtn_exporter *exporter = shm->exporter;
    size_t at, last;

    if (!shm->pieces || !device_is_mapped(shm))
        return DTENSOR_EINVAL;
    if (!dtn_arena_contains(exporter->arena, mem, size)) {
        device_why(shm, "does not map this memory (take that of "
                   "dtensor_alloc_on)");
        return DTENSOR_EINVAL;
    }
    at = (size_t)((const unsigned char *)mem - exporter->arena->backing.base);
    last = size > 0 ? at + size - 1 : at;
    for (size_t i = at / exporter->piece_bytes; i <= last
         / exporter->piece_bytes; i++)
        if (!piece_show(shm, (int)i))
            return DTENSOR_EINVAL;
    *remote = (struct dtn_remote){ at, DTN_KEY_DEVICE | DTN_SHM_KEY };
    return 0;
}

void *dtn_shm_map_device(struct dtn_shm *shm, struct dtn_shm_peer *p,
                         struct dtn_remote remote)
{
    const struct dtn_shm_pieces *pieces = p->device ? peer_pieces(p) : NULL;

    if (!pieces || remote.addr > p->device_bytes || !peer_join(shm, p, pieces))
        return NULL;
    return p->device + remote.addr;
}

/* peer.c - connecting to a rank of the same host
 *
 * A rank maps the whole arena of its peer once.  A dead peer leaves its memory
 * behind, still mapped and silent, so a pidfd tells whether the process lives.
 *
 * Private memory, outside the arena, has no address at the peers.  Where the
 * kernel allows it they read and write it by cross-memory attach (process.c).
 * When it connects, each rank tries whether it can read the peer's memory, and
 * writes the result into its lane there.
 */
#include "transport/shm/shm.h"
#include "base/error.h"
#include "base/pidfd.h"
#include "transport/arena.h"
#include "transport/process.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHM_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

void dtn_shm_disconnect(struct dtn_shm_peer *p)
{
    if (p->base)
        munmap(p->base, p->size);
    if (p->pidfd >= 0)
        close(p->pidfd);
    p->base = NULL;
    p->pidfd = -1;
}

/* Is the file the sealed arena of that address?  If a mapped file could shrink,
 * its owner could kill this process.
 */
static bool shm_file_ok(int fd, const struct dtn_shm_address *address)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);

    return seals >= 0 && (seals & SHM_SEALS) == SHM_SEALS &&
           fstat(fd, &st) == 0 && (uint64_t)st.st_size == address->size;
}

static bool shm_address_ok(const struct dtn_shm *shm,
                           const struct dtn_blob *blob,
                           const struct dtn_shm_address *address)
{
    uint64_t need = sizeof(struct dtn_shm_control) +
                    shm->control->nlanes * sizeof(struct dtn_shm_lane);

    return blob->size == sizeof *address && address->magic == DTN_SHM_MAGIC &&
           address->nlanes == shm->control->nlanes &&
           address->control % DTN_CACHE_LINE == 0 &&
           need <= address->size &&
           address->control <= address->size - need &&
           shm_file_ok(blob->fd, address);
}

/* Map the peer's arena and find our lane in it. */
static int shm_map_peer(struct dtn_shm *shm, int peer, struct dtn_shm_peer *p,
                        const struct dtn_blob *blob,
                        const struct dtn_shm_address *address,
                        struct dtensor_error *err)
{
    const struct dtn_shm_lane *mine = shm->peers[shm->rank - shm->first].in;
    void *base = mmap(NULL, address->size, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, blob->fd, 0);

    if (base == MAP_FAILED)
        return dtn_fail_sys(err, errno, "shm: cannot map the arena of rank %d:"
                            " %m (see ulimit -v, or lower [transport] arena)",
                            peer);
    madvise(base, address->size, MADV_DONTDUMP);  /* in its own core file     */
    p->base = base;
    p->size = address->size;
    p->control = (struct dtn_shm_control *)(p->base + address->control);
    /* This rank has the same position on the host for all of its ranks. */
    p->lane = &p->control->lane[mine - shm->control->lane];
    p->out = p->lane->line;
    p->acked = &p->lane->consumed;
    return 0;
}

/* Watch the peer's process.  If it is in another pid namespace, its number is
 * that of another process here: then it is not watched, and a wait ends at its
 * deadline.  A process that is already dead is watched by its number; its last
 * signals are still in the memory that it left.
 */
static void shm_watch(const struct dtn_shm *shm, struct dtn_shm_peer *p)
{
    const struct dtn_process *self = &shm->self;

    p->watched = self->start != 0 && p->process.start != 0 &&
                 self->pid_space == p->process.pid_space;
    if (!p->watched)
        return;
    /* Open first, then compare: so the number cannot change its process. */
    p->pidfd = dtn_pidfd_open((pid_t)p->process.pid);
    if (p->pidfd >= 0 && dtn_process_is_dead(&p->process)) {
        close(p->pidfd);
        p->pidfd = -1;
    }
}

bool dtn_shm_is_dead(const struct dtn_shm_peer *p)
{
    return p->watched && (p->pidfd >= 0 ? dtn_pidfd_is_dead(p->pidfd)
                                        : dtn_process_is_dead(&p->process));
}

/* Try to read its memory.  If that works, tell it: it need not stage memory. */
static void shm_try_fetch(struct dtn_shm_peer *p, uint64_t control_addr)
{
    uint64_t magic = 0;

    if (p->watched && dtn_process_read(&p->process, &magic, control_addr,
                                       sizeof magic) == 0
        && magic == DTN_SHM_MAGIC && !dtn_shm_is_dead(p))
        atomic_store_explicit(&p->lane->fetches, 1, memory_order_release);
}

static int shm_refuse(int peer, struct dtensor_error *err)
{
    return dtn_fail_rank(err, DTENSOR_ESYS, peer, "shm: the address of rank "
                         "%d is not that of a sealed arena (is it of the same "
                         "version?)", peer);
}

int dtn_shm_connect(struct dtn_transport *tp, int peer,
                    const struct dtn_blob *blob, struct dtensor_error *err)
{
    struct dtn_shm *shm = dtn_shm_of(tp);
    struct dtn_shm_peer *p = dtn_shm_peer(tp, peer);
    struct dtn_shm_address address = { 0 };
    int rc;

    if (p->base)
        return 0;
    if (blob->size == sizeof address)
        memcpy(&address, blob->bytes, sizeof address);
    if (!shm_address_ok(shm, blob, &address))
        return shm_refuse(peer, err);
    rc = shm_map_peer(shm, peer, p, blob, &address, err);
    if (rc < 0)
        return rc;
    p->process = address.process;
    if (p->control->magic != DTN_SHM_MAGIC) {
        dtn_shm_disconnect(p);
        return shm_refuse(peer, err);
    }
    shm_watch(shm, p);
    shm_try_fetch(p, address.control_addr);
    dtn_shm_try_device(shm, p);
    shm->nconnected++;
    return 0;
}

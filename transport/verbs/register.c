/* register.c - make a range of memory known to the cards of all rails
 *
 * A card reads and writes host memory once its pages are registered.  Memory of
 * a GPU has no pages that the kernel could pin.  There are two ways to register
 * it all the same: the GPU's driver exports it as a dma-buf (Linux 5.12 and a
 * card's driver that knows dma-bufs), or its module nvidia-peermem answers when
 * a GPU's address is registered like host memory.  The first is tried first.
 * If a machine has neither, the caller copies through host memory.
 */
#include "transport/exporter.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/rail.h"
#include "transport/verbs/register.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

enum {
    ACCESS_PEERS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
    ACCESS_DEVICE = ACCESS_PEERS | IBV_ACCESS_REMOTE_READ /* verbs/readback.c */
};

void dtn_verbs_deregister(struct dtn_verbs_memory *memory,
                          struct ibv_mr *mr[DTN_MAX_RAILS])
{
    for (int k = 0; k < memory->nrails && mr[k]; k++) {
        ibv_dereg_mr(mr[k]);
        mr[k] = NULL;
    }
}

/* Rail k refused: undo the others. */
static bool register_failed(struct dtn_verbs_memory *memory, int k,
                            struct ibv_mr *mr[DTN_MAX_RAILS])
{
    const int why = errno;

    memory->refused = &memory->rails[k];
    dtn_verbs_deregister(memory, mr);
    errno = why;
    return false;
}

bool dtn_verbs_register(struct dtn_verbs_memory *memory, void *mem, size_t size,
                        struct ibv_mr *mr[DTN_MAX_RAILS])
{
    for (int k = 0; k < memory->nrails; k++) {
        mr[k] = ibv_reg_mr(memory->rails[k].pd, mem, size, ACCESS_PEERS);
        if (!mr[k])
            return register_failed(memory, k, mr);
    }
    return true;
}

/* By dma-buf, or NULL with errno.  Asked at run time: libibverbs before 34 does
 * not have the call.
 */
static struct ibv_mr *register_dmabuf(struct ibv_pd *pd, void *mem, size_t size,
                                      const struct dtn_dmabuf *dmabuf)
{
    struct ibv_mr *(*reg)(struct ibv_pd *, uint64_t, size_t, uint64_t, int,
                          int);

    *(void **)&reg = dlsym(RTLD_DEFAULT, "ibv_reg_dmabuf_mr");
    errno = EOPNOTSUPP;
    return dmabuf->fd < 0 || !reg ? NULL
         : reg(pd, dmabuf->offset, size, (uintptr_t)mem, dmabuf->fd,
               ACCESS_DEVICE);
}

bool dtn_verbs_register_device(struct dtn_verbs_memory *memory, void *mem,
                               size_t size, struct ibv_mr *mr[DTN_MAX_RAILS])
{
    const struct dtn_exporter *exporter = memory->exporter;
    struct dtn_dmabuf dmabuf = { -1, 0 };
    bool done = true;

    memory->unexported = exporter->dmabuf(exporter, mem, size, &dmabuf) != 0;
    if (memory->unexported)
        dmabuf.fd = -1;
    for (int k = 0; k < memory->nrails && done; k++) {
        struct ibv_pd *pd = memory->rails[k].pd;

        mr[k] = register_dmabuf(pd, mem, size, &dmabuf);
        if (!mr[k])
            memory->dmabuf_errno = errno;
        if (!mr[k])
            mr[k] = ibv_reg_mr(pd, mem, size, ACCESS_DEVICE);
        done = mr[k] ? true : register_failed(memory, k, mr);
    }
    if (dmabuf.fd >= 0) {
        const int why = errno;

        close(dmabuf.fd);
        errno = why;
    }
    return done;
}

/* rxe_verbs.c - registers dma-bufs on soft RDMA devices, for tests
 *
 * The provider of soft devices in libibverbs has no such entry and would refuse
 * without asking the kernel.  Its system call is in libibverbs for providers;
 * the kernel can answer it once the module rxe_dmabuf.c is loaded.
 */
#include "tests/rdma/rxe_verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdlib.h>

int rxe_registrations_left = 1000000;

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
                                 size_t length, uint64_t iova, int fd,
                                 int access)
{
    enum { VERBS_MR_BYTES = 512 };        /* a struct verbs_mr, and more      */
    int (*reg)(struct ibv_pd *, uint64_t, size_t, uint64_t, int, int, void *);
    struct ibv_mr *mr = calloc(1, VERBS_MR_BYTES);

    *(void **)&reg = dlsym(RTLD_NEXT, "ibv_cmd_reg_dmabuf_mr");
    if (rxe_registrations_left-- <= 0)
        errno = ENOMEM;
    else
        errno = mr && reg ? reg(pd, offset, length, iova, fd, access, mr)
                          : ENOSYS;
    if (errno != 0) {
        free(mr);
        return NULL;
    }
    mr->context = pd->context;
    mr->pd = pd;
    mr->addr = (void *)(uintptr_t)iova;
    mr->length = length;
    return mr;
}

/* dmabuf.c - memory of a device for RDMA cards, by the kernel's /dev/udmabuf */
#include "tests/standin/standin.h"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PIECES_MAX = 1024 };       /* of one descriptor, udmabuf's own limit   */

/* The pages of [at, at + size) piece by piece, as their blocks have them; 0 if
 * they cannot be exported, and *rc says why.
 */
static unsigned dmabuf_pieces(const struct standin_range *range, uint64_t at,
                              size_t size, struct udmabuf_create_item *list,
                              CUresult *rc)
{
    unsigned n = 0;

    *rc = CUDA_ERROR_INVALID_VALUE;
    for (size_t done = 0, part; done < size && n < PIECES_MAX; done += part) {
        const struct standin_mapping *m = standin_mapping_at(range, at + done);

        if (!m)
            return 0;
        part = (m->size - (at + done - m->at) + STANDIN_PAGE - 1)
             / STANDIN_PAGE * STANDIN_PAGE;
        part = part < size - done ? part : size - done;
        if (!m->block->rdma)
            *rc = CUDA_ERROR_NOT_SUPPORTED;
        if (!m->block->rdma)
            return 0;
        list[n++] = (struct udmabuf_create_item){
            .memfd = (unsigned)m->block->fd, .size = part,
            .offset = m->offset + (at + done - m->at) };
    }
    return n;
}

/* A descriptor of these pieces, -1: this kernel has no udmabuf. */
static int dmabuf_make(const struct udmabuf_create_item *list, unsigned n)
{
    struct udmabuf_create_list *create =
        malloc(sizeof *create + n * sizeof *list);
    int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd = -1;

    if (create && device >= 0) {
        *create = (struct udmabuf_create_list){
            .flags = UDMABUF_FLAGS_CLOEXEC, .count = n };
        memcpy(create->list, list, n * sizeof *list);
        fd = ioctl(device, UDMABUF_CREATE_LIST, create);
    }
    if (device >= 0)
        close(device);
    free(create);
    return fd;
}

static CUresult dmabuf_export(uint64_t at, size_t size, int *fdp)
{
    const struct standin_range *range = standin_range_at(at);
    struct udmabuf_create_item list[PIECES_MAX];
    CUresult rc = CUDA_ERROR_INVALID_VALUE;
    unsigned n = range && !range->freed
               ? dmabuf_pieces(range, at, size, list, &rc) : 0;

    if (n == 0)
        return rc;
    *fdp = dmabuf_make(list, n);
    return *fdp >= 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult standin_cuMemGetHandleForAddressRange(void *handle, CUdeviceptr at,
                                               size_t size,
                                               CUmemRangeHandleType type,
                                               unsigned long long flags)
{
    CUresult rc = standin_enter_context("cuMemGetHandleForAddressRange");
    int fd = -1;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || at % STANDIN_PAGE
        || size == 0 || size % STANDIN_PAGE) {
        standin_complain("cuMemGetHandleForAddressRange: %zu bytes at %#llx: "
                         "not whole pages", size, at);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (flags != 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&standin_lock);
    rc = dmabuf_export(at, size, &fd);
    pthread_mutex_unlock(&standin_lock);
    if (rc == CUDA_SUCCESS)
        *(int *)handle = fd;
    return rc;
}

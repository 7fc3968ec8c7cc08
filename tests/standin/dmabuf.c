/* dmabuf.c - memory of a device for RDMA cards, by the kernel's /dev/udmabuf */
#include "tests/standin/standin.h"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A descriptor of whole pages of a block, -1: this kernel has no udmabuf. */
static int dmabuf_make(const struct standin_mapping *mapping, uint64_t at,
                       size_t size)
{
    struct udmabuf_create create = {
        .memfd = (unsigned)mapping->block->fd, .flags = UDMABUF_FLAGS_CLOEXEC,
        .offset = mapping->offset + (at - mapping->at), .size = size
    };
    int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    int fd;

    if (device < 0)
        return -1;
    fd = ioctl(device, UDMABUF_CREATE, &create);
    close(device);
    return fd;
}

CUresult standin_cuMemGetHandleForAddressRange(void *handle, CUdeviceptr at,
                                               size_t size,
                                               CUmemRangeHandleType type,
                                               unsigned long long flags)
{
    CUresult rc = standin_enter_context("cuMemGetHandleForAddressRange");
    const struct standin_mapping *mapping = NULL;
    const struct standin_range *range;
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
    range = standin_range_at(at);
    if (range && !range->freed)
        mapping = standin_mapping_at(range, at);
    if (!mapping || size > (mapping->size - (at - mapping->at) + STANDIN_PAGE
                            - 1) / STANDIN_PAGE * STANDIN_PAGE)
        rc = CUDA_ERROR_INVALID_VALUE;
    else if (!mapping->block->rdma || (fd = dmabuf_make(mapping, at, size)) < 0)
        rc = CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_unlock(&standin_lock);
    if (rc == CUDA_SUCCESS)
        *(int *)handle = fd;
    return rc;
}

/* Writes of a card to a memfd are in order with those of the CPU. */
CUresult standin_cuFlushGPUDirectRDMAWrites(
    CUflushGPUDirectRDMAWritesTarget target,
    CUflushGPUDirectRDMAWritesScope scope)
{
    return standin_enter_context("cuFlushGPUDirectRDMAWrites");
}

/* vmm.c - physical memory, reserved addresses, and the one mapped at the other
 *
 * Physical memory is named by a handle.  Exported it is a file descriptor,
 * which another process imports and maps at addresses of its own.
 */
#include "tests/standin/standin.h"

#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

static struct standin_block *block_named(CUmemGenericAllocationHandle handle)
{
    return (struct standin_block *)(uintptr_t)handle;
}

static CUmemGenericAllocationHandle block_name(struct standin_block *block)
{
    return (CUmemGenericAllocationHandle)(uintptr_t)block;
}

CUresult standin_cuMemGetAllocationGranularity(
    size_t *size, const CUmemAllocationProp *prop,
    CUmemAllocationGranularity_flags flags)
{
    CUresult rc = standin_enter("cuMemGetAllocationGranularity");

    if (rc == CUDA_SUCCESS)
        *size = STANDIN_GRANULE;
    return rc;
}

CUresult standin_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                             const CUmemAllocationProp *prop,
                             unsigned long long flags)
{
    CUresult rc = standin_enter("cuMemCreate");
    struct standin_block *block;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (flags != 0 || size == 0 || size % STANDIN_GRANULE != 0
        || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED
        || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE
        || !standin_device_exists(prop->location.id)) {
        standin_complain("cuMemCreate: %zu bytes on device %d: not whole "
                         "granules, or not possible", size, prop->location.id);
        return CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_lock(&standin_lock);
    block = standin_block_new(size, prop->location.id);
    pthread_mutex_unlock(&standin_lock);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    block->exportable = prop->requestedHandleTypes
        & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    block->rdma = prop->allocFlags.gpuDirectRDMACapable;
    *handle = block_name(block);
    return CUDA_SUCCESS;
}

CUresult standin_cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult rc = standin_enter("cuMemRelease");

    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&standin_lock);
    standin_block_drop(block_named(handle));
    pthread_mutex_unlock(&standin_lock);
    return CUDA_SUCCESS;
}

CUresult standin_cuMemAddressReserve(CUdeviceptr *at, size_t size, size_t align,
                                     CUdeviceptr hint,
                                     unsigned long long flags)
{
    CUresult rc = standin_enter("cuMemAddressReserve");
    struct standin_range *range;

    if (rc == CUDA_SUCCESS && (flags != 0 || size == 0
                               || size % STANDIN_GRANULE != 0
                               || align > STANDIN_GRANULE))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&standin_lock);
    range = standin_range_new(size);
    if (range) {
        range->reserved = true;
        *at = range->at;
    }
    pthread_mutex_unlock(&standin_lock);
    return range ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The reserved range that has all of [at, at + size), or NULL. */
static struct standin_range *reserved_at(uint64_t at, size_t size)
{
    struct standin_range *range = standin_range_at(at);

    if (!range || !range->reserved || range->freed || size == 0
        || size > range->size - (at - range->at))
        return NULL;
    return range;
}

CUresult standin_cuMemAddressFree(CUdeviceptr at, size_t size)
{
    CUresult rc = standin_enter("cuMemAddressFree");
    struct standin_range *range;

    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&standin_lock);
    range = reserved_at(at, size);
    if (!range || range->at != at || range->size != size || range->mappings) {
        standin_complain("cuMemAddressFree: %#llx: %s", at,
                         range && range->mappings ? "still mapped"
                                                  : "not reserved like that");
        rc = CUDA_ERROR_INVALID_VALUE;
    } else {
        range->freed = true;
        standin_count(STANDIN_RANGE, -1);
    }
    pthread_mutex_unlock(&standin_lock);
    return rc;
}

/* Is any part of it mapped? */
static bool mapped_within(const struct standin_range *range, uint64_t at,
                          size_t size)
{
    for (const struct standin_mapping *m = range->mappings; m; m = m->next)
        if (at < m->at + m->size && m->at < at + size)
            return true;
    return false;
}

CUresult standin_cuMemMap(CUdeviceptr at, size_t size, size_t offset,
                          CUmemGenericAllocationHandle handle,
                          unsigned long long flags)
{
    CUresult rc = standin_enter("cuMemMap");
    struct standin_block *block = block_named(handle);
    struct standin_range *range;

    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&standin_lock);
    range = reserved_at(at, size);
    if (flags != 0 || !range || at % STANDIN_GRANULE || size % STANDIN_GRANULE
        || offset % STANDIN_GRANULE || offset > block->size
        || size > block->size - offset || mapped_within(range, at, size)) {
        standin_complain("cuMemMap: %zu bytes at %#llx: not reserved, mapped "
                         "already, or not whole granules", size, at);
        rc = CUDA_ERROR_INVALID_VALUE;
    } else if (!standin_map(range, at, size, block, offset)) {
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&standin_lock);
    return rc;
}

CUresult standin_cuMemUnmap(CUdeviceptr at, size_t size)
{
    CUresult rc = standin_enter("cuMemUnmap");
    struct standin_range *range;

    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&standin_lock);
    range = reserved_at(at, size);
    if (!range || !standin_unmap(range, at, size)) {
        standin_complain("cuMemUnmap: %zu bytes at %#llx: not mapped like that",
                         size, at);
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_unlock(&standin_lock);
    return rc;
}

CUresult standin_cuMemSetAccess(CUdeviceptr at, size_t size,
                                const CUmemAccessDesc *desc, size_t count)
{
    CUresult rc = standin_enter("cuMemSetAccess");
    struct standin_range *range;

    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&standin_lock);
    range = reserved_at(at, size);
    if (!range || count == 0 || !mapped_within(range, at, size)) {
        standin_complain("cuMemSetAccess: %zu bytes at %#llx: not mapped", size,
                         at);
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    for (struct standin_mapping *m = rc == CUDA_SUCCESS ? range->mappings
                                                        : NULL; m; m = m->next)
        if (m->at >= at && m->at - at < size)
            m->access = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    pthread_mutex_unlock(&standin_lock);
    return rc;
}

CUresult standin_cuMemExportToShareableHandle(
    void *out, CUmemGenericAllocationHandle handle,
    CUmemAllocationHandleType type, unsigned long long flags)
{
    CUresult rc = standin_enter("cuMemExportToShareableHandle");
    struct standin_block *block = block_named(handle);
    int fd;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!block->exportable) {
        standin_complain("cuMemExportToShareableHandle: this memory was not "
                         "created to be exported");
        return CUDA_ERROR_INVALID_VALUE;
    }
    fd = fcntl(block->fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *(int *)out = fd;
    return CUDA_SUCCESS;
}

/* The descriptor stays the caller's. */
CUresult standin_cuMemImportFromShareableHandle(
    CUmemGenericAllocationHandle *handle, void *name,
    CUmemAllocationHandleType type)
{
    CUresult rc = standin_enter("cuMemImportFromShareableHandle");
    struct standin_block *block;

    if (rc == CUDA_SUCCESS && type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        rc = CUDA_ERROR_NOT_SUPPORTED;
    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&standin_lock);
    block = standin_block_of((int)(intptr_t)name);
    pthread_mutex_unlock(&standin_lock);
    if (!block)
        return CUDA_ERROR_INVALID_VALUE;
    *handle = block_name(block);
    return CUDA_SUCCESS;
}

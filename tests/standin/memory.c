/* memory.c - device memory of cuMemAlloc, and what a pointer points to
 *
 * Between the end of an allocation and the end of its last page are bytes that
 * the stand-in knows.  If they have changed when the memory is freed, a kernel
 * or copy wrote past the end.
 */
#include "tests/standin/standin.h"

#include <stdint.h>
#include <string.h>

enum { TAIL = 0xc5 };

static size_t tail_bytes(const struct standin_range *range)
{
    return (STANDIN_PAGE - range->size % STANDIN_PAGE) % STANDIN_PAGE;
}

CUresult standin_cuMemAlloc(CUdeviceptr *at, size_t size)
{
    CUresult rc = standin_enter_context("cuMemAlloc");
    struct standin_range *range = NULL;
    struct standin_block *block;
    const char *why;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&standin_lock);
    block = standin_block_new(size, standin_current());
    if (block)
        range = standin_range_new(size);
    if (range && standin_map(range, range->at, size, block, 0)) {
        range->mappings->access = true;
        block->rdma = true;
    }
    if (block)
        standin_block_drop(block);
    pthread_mutex_unlock(&standin_lock);
    if (!range)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset((char *)standin_look(range->at, size, &why) + size, TAIL,
           tail_bytes(range));
    *at = range->at;
    return CUDA_SUCCESS;
}

/* How many bytes past the end were written. */
static size_t tail_written(const struct standin_range *range)
{
    const char *why;
    const unsigned char *end = standin_look(range->at, range->size, &why);
    size_t n = 0;

    for (size_t i = 0; end && i < tail_bytes(range); i++)
        n += end[range->size + i] != TAIL;
    return n;
}

CUresult standin_cuMemFree(CUdeviceptr at)
{
    CUresult rc = standin_enter_context("cuMemFree");
    struct standin_range *range;
    size_t written;

    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&standin_lock);
    range = standin_range_at(at);
    pthread_mutex_unlock(&standin_lock);
    if (!range || range->at != at || range->freed || range->reserved) {
        standin_complain("cuMemFree: %#llx: %s", at, range && range->freed
                         ? "freed before" : "not of cuMemAlloc");
        return CUDA_ERROR_INVALID_VALUE;
    }
    written = tail_written(range);
    if (written > 0)
        standin_complain("cuMemFree: %zu bytes at %#llx: %zu bytes past the "
                         "end were written", range->size, at, written);
    pthread_mutex_lock(&standin_lock);
    standin_unmap(range, at, range->size);
    range->freed = true;
    pthread_mutex_unlock(&standin_lock);
    standin_count(STANDIN_RANGE, -1);
    return written > 0 ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

/* ----------------------------------------------------- what it points to -- */

/* What is known of an address. */
struct pointer {
    uint64_t at;
    const struct standin_range *range; /* device memory, or NULL              */
    const struct standin_mapping *mapping; /* of it, or NULL                  */
    bool pinned;                  /* host memory                              */
};

static void pointer_find(struct pointer *pointer, uint64_t at)
{
    *pointer = (struct pointer){ .at = at };
    pointer->range = standin_range_at(at);
    if (pointer->range && !pointer->range->freed)
        pointer->mapping = standin_mapping_at(pointer->range, at);
    pointer->pinned = !pointer->range && standin_is_pinned(at, 1);
}

static const void *pointer_context(const struct pointer *pointer)
{
    if (standin_listed("DTN_STANDIN_MEMORY_IS", "foreign"))
        return pointer;           /* of nobody's                              */
    if (pointer->mapping)
        return standin_context(pointer->mapping->block->device);
    return pointer->pinned ? standin_context(0) : NULL;
}

static CUresult pointer_tell(const struct pointer *pointer,
                             CUpointer_attribute attribute, void *value)
{
    const struct standin_mapping *mapping = pointer->mapping;

    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(const void **)value = pointer_context(pointer);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = mapping ? CU_MEMORYTYPE_DEVICE
            : pointer->pinned ? CU_MEMORYTYPE_HOST : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(uint64_t *)value = mapping || pointer->pinned ? pointer->at : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(uint64_t *)value = pointer->pinned ? pointer->at : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(int *)value = standin_listed("DTN_STANDIN_MEMORY_IS", "managed");
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = mapping ? mapping->block->device
            : pointer->pinned ? 0 : -2;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(uint64_t *)value = mapping ? pointer->range->at >> 12 : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(uint64_t *)value = mapping ? pointer->range->at : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)value = mapping ? pointer->range->size : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(int *)value = mapping != NULL;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(uint64_t *)value = mapping && mapping->block->exportable;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        *(int *)value = mapping && mapping->block->rdma;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* An address that the driver does not know is no error: all is 0 then. */
CUresult standin_cuPointerGetAttributes(unsigned n,
                                        CUpointer_attribute *attributes,
                                        void **values, CUdeviceptr at)
{
    CUresult rc = standin_enter_context("cuPointerGetAttributes");
    struct pointer pointer;

    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&standin_lock);
    pointer_find(&pointer, at);
    for (unsigned i = 0; i < n && rc == CUDA_SUCCESS; i++)
        rc = pointer_tell(&pointer, attributes[i], values[i]);
    pthread_mutex_unlock(&standin_lock);
    return rc;
}

CUresult standin_cuPointerSetAttribute(const void *value,
                                       CUpointer_attribute attribute,
                                       CUdeviceptr at)
{
    CUresult rc = standin_enter_context("cuPointerSetAttribute");
    struct pointer pointer;

    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&standin_lock);
    pointer_find(&pointer, at);
    if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !pointer.mapping)
        rc = CUDA_ERROR_INVALID_VALUE;
    else if (pointer.range->reserved)
        rc = CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_unlock(&standin_lock);
    return rc;
}

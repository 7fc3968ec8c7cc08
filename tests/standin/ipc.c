/* ipc.c - names of memory of cuMemAlloc for other processes
 *
 * The name says which descriptor of which process has the memory.  As with a
 * real driver, the process that made it cannot open it, and a name of something
 * inside of an allocation is one of the whole.
 */
#include "tests/standin/standin.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

struct name {
    pid_t owner;
    int fd;
    size_t size;                  /* bytes that were asked for                */
};

_Static_assert(sizeof(struct name) <= sizeof(CUipcMemHandle), "it fits");

CUresult standin_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at)
{
    CUresult rc = standin_enter_context("cuIpcGetMemHandle");
    const struct standin_range *range;
    struct name name = { .owner = getpid() };

    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&standin_lock);
    range = standin_range_at(at);
    if (!range || range->freed || range->reserved || range->opened) {
        rc = CUDA_ERROR_INVALID_VALUE;
    } else {
        name.fd = range->mappings->block->fd;
        name.size = range->size;
        memset(handle, 0, sizeof *handle);
        memcpy(handle, &name, sizeof name);
    }
    pthread_mutex_unlock(&standin_lock);
    return rc;
}

/* Map the memory of that descriptor, which is closed. */
static CUresult ipc_map(int fd, size_t size, CUdeviceptr *at)
{
    struct standin_block *block;
    struct standin_range *range = NULL;
    bool mapped = false;

    pthread_mutex_lock(&standin_lock);
    block = standin_block_of(fd);
    if (block)
        range = standin_range_new(size);
    if (range)
        mapped = standin_map(range, range->at, size, block, 0);
    if (mapped) {
        range->mappings->access = true;
        range->opened = true;
        *at = range->at;
    }
    if (block)
        standin_block_drop(block);
    pthread_mutex_unlock(&standin_lock);
    close(fd);
    return mapped ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult standin_cuIpcOpenMemHandle(CUdeviceptr *at, CUipcMemHandle handle,
                                    unsigned flags)
{
    CUresult rc = standin_enter_context("cuIpcOpenMemHandle");
    struct name name;
    char path[64];
    int fd;

    if (rc != CUDA_SUCCESS)
        return rc;
    memcpy(&name, &handle, sizeof name);
    if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (name.owner == getpid()) {
        standin_complain("cuIpcOpenMemHandle: this process made that name");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)name.owner, name.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    return fd < 0 ? CUDA_ERROR_INVALID_VALUE : ipc_map(fd, name.size, at);
}

CUresult standin_cuIpcCloseMemHandle(CUdeviceptr at)
{
    CUresult rc = standin_enter_context("cuIpcCloseMemHandle");
    struct standin_range *range;

    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&standin_lock);
    range = standin_range_at(at);
    if (!range || range->at != at || !range->opened || range->freed) {
        standin_complain("cuIpcCloseMemHandle: %#llx: not open", at);
        rc = CUDA_ERROR_INVALID_VALUE;
    } else {
        standin_unmap(range, at, range->size);
        range->freed = true;
        standin_count(STANDIN_RANGE, -1);
    }
    pthread_mutex_unlock(&standin_lock);
    return rc;
}

/* exporter.c - device memory for network cards
 *
 * The driver makes a dma-buf of whole pages of the host that a range lies in.
 * Memory of the arena is created for that, if the device can.  Memory of the
 * program's own is told to keep the order of copies and of what cards write.
 */
#include "base/error.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "transport/arena.h"
#include "transport/exporter.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

static struct dtn_cuda *cuda_exporting(const struct dtn_exporter *exporter)
{
    return (struct dtn_cuda *)((uintptr_t)exporter
                               - offsetof(struct dtn_cuda, exporter));
}

static bool exporter_holds(const struct dtn_exporter *exporter,
                           const void *mem, size_t size)
{
    const struct dtn_cuda *cuda = cuda_exporting(exporter);

    return dtn_arena_contains(&cuda->arena, mem, size)
        || dtn_cuda_holds(&cuda->memory, mem);
}

/* Copies of the program must not overtake what cards write.  A driver that
 * cannot promise that for this memory has no such copies.
 */
static void exporter_order(const struct dtn_cuda *cuda, const void *mem)
{
    const unsigned yes = 1;

    if (!dtn_arena_contains(&cuda->arena, mem, 1))
        cuda->driver->cuPointerSetAttribute(
            &yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)mem);
}

static int exporter_export(struct dtn_cuda *cuda, const void *mem,
                           size_t size, struct dtn_dmabuf *dmabuf)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t at = (uintptr_t)mem, first = at / page * page;
    const size_t whole = (size_t)((at + size - first + page - 1) / page * page);
    CUresult result;
    int fd = -1;

    exporter_order(cuda, mem);
    result = cuda->driver->cuMemGetHandleForAddressRange(
        &fd, (CUdeviceptr)first, whole, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    if (result != CUDA_SUCCESS) {
        dtn_cuda_fail(&cuda->unexported, cuda->driver,
                      "cuMemGetHandleForAddressRange", result, "%zu bytes of "
                      "%s", whole, cuda->name);
        return DTENSOR_EINVAL;
    }
    *dmabuf = (struct dtn_dmabuf){ fd, at - first };
    return 0;
}

static int exporter_dmabuf(const struct dtn_exporter *exporter,
                           const void *mem, size_t size,
                           struct dtn_dmabuf *dmabuf)
{
    struct dtn_cuda *cuda = cuda_exporting(exporter);
    char why[160];
    int rc;

    if (!dtn_cuda_can(cuda->driver, DTN_CUDA_DMABUF, why, sizeof why))
        return dtn_fail(&cuda->unexported, DTENSOR_EINVAL, "%s", why);
    rc = dtn_cuda_enter(cuda);
    if (rc != 0) {
        cuda->unexported = cuda->failure;
        return DTENSOR_EINVAL;
    }
    rc = exporter_export(cuda, mem, size, dmabuf);
    dtn_cuda_leave(cuda);
    return rc;
}

static const char *exporter_why(const struct dtn_exporter *exporter)
{
    return cuda_exporting(exporter)->unexported.text;
}

void dtn_cuda_exporter_init(struct dtn_cuda *cuda)
{
    int ordering = 0;

    if (cuda->driver->cuDeviceGetAttribute(&ordering,
            CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING,
            cuda->device) != CUDA_SUCCESS)
        ordering = CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE;
    cuda->exporter = (struct dtn_exporter){
        .name = cuda->name, .arena = &cuda->arena,
        .ordered = ordering >= CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER,
        .holds = exporter_holds, .dmabuf = exporter_dmabuf,
        .why = exporter_why };
}

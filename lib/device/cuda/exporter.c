/* exporter.c - device memory for network cards and for peers of the same host
 *
 * The driver exports a range as a dma-buf, in whole pages of the host.  Memory
 * of the arena is created for that if the device can do it.  The program's own
 * memory gets an attribute that keeps its copies in order with the writes of
 * cards.
 *
 * A peer on the same host maps the arena piece by piece, at its own addresses,
 * if its GPU can access this one.  Then its kernels and copies reach it in
 * place.
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
    return dtn_cuda_end(cuda, exporter_export(cuda, mem, size, dmabuf));
}

/* Memory of cuMemCreate() needs a flag, which PyTorch does not set. */
static const char *exporter_flaw(const struct dtn_exporter *exporter,
                                 const void *mem)
{
    return dtn_cuda_rdma_capable(cuda_exporting(exporter), mem) ? NULL
         : "it was not made for RDMA: its attribute "
           "IS_GPU_DIRECT_RDMA_CAPABLE is 0 (take memory of "
           "dtensor_alloc_on(), or switch off PyTorch's expandable_segments)";
}

/* ------------------------------------------------------ for the host --- */

/* A call that began with enter() ends; keep why it failed. */
static int exporter_end(struct dtn_cuda *cuda, int rc)
{
    dtn_cuda_leave(cuda);
    if (rc == 0)
        return 0;
    cuda->unexported = cuda->failure;
    return DTENSOR_EINVAL;
}

static int exporter_share(const struct dtn_exporter *exporter, int i, int *fdp)
{
    struct dtn_cuda *cuda = cuda_exporting(exporter);
    int rc = dtn_cuda_enter(cuda);

    return rc != 0 ? DTENSOR_EINVAL
                   : exporter_end(cuda, dtn_cuda_arena_share(cuda, i, fdp));
}

static unsigned char *exporter_reserve(const struct dtn_exporter *exporter,
                                       size_t bytes)
{
    struct dtn_cuda *cuda = cuda_exporting(exporter);
    CUdeviceptr base = 0;

    if (dtn_cuda_enter(cuda) != 0)
        return NULL;
    exporter_end(cuda, dtn_cuda_result(
        cuda, "cuMemAddressReserve",
        cuda->driver->cuMemAddressReserve(&base, bytes, 0, 0, 0),
        "%zu bytes for a peer", bytes));
    return (unsigned char *)base;
}

static void exporter_release(const struct dtn_exporter *exporter,
                             unsigned char *base, size_t bytes)
{
    struct dtn_cuda *cuda = cuda_exporting(exporter);

    if (dtn_cuda_enter(cuda) != 0)
        return;
    cuda->driver->cuMemAddressFree((CUdeviceptr)base, bytes);
    dtn_cuda_leave(cuda);
}

static int exporter_join(const struct dtn_exporter *exporter,
                         unsigned char *at, size_t bytes, int fd)
{
    struct dtn_cuda *cuda = cuda_exporting(exporter);
    int rc = dtn_cuda_enter(cuda);

    return rc != 0 ? DTENSOR_EINVAL
         : exporter_end(cuda, dtn_cuda_arena_join(cuda, (CUdeviceptr)at, bytes,
                                                  fd));
}

static void exporter_leave(const struct dtn_exporter *exporter,
                           unsigned char *at, size_t bytes)
{
    struct dtn_cuda *cuda = cuda_exporting(exporter);

    if (dtn_cuda_enter(cuda) != 0)
        return;
    cuda->driver->cuMemUnmap((CUdeviceptr)at, bytes);
    dtn_cuda_leave(cuda);
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
        .why = exporter_why, .flaw = exporter_flaw,
        .piece_bytes = dtn_cuda_arena_piece(cuda),
        .share = exporter_share, .reserve = exporter_reserve,
        .release = exporter_release, .join = exporter_join,
        .leave = exporter_leave };
}

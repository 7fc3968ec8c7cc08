/* arena.c - the memory of a device's arena
 *
 * The arena is address space for all memory of the device.  It is divided into
 * chunks: at most 1024, of 82 MiB each on a GPU of 80 GiB.  A chunk gets memory
 * when the first block in it is allocated, and gives it back when its last
 * block is freed.  So several ranks and other programs can share the device.  A
 * chunk keeps its memory once a network card has registered a block in it
 * (backing.pinned), or another process may have mapped it.
 */
#include "base/error.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "transport/arena.h"
#include "transport/backing.h"
#include "transport/extents.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { CHUNKS_MAX = 1024 };

struct chunks {
    struct dtn_cuda *cuda;
    CUmemAllocationProp prop;     /* of the memory of each                    */
    size_t bytes;                 /* of a chunk                               */
    int n;                        /* in the address space                     */
    int users[CHUNKS_MAX];        /* blocks that lie in it                    */
    bool mapped[CHUNKS_MAX];      /* it has memory                            */
    CUmemGenericAllocationHandle handle[CHUNKS_MAX]; /* of it                 */
    int file[CHUNKS_MAX];         /* of it plus 1; 0: it is not shared        */
};

static struct chunks *chunks_of(const struct dtn_backing *backing)
{
    return backing->arg;
}

/* ------------------------------------------------------------ a chunk --- */

/* Let our device read and write it. */
static int chunk_open(struct dtn_cuda *cuda, CUdeviceptr at, size_t bytes)
{
    const CUmemAccessDesc access = {
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, cuda->number },
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

    return dtn_cuda_result(cuda, "cuMemSetAccess",
                           cuda->driver->cuMemSetAccess(at, bytes, &access, 1),
                           "%zu bytes of %s", bytes, cuda->name);
}

static int chunk_map(struct chunks *chunks, int i)
{
    struct dtn_cuda *cuda = chunks->cuda;
    const struct dtn_cuda_driver *driver = cuda->driver;
    const CUdeviceptr at = (CUdeviceptr)cuda->arena.backing.base
                         + (size_t)i * chunks->bytes;
    CUmemGenericAllocationHandle handle;
    int rc = dtn_cuda_result(cuda, "cuMemCreate",
                             driver->cuMemCreate(&handle, chunks->bytes,
                                                 &chunks->prop, 0),
                             "%zu bytes of %s", chunks->bytes, cuda->name);

    if (rc != 0)
        return rc;
    rc = dtn_cuda_result(cuda, "cuMemMap",
                         driver->cuMemMap(at, chunks->bytes, 0, handle, 0),
                         "%zu bytes of %s", chunks->bytes, cuda->name);
    if (rc == 0) {
        rc = chunk_open(cuda, at, chunks->bytes);
        if (rc != 0)
            driver->cuMemUnmap(at, chunks->bytes);
    }
    if (rc != 0)
        driver->cuMemRelease(handle);
    chunks->mapped[i] = rc == 0;
    chunks->handle[i] = handle;
    return rc;
}

static void chunk_unmap(struct chunks *chunks, int i)
{
    struct dtn_cuda *cuda = chunks->cuda;

    cuda->driver->cuMemUnmap((CUdeviceptr)cuda->arena.backing.base
                             + (size_t)i * chunks->bytes, chunks->bytes);
    cuda->driver->cuMemRelease(chunks->handle[i]);
    if (chunks->file[i] > 0)
        close(chunks->file[i] - 1);
    chunks->file[i] = 0;
    chunks->mapped[i] = false;
}

/* ------------------------------------------------------------ a block --- */

/* The chunks first .. last - 1 have one block less. */
static void chunks_leave(struct chunks *chunks, int first, int last)
{
    for (int i = first; i < last; i++)
        if (--chunks->users[i] == 0 && !chunks->cuda->arena.backing.pinned
            && chunks->file[i] == 0)
            chunk_unmap(chunks, i);
}

/* Before a block is returned: get memory for those of its chunks that have
 * none.
 */
static bool chunks_touch(struct dtn_backing *backing, size_t offset,
                         size_t size)
{
    struct chunks *chunks = chunks_of(backing);
    const int first = (int)(offset / chunks->bytes);
    const int last = (int)((offset + size - 1) / chunks->bytes) + 1;
    int rc = dtn_cuda_enter(chunks->cuda), i = first;

    if (rc != 0)
        return false;
    for (; i < last && rc == 0; i++) {
        if (!chunks->mapped[i])
            rc = chunk_map(chunks, i);
        if (rc == 0)
            chunks->users[i]++;
    }
    if (rc != 0)
        chunks_leave(chunks, first, i - 1);
    dtn_cuda_leave(chunks->cuda);
    return rc == 0;
}

static void chunks_release(struct dtn_backing *backing, size_t offset,
                           size_t size)
{
    struct chunks *chunks = chunks_of(backing);

    if (dtn_cuda_enter(chunks->cuda) != 0)
        return;
    chunks_leave(chunks, (int)(offset / chunks->bytes),
                 (int)((offset + size - 1) / chunks->bytes) + 1);
    dtn_cuda_leave(chunks->cuda);
}

static void chunks_close(struct dtn_backing *backing)
{
    struct chunks *chunks = chunks_of(backing);
    struct dtn_cuda *cuda = chunks->cuda;

    for (int i = 0; i < chunks->n; i++)
        if (chunks->mapped[i])
            chunk_unmap(chunks, i);
    cuda->driver->cuMemAddressFree((CUdeviceptr)backing->base, backing->size);
    free(chunks);
}

size_t dtn_cuda_arena_piece(const struct dtn_cuda *cuda)
{
    const struct chunks *chunks = chunks_of(&cuda->arena.backing);

    return chunks->prop.requestedHandleTypes != 0 ? chunks->bytes : 0;
}

int dtn_cuda_arena_share(struct dtn_cuda *cuda, int i, int *fdp)
{
    struct chunks *chunks = chunks_of(&cuda->arena.backing);
    int fd, rc = 0;

    if (!chunks->mapped[i])
        rc = chunk_map(chunks, i);
    if (rc == 0 && chunks->file[i] == 0) {
        rc = dtn_cuda_result(cuda, "cuMemExportToShareableHandle",
                             cuda->driver->cuMemExportToShareableHandle(
                                 &fd, chunks->handle[i],
                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                             "%zu bytes of %s", chunks->bytes, cuda->name);
        if (rc == 0)
            chunks->file[i] = fd + 1;
    }
    if (rc == 0)
        *fdp = chunks->file[i] - 1;
    return rc;
}

int dtn_cuda_arena_join(struct dtn_cuda *cuda, CUdeviceptr at, size_t bytes,
                        int fd)
{
    const struct dtn_cuda_driver *driver = cuda->driver;
    CUmemGenericAllocationHandle handle;
    int rc = dtn_cuda_result(cuda, "cuMemImportFromShareableHandle",
                             driver->cuMemImportFromShareableHandle(
                                 &handle, (void *)(uintptr_t)fd,
                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                             "%zu bytes of a peer", bytes);

    if (rc != 0)
        return rc;
    rc = dtn_cuda_result(cuda, "cuMemMap",
                         driver->cuMemMap(at, bytes, 0, handle, 0),
                         "%zu bytes of a peer", bytes);
    driver->cuMemRelease(handle);          /* the mapping keeps the memory    */
    if (rc != 0)
        return rc;
    rc = chunk_open(cuda, at, bytes);
    if (rc != 0)
        driver->cuMemUnmap(at, bytes);
    return rc;
}

static const struct dtn_backing_ops chunks_ops = {
    chunks_touch, chunks_release, chunks_close
};

/* ------------------------------------------------------------ opening --- */

static bool device_has(struct dtn_cuda *cuda, CUdevice_attribute attribute)
{
    int value = 0;

    return cuda->driver->cuDeviceGetAttribute(&value, attribute, cuda->device)
           == CUDA_SUCCESS && value != 0;
}

static CUmemAllocationProp chunks_prop(struct dtn_cuda *cuda)
{
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, cuda->number } };

    if (device_has(cuda,
            CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (device_has(cuda,
            CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED))
        prop.allocFlags.gpuDirectRDMACapable = 1;
    return prop;
}

/* The size of a chunk, and how many there are. */
static int chunks_size(struct chunks *chunks)
{
    struct dtn_cuda *cuda = chunks->cuda;
    size_t unit = 0, total = 0;
    int rc = dtn_cuda_result(cuda, "cuMemGetAllocationGranularity",
                             cuda->driver->cuMemGetAllocationGranularity(
                                 &unit, &chunks->prop,
                                 CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                             "%s", cuda->name);

    if (rc == 0)
        rc = dtn_cuda_result(cuda, "cuDeviceTotalMem",
                             cuda->driver->cuDeviceTotalMem(&total,
                                                            cuda->device),
                             "%s", cuda->name);
    if (rc != 0)
        return rc;
    chunks->bytes = (total / CHUNKS_MAX + unit) / unit * unit;
    chunks->n = (int)((total + chunks->bytes - 1) / chunks->bytes);
    return 0;
}

static int chunks_open(struct chunks *chunks)
{
    struct dtn_cuda *cuda = chunks->cuda;
    struct dtn_backing backing = { .ops = &chunks_ops, .fd = -1,
                                   .arg = chunks };
    CUdeviceptr base = 0;
    int rc = chunks_size(chunks);

    if (rc != 0)
        return rc;
    backing.size = (size_t)chunks->n * chunks->bytes;
    backing.page_bytes = DTN_CUDA_PAGE_BYTES;
    rc = dtn_cuda_result(cuda, "cuMemAddressReserve",
                         cuda->driver->cuMemAddressReserve(&base, backing.size,
                                                           0, 0, 0),
                         "%zu bytes for %s", backing.size, cuda->name);
    if (rc != 0)
        return rc;
    backing.base = (unsigned char *)base;
    return dtn_arena_init_on(&cuda->arena, &backing, &cuda->failure);
}

int dtn_cuda_arena_open(struct dtn_cuda *cuda, struct dtensor_error *err)
{
    struct chunks *chunks;
    char why[160];
    int rc;

    if (!dtn_cuda_can(cuda->driver, DTN_CUDA_ARENA, why, sizeof why))
        return dtn_fail(err, DTENSOR_ENODEV, "gpu: %s (install a newer driver)",
                        why);
    if (!device_has(cuda,
            CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
        return dtn_fail(err, DTENSOR_ENODEV, "gpu: %s has no virtual memory "
                        "management, which tensors need (keep them in host "
                        "memory: [mesh] memory = host)", cuda->name);
    chunks = calloc(1, sizeof *chunks);
    if (!chunks)
        return dtn_fail_nomem(err, "gpu", sizeof *chunks);
    chunks->cuda = cuda;
    chunks->prop = chunks_prop(cuda);
    rc = chunks_open(chunks);
    if (rc == 0)
        return 0;
    free(chunks);
    if (err)
        *err = cuda->failure;
    return rc;
}

/* kernels.c - loads the image of kernels, and launches them
 *
 * All kernels are loaded when the device is opened.  If a driver loads a kernel
 * at its first use, it waits until the device is idle.  That may never happen,
 * because the program's own kernels may wait for a peer.
 *
 * A launch has at most eight times as many blocks as the device can run at the
 * same time, 8448 on 132 multiprocessors.  Each thread continues with its next
 * unit of work.  With exactly as many blocks as the device can run, a kernel
 * that needs many registers would run its last blocks after the others, and
 * leave a part of the device idle meanwhile.
 */
#include "base/log.h"
#include "cuda/image.h"
#include "cuda/kernels.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static int kernel_find(struct dtn_cuda *cuda, int i)
{
    const struct dtn_cuda_driver *driver = cuda->driver;
    const char *name = dtn_kernels[i].name;
    CUkernel kernel;
    int rc = dtn_cuda_result(cuda, "cuLibraryGetKernel",
                             driver->cuLibraryGetKernel(&kernel, cuda->library,
                                                        name),
                             "%s", name);

    return rc != 0 ? rc
         : dtn_cuda_result(cuda, "cuKernelGetFunction",
                           driver->cuKernelGetFunction(&cuda->kernel[i],
                                                       kernel),
                           "%s", name);
}

static int kernels_load(struct dtn_cuda *cuda)
{
    int rc = dtn_cuda_result(cuda, "cuLibraryLoadData",
                             cuda->driver->cuLibraryLoadData(
                                 &cuda->library, dtn_cuda_image, NULL, NULL, 0,
                                 NULL, NULL, 0),
                             "%zu bytes of kernels", dtn_cuda_image_size);

    if (rc != 0)
        cuda->library = NULL;
    for (int i = 0; i < DTN_NKERNELS && rc == 0; i++)
        rc = kernel_find(cuda, i);
    return rc;
}

/* Eight times the blocks that the device could hold at the same time. */
static unsigned kernels_blocks(const struct dtn_cuda *cuda)
{
    const struct dtn_cuda_driver *driver = cuda->driver;
    int count = 0, threads = 0;

    driver->cuDeviceGetAttribute(&count,
                                 CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                 cuda->device);
    driver->cuDeviceGetAttribute(
        &threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
        cuda->device);
    threads /= DTN_KERNEL_THREADS;
    return count > 0 && threads > 0 ? 8 * (unsigned)count * (unsigned)threads
                                    : 1;
}

void dtn_cuda_kernels_open(struct dtn_cuda *cuda)
{
    char *why = cuda->no_kernels;

    cuda->most_blocks = kernels_blocks(cuda);
    if (dtn_cuda_image_size == 0)
        snprintf(why, sizeof cuda->no_kernels, "this build has none, because "
                 "configure found no nvcc that can make them");
    else if (dtn_cuda_can(cuda->driver, DTN_CUDA_KERNELS, why,
                          sizeof cuda->no_kernels)
             && kernels_load(cuda) != 0)
        snprintf(why, sizeof cuda->no_kernels, "%.199s", cuda->failure.text);
    if (!*why)
        return;
    dtn_cuda_kernels_close(cuda);
    dtn_log(cuda->log, DTN_LOG_INFO, "gpu: no kernels run on %s, so the CPU "
            "reduces and fills on copies: %s", cuda->name, why);
}

void dtn_cuda_kernels_close(struct dtn_cuda *cuda)
{
    if (cuda->room)
        cuda->driver->cuMemFree(cuda->room);
    if (cuda->library)
        cuda->driver->cuLibraryUnload(cuda->library);
    cuda->room = 0;
    cuda->library = NULL;
}

bool dtn_cuda_room(struct dtn_cuda *cuda)
{
    if (cuda->room == 0
        && dtn_cuda_result(cuda, "cuMemAlloc",
                           cuda->driver->cuMemAlloc(
                               &cuda->room, DTN_CUDA_SLOT_BYTES
                                            + DTN_CUDA_WORD_BYTES),
                           "%zu bytes for pieces", DTN_CUDA_SLOT_BYTES) != 0)
        cuda->room = 0;
    return cuda->room != 0;
}

int dtn_cuda_launch(struct dtn_cuda *cuda, struct dtn_launch *launch)
{
    const char *name = dtn_kernels[launch->kernel].name;
    const uint64_t blocks = (launch->threads + DTN_KERNEL_THREADS - 1)
                          / DTN_KERNEL_THREADS;
    void *args[] = { &launch->args };
    int rc;

    if (blocks == 0)
        return 0;
    rc = dtn_cuda_result(cuda, "cuLaunchKernel",
                         cuda->driver->cuLaunchKernel(
                             cuda->kernel[launch->kernel],
                             blocks < cuda->most_blocks ? (unsigned)blocks
                                                        : cuda->most_blocks,
                             1, 1, DTN_KERNEL_THREADS, 1, 1, 0, cuda->stream,
                             args, NULL),
                         "%s, stream %p of %s", name, (void *)cuda->stream,
                         cuda->name);
    dtn_cuda_given(cuda);
    cuda->running = name;
    return rc;
}

bool dtn_cuda_computes(const struct dtn_memory *memory)
{
    return dtn_cuda_of(memory)->library != NULL;
}

int dtn_cuda_launch_one(const struct dtn_memory *memory,
                        struct dtn_launch *launch)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    int rc = dtn_cuda_enter(cuda);

    if (rc != 0)
        return rc;
    rc = dtn_cuda_launch(cuda, launch);
    return dtn_cuda_end(cuda, rc != 0 ? rc : DTN_LAUNCHED);
}

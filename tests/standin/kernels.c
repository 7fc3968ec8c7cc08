/* kernels.c - kernels by name: their twins, which the C compiler made
 *
 * Machine code for a GPU is not looked into; the image must be a fat binary. A
 * launch copies the arguments and puts the blocks into the stream.  Pointers
 * stand first in the arguments.  Those into device memory are moved to the
 * alias; a twin that leaves its memory there meets a page without access.
 */
#include "tests/standin/standin.h"
#include "cuda/twin.h"

#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What a fat binary begins with, and the oldest device that ours are for. */
enum { FATBIN = 0xba55ed50, OLDEST_MAJOR = 8 };

static char loaded;               /* its address is a handle                  */
static _Atomic int launches;      /* of this process                          */

/* --------------------------------------------------------------- running -- */

/* Where this thread goes on when its kernel touches what it may not. */
static _Thread_local sigjmp_buf *guard;
static struct sigaction otherwise;

static void kernel_fault(int number)
{
    if (guard)
        siglongjmp(*guard, 1);
    sigaction(number, &otherwise, NULL);      /* happens again, not here      */
}

static void guard_begin(void)
{
    const struct sigaction action = { .sa_handler = kernel_fault,
                                      .sa_flags = SA_NODEFER };

    sigaction(SIGSEGV, &action, &otherwise);
}

static bool is_pinned(uint64_t at)
{
    bool is;

    pthread_mutex_lock(&standin_lock);
    is = standin_is_pinned(at, 1);
    pthread_mutex_unlock(&standin_lock);
    return is;
}

/* Move the pointers; NULL ones are not used. */
static CUresult pointers_move(const struct dtn_twin *twin, uint64_t *pointers)
{
    for (size_t i = 0; i < twin->pointers; i++) {
        if (pointers[i] == 0)
            continue;
        if (!standin_is_device(pointers[i]) && !is_pinned(pointers[i])) {
            standin_complain("%s: pointer %zu, %#llx: neither memory of a "
                             "device nor pinned", twin->name, i,
                             (unsigned long long)pointers[i]);
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        }
        pointers[i] = (uintptr_t)standin_reach(pointers[i], 1, twin->name);
        if (pointers[i] == 0)
            return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    return CUDA_SUCCESS;
}

static CUresult run_kernel(struct standin_task *task)
{
    const struct dtn_twin *twin = task->twin;
    CUresult rc = pointers_move(twin, (uint64_t *)(void *)task->bytes);
    sigjmp_buf here;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (sigsetjmp(here, 1) != 0) {
        guard = NULL;
        standin_complain("%s: left its memory", twin->name);
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    guard = &here;
    for (unsigned block = 0; block < task->flags; block++)
        twin->run(task->bytes, block, task->flags);
    guard = NULL;
    return CUDA_SUCCESS;
}

/* ----------------------------------------------------------------- calls -- */

static int device_major(void)
{
    int major = 0;

    standin_cuDeviceGetAttribute(&major,
                                 CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                 standin_current());
    return major;
}

CUresult standin_cuLibraryLoadData(CUlibrary *library, const void *image,
                                   CUjit_option *options, void **values,
                                   unsigned noptions,
                                   CUlibraryOption *library_options,
                                   void **library_values,
                                   unsigned nlibrary_options)
{
    CUresult rc = standin_enter_context("cuLibraryLoadData");
    uint32_t magic;

    if (rc != CUDA_SUCCESS)
        return rc;
    memcpy(&magic, image, sizeof magic);
    if (magic != FATBIN)
        return CUDA_ERROR_INVALID_IMAGE;
    if (device_major() < OLDEST_MAJOR)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    standin_count(STANDIN_LIBRARY, 1);
    *library = (CUlibrary)(void *)&loaded;
    return CUDA_SUCCESS;
}

CUresult standin_cuLibraryUnload(CUlibrary library)
{
    CUresult rc = standin_enter("cuLibraryUnload");

    if (rc == CUDA_SUCCESS)
        standin_count(STANDIN_LIBRARY, -1);
    return rc;
}

CUresult standin_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library,
                                    const char *name)
{
    CUresult rc = standin_enter("cuLibraryGetKernel");
    int i = 0;

    if (rc != CUDA_SUCCESS)
        return rc;
    while (i < DTN_NKERNELS && strcmp(dtn_twins[i].name, name) != 0)
        i++;
    if (i == DTN_NKERNELS) {
        standin_complain("cuLibraryGetKernel: %s: no such kernel", name);
        return CUDA_ERROR_NOT_FOUND;
    }
    *kernel = (CUkernel)(uintptr_t)&dtn_twins[i];
    return CUDA_SUCCESS;
}

CUresult standin_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    CUresult rc = standin_enter_context("cuKernelGetFunction");

    if (rc == CUDA_SUCCESS)
        *function = (CUfunction)(void *)kernel;
    return rc;
}

/* A task with a copy of the arguments.  False: not enough memory. */
static bool kernel_task(const struct dtn_twin *twin, const void *args,
                        unsigned blocks, struct standin_task *task)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, guard_begin);
    task->run = run_kernel;
    task->twin = twin;
    task->flags = blocks;
    task->nbytes = twin->args_bytes;
    task->bytes = malloc(task->nbytes);
    if (task->bytes)
        memcpy(task->bytes, args, task->nbytes);
    return task->bytes != NULL;
}

CUresult standin_cuLaunchKernel(CUfunction function, unsigned grid_x,
                                unsigned grid_y, unsigned grid_z,
                                unsigned block_x, unsigned block_y,
                                unsigned block_z, unsigned shared_bytes,
                                CUstream handle, void **params, void **extra)
{
    const struct dtn_twin *twin = (const void *)function;
    struct standin_task task = { .next = NULL };
    struct standin_stream *stream;
    CUresult rc = standin_enter_task("cuLaunchKernel", handle, &task, &stream);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_y != 1
        || block_x != DTN_KERNEL_THREADS || block_z != 1 || shared_bytes != 0
        || !params || extra) {
        standin_complain("cuLaunchKernel: %s: %u x %u x %u blocks of %u "
                         "threads: expected a row of blocks of %d",
                         twin->name, grid_x, grid_y, grid_z, block_x,
                         DTN_KERNEL_THREADS);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!kernel_task(twin, params[0], grid_x, &task))
        return CUDA_ERROR_OUT_OF_MEMORY;
    launches++;
    return standin_push(stream, &task, NULL);
}

int standin_launches(void)
{
    return launches;
}

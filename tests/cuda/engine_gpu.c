/* engine_gpu.c - launches on the GPU of this machine
 *
 * The arrays of the tests are memory of malloc().  A GPU reaches memory that is
 * registered with its driver, at the same addresses; so malloc() takes all of
 * it from one range, the heap, and what was added since the last launch is
 * registered before the next one.
 */
#include "base/log.h"
#include "device/cuda/cuda.h"
#include "device/memory.h"
#include "tests/cuda/engine.h"
#include "tests/support/standin.h"
#include "tests/support/tap.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct dtn_memory *gpu;
static uintptr_t registered;      /* the heap up to here; 0: none of it       */

bool engine_gpu_is_wanted(void)
{
    return getenv("DTN_TEST_GPU") != NULL;
}

__attribute__((constructor)) static void heap_only(void)
{
    if (!engine_gpu_is_wanted())
        return;
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT32_MAX);
    mallopt(M_TOP_PAD, 16 << 20);
}

static void end(const char *why)
{
    printf("Bail out! %s\n", why);
    exit(1);
}

/* Where the heap is, by the kernel's list of ranges. */
static void heap_find(uintptr_t *begin, uintptr_t *after)
{
    FILE *file = fopen("/proc/self/maps", "re");
    char line[400];

    *begin = *after = 0;
    while (file && fgets(line, sizeof line, file))
        if (strstr(line, "[heap]"))
            sscanf(line, "%" SCNxPTR "-%" SCNxPTR, begin, after);
    if (file)
        fclose(file);
}

static void heap_register(void)
{
    struct dtn_cuda *cuda = dtn_cuda_of(gpu);
    uintptr_t begin, after;
    CUresult result;

    if ((uintptr_t)sbrk(0) <= registered)
        return;
    heap_find(&begin, &after);
    begin = registered ? registered : begin;
    if (dtn_cuda_enter(cuda) != 0)
        end(gpu->ops->why(gpu));
    result = cuda->driver->cuMemHostRegister((void *)begin, after - begin,
                                             CU_MEMHOSTREGISTER_PORTABLE);
    if (dtn_cuda_result(cuda, "cuMemHostRegister", result, "%s", cuda->name))
        end(gpu->ops->why(gpu));
    dtn_cuda_leave(cuda);
    registered = after;
}

bool engine_gpu_is_here(const char *claim)
{
    static struct dtn_log log;
    const struct dtn_cuda_want want = {
        .local_size = 1, .host = "here", .timeout_ns = 60000000000,
        .log = &log
    };
    struct dtensor_error err;
    const char *why = gpu ? "" : standin_no_gpu();

    if (*why) {
        skip(claim, why);
        return false;
    }
    dtn_log_init(&log);
    if (!gpu && dtn_cuda_open(&want, &gpu, &err) != 0) {
        skip(claim, err.text);
        return false;
    }
    if (!gpu->ops->computes(gpu)) {
        skip(claim, dtn_cuda_of(gpu)->no_kernels);
        return false;
    }
    note("kernels run on %s%s", dtn_cuda_of(gpu)->name, standin_used()
         ? " (the stand-in, not a GPU)" : "");
    return true;
}

void engine_gpu_run(const struct dtn_launch *launch)
{
    struct dtn_launch copy = *launch;

    heap_register();
    if (dtn_memory_done(gpu, dtn_cuda_launch_one(gpu, &copy)) != 0)
        end(gpu->ops->why(gpu));
}

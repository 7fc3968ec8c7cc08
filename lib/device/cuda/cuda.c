/* cuda.c - the device of a rank
 *
 * `gpus = 0-3` lists the devices that the ranks of a host take in turn: with 8
 * ranks, local ranks 1 and 5 have device 1.  Two ranks of one device are
 * allowed; the device then runs their work by turns, and the log says so.
 */
#include "device/cuda/cuda.h"
#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "device/cuda/driver.h"
#include "device/memory.h"
#include "dtensor.h"

#include <stdlib.h>

/* ----------------------------------------------------------- choosing --- */

static int cuda_devices(const struct dtn_cuda_driver *driver,
                        const struct dtn_cuda_want *want, int *countp,
                        struct dtensor_error *err)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    CUresult result = driver->cuDeviceGetCount(countp);

    if (result != CUDA_SUCCESS)
        return dtn_cuda_fail(err, driver, "cuDeviceGetCount", result, "gpu");
    if (*countp > 0)
        return 0;
    return dtn_fail(err, DTENSOR_ENODEV, "gpu: the driver shows no GPU on %s "
                    "(CUDA_VISIBLE_DEVICES is %s; see nvidia-smi)", want->host,
                    visible ? visible : "not set");
}

/* The number of the device of a local rank, of `count`. */
static int cuda_number(const struct dtn_cuda_want *want, int count, int local)
{
    return want->ngpus > 0 ? want->gpus[local % want->ngpus] : local % count;
}

static int cuda_choose(const struct dtn_cuda_driver *driver,
                       const struct dtn_cuda_want *want, int *numberp,
                       int *countp, struct dtensor_error *err)
{
    int rc;

    if (want->ngpus < 0)
        return dtn_fail(err, DTENSOR_ENODEV, "gpu: [nodes] gpus = none, but "
                        "device memory is asked for on %s (name its GPUs, or "
                        "set [mesh] memory = host)", want->host);
    rc = cuda_devices(driver, want, countp, err);
    if (rc != 0)
        return rc;
    *numberp = cuda_number(want, *countp, want->local_rank);
    if (*numberp < *countp)
        return 0;
    return dtn_fail(err, DTENSOR_ENODEV, "gpu: [nodes] gpus names GPU %d, but "
                    "%s has %d: 0 to %d (see nvidia-smi, and "
                    "CUDA_VISIBLE_DEVICES)", *numberp, want->host, *countp,
                    *countp - 1);
}

/* ------------------------------------------------------------ opening --- */

static int cuda_queues(struct dtn_cuda *cuda)
{
    const struct dtn_cuda_driver *driver = cuda->driver;
    int rc = dtn_cuda_result(cuda, "cuStreamCreate",
                             driver->cuStreamCreate(&cuda->stream,
                                                    CU_STREAM_NON_BLOCKING),
                             "%s", cuda->name);

    for (int i = 0; i <= DTN_CUDA_SLOTS && rc == 0; i++)
        rc = dtn_cuda_result(cuda, "cuEventCreate",
                             driver->cuEventCreate(
                                 i < DTN_CUDA_SLOTS ? &cuda->moved[i]
                                                    : &cuda->end,
                                 CU_EVENT_DISABLE_TIMING),
                             "%s", cuda->name);
    return rc;
}

/* The context is retained: make everything that lives in it. */
static int cuda_fill(struct dtn_cuda *cuda, struct dtensor_error *err)
{
    int rc = dtn_cuda_enter(cuda);

    if (rc == 0) {
        rc = cuda_queues(cuda);
        if (rc == 0)
            rc = dtn_cuda_arena_open(cuda, &cuda->failure);
        if (rc == 0) {
            dtn_cuda_exporter_init(cuda);
            dtn_cuda_kernels_open(cuda);
        }
        dtn_cuda_leave(cuda);
    }
    if (rc != 0 && err)
        *err = cuda->failure;
    return rc;
}

static int cuda_device(struct dtn_cuda *cuda, struct dtensor_error *err)
{
    const struct dtn_cuda_driver *driver = cuda->driver;
    char name[64] = "";
    CUresult result = driver->cuDeviceGet(&cuda->device, cuda->number);

    if (result != CUDA_SUCCESS)
        return dtn_cuda_fail(err, driver, "cuDeviceGet", result, "gpu %d",
                             cuda->number);
    driver->cuDeviceGetName(name, sizeof name, cuda->device);
    snprintf(cuda->name, sizeof cuda->name, "GPU %d (%s)", cuda->number, name);
    result = driver->cuDevicePrimaryCtxRetain(&cuda->context, cuda->device);
    if (result == CUDA_SUCCESS)
        return 0;
    return dtn_cuda_fail(err, driver, "cuDevicePrimaryCtxRetain", result,
                         "%s", cuda->name);
}

/* Say which device it is, and who shares it. */
static void cuda_tell(const struct dtn_cuda *cuda,
                      const struct dtn_cuda_want *want, int count)
{
    int sharers = 0;
    char size[32];

    for (int i = 0; i < want->local_size; i++)
        sharers += cuda_number(want, count, i) == cuda->number;
    dtn_log(want->log, DTN_LOG_INFO, "gpu: %s, %s, driver of CUDA %d.%d",
            cuda->name,
            dtn_format_size(cuda->arena.backing.size, size, sizeof size),
            cuda->driver->version / 1000, cuda->driver->version % 1000 / 10);
    if (sharers > 1)
        dtn_log(want->log, DTN_LOG_INFO, "gpu: %d ranks of %s share %s, which "
                "does their work by turns", sharers, want->host, cuda->name);
}

int dtn_cuda_open(const struct dtn_cuda_want *want,
                  struct dtn_memory **memoryp, struct dtensor_error *err)
{
    const struct dtn_cuda_driver *driver;
    struct dtn_cuda *cuda;
    int rc = dtn_cuda_driver_load(&driver, err), number = 0, count = 0;

    if (rc == 0)
        rc = cuda_choose(driver, want, &number, &count, err);
    if (rc != 0)
        return rc;
    cuda = calloc(1, sizeof *cuda);
    if (!cuda)
        return dtn_fail_nomem(err, "gpu", sizeof *cuda);
    *cuda = (struct dtn_cuda){ .driver = driver, .number = number,
        .log = want->log, .timeout_ns = want->timeout_ns,
        .arena = DTN_ARENA_NONE,
        .memory = { .ops = &dtn_cuda_ops, .arena = &cuda->arena,
                    .exporter = &cuda->exporter } };
    rc = cuda_device(cuda, err);
    if (rc != 0) {
        free(cuda);
        return rc;
    }
    rc = cuda_fill(cuda, err);
    if (rc != 0) {
        cuda->memory.ops->close(&cuda->memory);
        return rc;
    }
    cuda_tell(cuda, want, count);
    *memoryp = &cuda->memory;
    return 0;
}

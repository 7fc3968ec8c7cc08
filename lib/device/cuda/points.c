/* points.c - points in the stream, with the time on the device
 *
 * A point is a CUDA event with a time: the device records the time when it
 * reaches the event.  When it has reached two, the driver returns the time
 * between them, with a resolution of half a microsecond.
 */
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "dtensor.h"

static CUevent event_of(struct dtn_point *point)
{
    return (CUevent)(void *)point;
}

static int point_create(const struct dtn_memory *memory,
                        struct dtn_point **pointp)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    CUevent event = NULL;
    int rc = dtn_cuda_enter(cuda);

    if (rc != 0)
        return rc;
    rc = dtn_cuda_result(cuda, "cuEventCreate",
                         cuda->driver->cuEventCreate(&event, CU_EVENT_DEFAULT),
                         "%s", cuda->name);
    dtn_cuda_leave(cuda);
    if (rc == 0)
        *pointp = (struct dtn_point *)(void *)event;
    return rc;
}

static int point_note(const struct dtn_memory *memory,
                      struct dtn_point *point)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    int rc = dtn_cuda_enter(cuda);

    if (rc != 0)
        return rc;
    rc = dtn_cuda_result(cuda, "cuEventRecord",
                         cuda->driver->cuEventRecord(event_of(point),
                                                     cuda->stream),
                         "stream %p of %s", (void *)cuda->stream, cuda->name);
    cuda->launched |= rc == 0;                   /* settle() waits for it     */
    return dtn_cuda_end(cuda, rc);
}

static int point_between(const struct dtn_memory *memory,
                         struct dtn_point *from, struct dtn_point *to,
                         int64_t *nsp)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    float ms;
    CUresult result;
    int rc = dtn_cuda_enter(cuda);

    if (rc != 0)
        return rc;
    result = cuda->driver->cuEventElapsedTime(&ms, event_of(from),
                                              event_of(to));
    dtn_cuda_leave(cuda);
    if (result == CUDA_ERROR_NOT_READY)
        return DTENSOR_EAGAIN;
    rc = dtn_cuda_result(cuda, "cuEventElapsedTime", result, "%s", cuda->name);
    if (rc == 0)
        *nsp = (int64_t)((double)ms * 1e6);
    return rc;
}

static void point_destroy(const struct dtn_memory *memory,
                          struct dtn_point *point)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);

    if (dtn_cuda_enter(cuda) != 0)
        return;
    cuda->driver->cuEventDestroy(event_of(point));
    dtn_cuda_leave(cuda);
}

const struct dtn_clock dtn_cuda_clock = { point_create, point_note,
                                          point_between, point_destroy };

/* failure.c - errors of the CUDA driver in words */
#include "device/cuda/driver.h"
#include "base/error.h"
#include "device/cuda/calls.h"
#include "dtensor.h"

#include <stdarg.h>
#include <stdio.h>

/* After these the context of the device is lost, with all its memory. */
bool dtn_cuda_sticky(CUresult rc)
{
    switch (rc) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_UNKNOWN:
        return true;
    default:
        return rc >= CUDA_ERROR_HARDWARE_STACK_ERROR
            && rc <= CUDA_ERROR_LAUNCH_FAILED;
    }
}

/* The code of the library for an error of the driver. */
static int failure_code(CUresult rc)
{
    switch (rc) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return DTENSOR_ENOMEM;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NOT_PERMITTED:
        return DTENSOR_ENODEV;
    default:
        return DTENSOR_ESYS;
    }
}

int dtn_cuda_fail(struct dtensor_error *err,
                  const struct dtn_cuda_driver *driver, const char *call,
                  CUresult rc, const char *fmt, ...)
{
    const char *name = NULL, *text = NULL;
    char what[300], number[32];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    snprintf(number, sizeof number, "error %d", rc);
    if (driver->cuGetErrorName(rc, &name) != CUDA_SUCCESS || !name)
        name = number;
    if (driver->cuGetErrorString(rc, &text) != CUDA_SUCCESS || !text)
        text = "an error that the driver does not describe";
    return dtn_fail(err, failure_code(rc), "%s: %s: %s (%s)", what, call, text,
                    name);
}

/* devices.c - devices, their primary contexts, and the version of the driver
 *
 * A thread has a stack of contexts, the last of which is current.  A process
 * that forks after cuInit() leaves its child a driver that does not work, as
 * the real one does.
 */
#include "tests/standin/standin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH_MAX = 16 };

struct CUctx_st {
    _Atomic int retained;
};

static struct CUctx_st contexts[STANDIN_DEVICES_MAX];
static _Atomic enum {
    NOBODY, SELF, PARENT
} owner;                          /* who called cuInit()                      */
static int ndevices;
static _Thread_local CUcontext stack[DEPTH_MAX];
static _Thread_local int depth;

int standin_version(void)
{
    return (int)standin_number("DTN_STANDIN_VERSION", STANDIN_VERSION);
}

bool standin_initialised(void)
{
    return owner == SELF;
}

bool standin_device_exists(CUdevice device)
{
    return device >= 0 && device < ndevices;
}

size_t standin_device_bytes(void)
{
    return standin_number("DTN_STANDIN_MEMORY", (size_t)16 << 30);
}

int standin_current(void)
{
    return depth > 0 ? (int)(stack[depth - 1] - contexts) : -1;
}

CUcontext standin_context(int device)
{
    return &contexts[device];
}

static void owner_forked(void)
{
    if (owner == SELF)
        owner = PARENT;
}

/* Asking for the process id in each call took a tenth of some tests. */
__attribute__((constructor)) static void owner_watch(void)
{
    pthread_atfork(NULL, NULL, owner_forked);
}

CUresult standin_cuInit(unsigned flags)
{
    unsigned long n = standin_number("DTN_STANDIN_DEVICES", 1);
    CUresult rc;

    if (owner == PARENT)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (owner == NOBODY) {
        ndevices = n > STANDIN_DEVICES_MAX ? STANDIN_DEVICES_MAX : (int)n;
        owner = SELF;
    }
    rc = standin_enter("cuInit");
    if (rc == CUDA_SUCCESS && flags != 0)
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS && ndevices == 0)
        rc = CUDA_ERROR_NO_DEVICE;
    if (rc != CUDA_SUCCESS)
        owner = NOBODY;
    return rc;
}

CUresult standin_cuDriverGetVersion(int *version)
{
    *version = standin_version();
    return CUDA_SUCCESS;
}

#define DEVICES_NAME(name, value) { #name, value },
static const struct {
    const char *name;
    int value;
} names[] = { DTN_CUDA_NUMBERS(DEVICES_NAME) };
#undef DEVICES_NAME

/* Errors are the numbers up to CUDA_ERROR_UNKNOWN. */
CUresult standin_cuGetErrorName(CUresult rc, const char **name)
{
    int n = 0;

    do {
        if (names[n].value == rc) {
            *name = names[n].name;
            return CUDA_SUCCESS;
        }
    } while (names[n++].value != CUDA_ERROR_UNKNOWN);
    *name = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult standin_cuGetErrorString(CUresult rc, const char **text)
{
    static const struct {
        CUresult rc;
        const char *text;
    } texts[] = {
        { CUDA_ERROR_OUT_OF_MEMORY, "out of memory" },
        { CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected" },
        { CUDA_ERROR_ILLEGAL_ADDRESS,
          "an illegal memory access was encountered" },
        { CUDA_ERROR_NOT_SUPPORTED, "operation not supported" },
    };
    CUresult known = standin_cuGetErrorName(rc, text);

    for (size_t i = 0; i < DTN_COUNT(texts); i++)
        if (texts[i].rc == rc)
            *text = texts[i].text;
    return known;
}

CUresult standin_cuDeviceGetCount(int *count)
{
    CUresult rc = standin_enter("cuDeviceGetCount");

    if (rc == CUDA_SUCCESS)
        *count = ndevices;
    return rc;
}

/* For calls that take a device. */
static CUresult enter_device(const char *call, CUdevice device)
{
    CUresult rc = standin_enter(call);

    if (rc == CUDA_SUCCESS && !standin_device_exists(device))
        rc = CUDA_ERROR_INVALID_DEVICE;
    return rc;
}

CUresult standin_cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult rc = enter_device("cuDeviceGet", ordinal);

    if (rc == CUDA_SUCCESS)
        *device = ordinal;
    return rc;
}

CUresult standin_cuDeviceGetName(char *name, int size, CUdevice device)
{
    CUresult rc = enter_device("cuDeviceGetName", device);

    if (rc == CUDA_SUCCESS)
        snprintf(name, (size_t)size, "Stand-in %d", device);
    return rc;
}

CUresult standin_cuDeviceGetPCIBusId(char *text, int size, CUdevice device)
{
    CUresult rc = enter_device("cuDeviceGetPCIBusId", device);

    if (rc == CUDA_SUCCESS)
        snprintf(text, (size_t)size, "0000:%02X:00.0", 0x1a + device);
    return rc;
}

CUresult standin_cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    CUresult rc = enter_device("cuDeviceGetUuid", device);

    if (rc == CUDA_SUCCESS) {
        memcpy(uuid->bytes, "stand-in driver", sizeof uuid->bytes);
        uuid->bytes[15] = (char)device;
    }
    return rc;
}

CUresult standin_cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    CUresult rc = enter_device("cuDeviceTotalMem", device);

    if (rc == CUDA_SUCCESS)
        *bytes = standin_device_bytes();
    return rc;
}

/* Attributes that are not 0, as of an H100. */
static int attribute_value(CUdevice_attribute attribute)
{
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return 9;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return 132;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        return 2048;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
        return 1;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING:
        return CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER;
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
        return access("/dev/udmabuf", R_OK | W_OK) == 0;
    default:
        return 0;
    }
}

CUresult standin_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                                      CUdevice device)
{
    const char *at = getenv("DTN_STANDIN_ATTRIBUTES");
    CUresult rc = enter_device("cuDeviceGetAttribute", device);
    int number, wanted;

    if (rc != CUDA_SUCCESS)
        return rc;
    *value = attribute_value(attribute);
    for (; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (sscanf(at, "%d=%d", &number, &wanted) == 2 && number == attribute)
            *value = wanted;
    }
    return CUDA_SUCCESS;
}

CUresult standin_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult rc = enter_device("cuDevicePrimaryCtxRetain", device);

    if (rc != CUDA_SUCCESS)
        return rc;
    contexts[device].retained++;
    standin_count(STANDIN_CONTEXT, 1);
    *context = &contexts[device];
    return CUDA_SUCCESS;
}

CUresult standin_cuDevicePrimaryCtxRelease(CUdevice device)
{
    CUresult rc = enter_device("cuDevicePrimaryCtxRelease", device);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (contexts[device].retained == 0) {
        standin_complain("cuDevicePrimaryCtxRelease: device %d: released more "
                         "often than retained", device);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    contexts[device].retained--;
    standin_count(STANDIN_CONTEXT, -1);
    return CUDA_SUCCESS;
}

CUresult standin_cuCtxGetCurrent(CUcontext *context)
{
    CUresult rc = standin_enter("cuCtxGetCurrent");

    if (rc == CUDA_SUCCESS)
        *context = depth > 0 ? stack[depth - 1] : NULL;
    return rc;
}

CUresult standin_cuCtxPushCurrent(CUcontext context)
{
    CUresult rc = standin_enter("cuCtxPushCurrent");

    if (rc != CUDA_SUCCESS)
        return rc;
    if (!context || depth == DEPTH_MAX || context->retained == 0) {
        standin_complain("cuCtxPushCurrent: %s", !context ? "no context"
                         : depth == DEPTH_MAX ? "too many contexts"
                                              : "a context that was released");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult standin_cuCtxPopCurrent(CUcontext *context)
{
    CUresult rc = depth > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;

    if (rc == CUDA_SUCCESS) {
        depth--;
        if (context)
            *context = stack[depth];
    }
    return rc;
}

/* driver.c - finding the CUDA driver
 *
 * A program that links libcuda.so.1 does not start on a machine without an
 * NVIDIA driver.  So the driver is opened by dlopen(), and every call is asked
 * for by name and version: cuMemAlloc of CUDA 3.2 is the same function in a
 * driver of 2021 and in one of 2030.
 */
#include "device/cuda/driver.h"
#include "base/error.h"
#include "device/cuda/calls.h"
#include "dtensor.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* cuGetProcAddress() of CUDA 11.3, and of CUDA 12.0, which says why not. */
typedef CUresult proc_first_f(const char *name, void **fn, int version,
                              cuuint64_t flags);
typedef CUresult proc_f(const char *name, void **fn, int version,
                        cuuint64_t flags, int *why);

/* The driver as an open library. */
struct library {
    void *handle;
    proc_first_f *proc_first;     /* one of these two is not NULL             */
    proc_f *proc;
};

/* The process has one driver. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct dtn_cuda_driver loaded;
static pid_t loaded_by;           /* 0: nobody                                */
static struct dtn_cuda_driver seen;        /* that the program has loaded     */
static bool was_seen;             /* it is filled in                          */
static _Atomic unsigned long long loads_without; /* loads of the process when */
                                  /* the driver was not among them            */

static int library_open(struct library *library, int flags,
                        struct dtensor_error *err)
{
    CUresult (*version)(int *);
    int v = 0;

    library->handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | flags);
    if (!library->handle)
        return dtn_fail(err, DTENSOR_ENODEV, "CUDA: no driver: %s (install the "
                        "NVIDIA driver; in a container, pass the GPUs through)",
                        dlerror());
    *(void **)&library->proc = dlsym(library->handle, "cuGetProcAddress_v2");
    *(void **)&library->proc_first = dlsym(library->handle,
                                           "cuGetProcAddress");
    if (library->proc || library->proc_first)
        return 0;
    *(void **)&version = dlsym(library->handle, "cuDriverGetVersion");
    if (!version || version(&v) != CUDA_SUCCESS)
        v = 0;
    dlclose(library->handle);
    return dtn_fail(err, DTENSOR_ENODEV, "CUDA: the driver can do CUDA %d.%d; "
                    "expected %d.%d or newer (install a newer NVIDIA driver)",
                    v / 1000, v % 1000 / 10, DTN_CUDA_OLDEST / 1000,
                    DTN_CUDA_OLDEST % 1000 / 10);
}

/* The call of that name as CUDA `since` introduced it, or NULL. */
static void *library_call(const struct library *library, const char *name,
                          int since)
{
    int why = CU_GET_PROC_ADDRESS_SUCCESS;
    void *fn = NULL;
    CUresult rc = library->proc
        ? library->proc(name, &fn, since, CU_GET_PROC_ADDRESS_DEFAULT, &why)
        : library->proc_first(name, &fn, since, CU_GET_PROC_ADDRESS_DEFAULT);

    return rc == CUDA_SUCCESS && why == CU_GET_PROC_ADDRESS_SUCCESS ? fn : NULL;
}

/* Fill in all calls, and the first that is missing for each skill. */
static void driver_fill(struct dtn_cuda_driver *driver,
                        const struct library *library)
{
    struct dtn_cuda_lack *lack;

    memset(driver, 0, sizeof *driver);
#define DRIVER_CALL(name, since, skill, params)                               \
    *(void **)&driver->name = library_call(library, #name, since);            \
    lack = &driver->lacks[DTN_CUDA_##skill];                                  \
    if (!driver->name && !lack->call)                                         \
        *lack = (struct dtn_cuda_lack){ #name, since };
    DTN_CUDA_CALLS(DRIVER_CALL)
#undef DRIVER_CALL
    if (driver->cuDriverGetVersion)
        driver->cuDriverGetVersion(&driver->version);
}

bool dtn_cuda_can(const struct dtn_cuda_driver *driver,
                  enum dtn_cuda_skill skill, char *why, size_t size)
{
    const struct dtn_cuda_lack *lack = &driver->lacks[skill];

    if (lack->call && why)
        snprintf(why, size, "the driver (CUDA %d.%d) has no %s (CUDA %d.%d)",
                 driver->version / 1000, driver->version % 1000 / 10,
                 lack->call, lack->since / 1000, lack->since % 1000 / 10);
    return !lack->call;
}

/* What to do about an error of cuInit(). */
static const char *init_remedy(CUresult rc)
{
    switch (rc) {
    case CUDA_ERROR_NO_DEVICE:
        return "see nvidia-smi -L and CUDA_VISIBLE_DEVICES; in a container, "
               "pass the GPUs through";
    case CUDA_ERROR_STUB_LIBRARY:
        return "this libcuda.so.1 is the toolkit's stub: take it out of "
               "LD_LIBRARY_PATH";
    case CUDA_ERROR_SYSTEM_NOT_READY:
        return "is nvidia-fabricmanager running?";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return "libcuda and the kernel module are of two versions: see cat "
               "/proc/driver/nvidia/version, then reload the module or reboot";
    case CUDA_ERROR_NOT_INITIALIZED:
        return "CUDA was used before fork(): start ranks as new programs";
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return "take the forward compatibility libraries out of "
               "LD_LIBRARY_PATH";
    default:
        return "see nvidia-smi and dmesg | grep NVRM";
    }
}

static int driver_open(struct dtn_cuda_driver *driver,
                       struct dtensor_error *err)
{
    struct library library = { NULL, NULL, NULL };
    char why[120];
    CUresult rc;

    rc = library_open(&library, 0, err);
    if (rc != 0)
        return rc;
    driver_fill(driver, &library);
    if (!dtn_cuda_can(driver, DTN_CUDA_BASE, why, sizeof why)) {
        dlclose(library.handle);
        return dtn_fail(err, DTENSOR_ENODEV, "CUDA: %s (install a newer NVIDIA "
                        "driver)", why);
    }
    rc = driver->cuInit(0);
    if (rc == CUDA_SUCCESS)
        return 0;
    dtn_cuda_fail(err, driver, "cuInit", rc, "CUDA");
    return dtn_fail(err, DTENSOR_ENODEV, "%s (%s)", err ? err->text : "",
                    init_remedy(rc));
}

int dtn_cuda_driver_load(const struct dtn_cuda_driver **driverp,
                         struct dtensor_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&lock);
    if (loaded_by != 0 && loaded_by != getpid())
        rc = dtn_fail(err, DTENSOR_ENODEV, "CUDA: the driver was initialised "
                      "before fork() (start ranks as new programs)");
    if (loaded_by == 0)
        rc = driver_open(&loaded, err);
    if (rc == 0) {
        loaded_by = getpid();
        *driverp = &loaded;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

static int loads_of(struct dl_phdr_info *info, size_t size, void *arg)
{
    *(unsigned long long *)arg = info->dlpi_adds;
    return 1;                     /* every object has the same number         */
}

/* To look for a library that is not loaded, dlopen() searches all folders. */
bool dtn_cuda_driver_is_loaded(void)
{
    unsigned long long loads = 0;
    void *handle;

    dl_iterate_phdr(loads_of, &loads);
    if (loads != 0 && loads == loads_without)
        return false;
    handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (handle)
        dlclose(handle);
    else
        loads_without = loads;
    return handle != NULL;
}

const struct dtn_cuda_driver *dtn_cuda_driver_seen(void)
{
    struct library library = { NULL, NULL, NULL };
    const struct dtn_cuda_driver *driver = NULL;

    pthread_mutex_lock(&lock);
    if (!was_seen && library_open(&library, RTLD_NOLOAD, NULL) == 0) {
        driver_fill(&seen, &library);
        was_seen = true;
    }
    if (was_seen && dtn_cuda_can(&seen, DTN_CUDA_BASE, NULL, 0))
        driver = &seen;
    pthread_mutex_unlock(&lock);
    return driver;
}

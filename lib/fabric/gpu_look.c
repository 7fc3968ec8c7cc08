/* gpu_look.c - the report of one rank on its GPU
 *
 * It has what the driver reports about the device, and what the kernel reports
 * about the driver and the machine.  No CUDA context is created, so this takes
 * no device memory.
 */
#include "device/cuda/driver.h"
#include "fabric/gpu.h"
#include "dtensor.h"

#include <ctype.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Read at most size - 1 bytes of a file: "" if it cannot be read. */
static void file_text(const char *root, const char *name, char *text,
                      size_t size)
{
    char path[PATH_MAX];
    size_t n = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s%s", root, name);
    file = fopen(path, "re");
    if (file) {
        n = fread(text, 1, size - 1, file);
        fclose(file);
    }
    text[n] = '\0';
}

static bool file_exists(const char *root, const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s%s", root, name);
    return access(path, F_OK) == 0;
}

static int kernel_version(void)
{
    struct utsname name;
    int major = 0, minor = 0;

    if (uname(&name) == 0)
        sscanf(name.release, "%d.%d", &major, &minor);
    return major * 1000 + minor;
}

/* What the kernel says. */
static void look_kernel(const char *root, struct dtn_gpu_report *report)
{
    char text[300];
    struct stat st;

    file_text(root, "/proc/driver/nvidia/version", text, sizeof text);
    report->modules = !text[0] ? DTN_MODULES_UNKNOWN
        : strstr(text, "Open Kernel Module") ? DTN_MODULES_OPEN
                                             : DTN_MODULES_CLOSED;
    report->peermem = file_exists(root, "/sys/module/nvidia_peermem")
        || file_exists(root, "/sys/kernel/mm/memory_peers/nv_mem");
    file_text(root, "/proc/sys/kernel/yama/ptrace_scope", text, sizeof text);
    report->scope = geteuid() != 0 || atoi(text) == 3 ? atoi(text) : 0;
    report->kernel = kernel_version();
    report->rdma_core = dlsym(RTLD_DEFAULT, "ibv_reg_dmabuf_mr") != NULL;
    if (stat("/proc/self/ns/pid", &st) == 0)
        report->pid_namespace = st.st_ino;
    file_text("", "/proc/sys/kernel/random/boot_id", report->boot,
              sizeof report->boot);
    report->boot[strcspn(report->boot, "\n")] = '\0';
}

static int attribute(const struct dtn_cuda_driver *driver, CUdevice device,
                     CUdevice_attribute which)
{
    int value = 0;

    return driver->cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS
        ? value : 0;
}

/* What the driver says of the device. */
static void look_device(const struct dtn_cuda_driver *driver, CUdevice device,
                        struct dtn_gpu_report *report)
{
    size_t bytes = 0;
    CUuuid uuid;

    report->version = driver->version;
    driver->cuDeviceGetName(report->name, sizeof report->name, device);
    driver->cuDeviceGetPCIBusId(report->bus, sizeof report->bus, device);
    for (char *p = report->bus; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    if (driver->cuDeviceTotalMem(&bytes, device) == CUDA_SUCCESS)
        report->memory = bytes;
    if (driver->cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS)
        memcpy(report->uuid, uuid.bytes, sizeof report->uuid);
    report->dmabuf = dtn_cuda_can(driver, DTN_CUDA_DMABUF, NULL, 0)
        && attribute(driver, device, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
    report->shares = dtn_cuda_can(driver, DTN_CUDA_ARENA, NULL, 0)
        && attribute(driver, device,
            CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
    report->rdma = attribute(driver, device,
                             CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
    report->ordering = attribute(
        driver, device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
}

/* The device of the rank.  False: `why` says what is in the way. */
static bool look_find(const struct dtn_gpu_want *want,
                      struct dtn_gpu_report *report)
{
    const struct dtn_cuda_driver *driver;
    struct dtensor_error err = { .code = DTENSOR_ENODEV };
    CUdevice device;
    CUresult rc;
    int count = 0;

    if (dtn_cuda_driver_load(&driver, &err) == 0) {
        rc = driver->cuDeviceGetCount(&count);
        report->number = want->number >= 0 ? want->number
            : count > 0 ? want->local_rank % count : 0;
        if (rc == CUDA_SUCCESS)
            rc = driver->cuDeviceGet(&device, report->number);
        if (rc == CUDA_SUCCESS) {
            look_device(driver, device, report);
            return true;
        }
        dtn_cuda_fail(&err, driver, "cuDeviceGet", rc, "GPU %d of %d",
                      report->number, count);
    }
    report->code = err.code;
    snprintf(report->why, sizeof report->why, "%.299s", err.text);
    return false;
}

void dtn_gpu_look(const struct dtn_gpu_want *want,
                  struct dtn_gpu_report *report)
{
    memset(report, 0, sizeof *report);
    report->wanted = want->wanted;
    report->inside = want->inside;
    report->between = want->between;
    report->required = want->required;
    snprintf(report->nic, sizeof report->nic, "%.*s",
             (int)strcspn(want->nic, ":"), want->nic);
    if (!look_find(want, report))
        return;
    look_kernel(want->root, report);
    dtn_gpu_pci(want->root, report);
}

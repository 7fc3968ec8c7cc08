/* standin.c - how a test gets the stand-in for libcuda.so.1
 *
 * dlopen() looks at LD_LIBRARY_PATH as it was when the program started.
 */
#include "cuda/image.h"
#include "device/cuda/driver.h"
#include "dtensor.h"
#include "tests/support/standin.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

const char *standin_folder(const char *which)
{
    static char folder[500];

    snprintf(folder, sizeof folder, "%s/%s%s.libs", STANDIN_FOLDER, which,
             *which ? "/" : "");
    return folder;
}

/* A child asks: after fork() a driver that was initialised does not work. */
const char *standin_no_gpu(void)
{
    static char text[600];
    const struct dtn_cuda_driver *driver;
    struct dtensor_error err = { .text = "" };
    int end[2], count = 0;
    ssize_t n = -1;

    if (pipe(end) < 0)
        return "not measured: no pipe";
    if (fork() == 0) {
        if (dtn_cuda_driver_load(&driver, &err) == 0
            && (driver->cuDeviceGetCount(&count) != 0 || count == 0))
            strcpy(err.text, "the driver shows none");
        n = write(end[1], err.text, strlen(err.text) + 1);
        _exit(n < 0);
    }
    close(end[1]);
    n = read(end[0], err.text, sizeof err.text);
    close(end[0]);
    wait(NULL);
    snprintf(text, sizeof text, "not measured: no GPU (%s)", n > 0 ? err.text
             : "the driver ended the process");
    return n > 0 && !err.text[0] ? "" : text;
}

/* Also if it was put into LD_LIBRARY_PATH in place of the machine's driver. */
bool standin_used(void)
{
    static int used = -1;
    void *driver;

    if (used < 0) {
        used = !getenv("DTN_TEST_GPU");
        driver = used ? NULL : dlopen("libcuda.so.1", RTLD_NOW);
        if (driver) {
            used = dlsym(driver, "dtn_standin_launches") != NULL;
            dlclose(driver);
        }
    }
    return used;
}

const char *standin_use(void)
{
    const char *path = getenv("LD_LIBRARY_PATH"), *folder = standin_folder("");
    char *const argv[] = { program_invocation_name, NULL };
    char file[600], longer[4096];

    snprintf(file, sizeof file, "%s/libcuda.so.1", folder);
    if (getenv("DTN_TEST_GPU")
        || (path && strncmp(path, folder, strlen(folder)) == 0))
        return NULL;
    if (access(file, R_OK) < 0)
        return "the stand-in was not built (make check builds it; shared "
               "libraries are needed)";
    snprintf(longer, sizeof longer, "%s%s%s", folder, path ? ":" : "",
             path ? path : "");
    setenv("LD_LIBRARY_PATH", longer, 1);
    setenv("DTN_CUBLAS", "none", 0);
    execv("/proc/self/exe", argv);
    return "execv";
}

bool standin_maps(void)
{
    const pid_t parent = getpid(), child = fork();
    int status = 1, pidfd;

    if (child == 0) {
        pidfd = (int)syscall(SYS_pidfd_open, parent, 0);
        _exit(pidfd < 0 || syscall(SYS_pidfd_getfd, pidfd, 1, 0) < 0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

const char *standin_use_signals(void)
{
    const char *why = standin_use();

    return why ? why
         : dtn_cuda_image_size == 0 ? "this build has no kernels"
         : !standin_maps() ? "pidfd_getfd() is not allowed here" : NULL;
}

int standin_launched(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int (*launches)(void) = NULL;
    int n;

    if (driver)
        *(void **)&launches = dlsym(driver, "dtn_standin_launches");
    n = launches ? launches() : 0;
    if (driver)
        dlclose(driver);
    return n;
}

unsigned long standin_called(const char *call)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    unsigned long (*made)(const char *call) = NULL;
    unsigned long n;

    if (driver)
        *(void **)&made = dlsym(driver, "dtn_standin_made");
    n = made ? made(call) : 0;
    if (driver)
        dlclose(driver);
    return n;
}

int standin_left(char *text, size_t size)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int (*left)(char *text, size_t size) = NULL;
    int n;

    text[0] = '\0';
    if (driver)
        *(void **)&left = dlsym(driver, "dtn_standin_left");
    n = left ? left(text, size) : 0;
    if (driver)
        dlclose(driver);
    return n;
}

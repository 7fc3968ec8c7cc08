/* suite.c - suites of other rooms on the device memory of a driver
 *
 * The driver is the one in tests/standin, or that of a real GPU.  No CPU may
 * access its memory: a load or store inside the library is a SIGSEGV, whose
 * stack is printed.  Between calls the memory opens where the test accesses it.
 * With DTN_TEST_MUTANT=settle nobody waits for operations, as in a library that
 * forgot to: a suite has to fail.
 */
#include "tests/device/suite.h"
#include "device/cuda/cuda.h"
#include "device/memory.h"
#include "job/ctx.h"
#include "tests/device/window.h"
#include "tests/support/ranks.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int depth;                 /* of calls of the library                  */

/* Of tests/standin/window.c, or of window.c here, for a real GPU. */
static struct {
    int (*open)(const void *mem);
    void (*shut)(void);
} opener;

/* The memory of the driver's device opens where a test touches it.  Else say
 * who touched the window, and end.
 */
static void window_fault(int number, siginfo_t *info, void *context)
{
    void *frames[20];
    int n;

    if (depth == 0 && opener.open && opener.open(info->si_addr))
        return;
    n = backtrace(frames, 20);
    if (opener.open && depth > 0)
        backtrace_symbols_fd(frames, n, STDERR_FILENO);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

/* A settle() that was forgotten. */
static int settle_forgets(const struct dtn_memory *memory, bool waits)
{
    return 0;
}

/* The device of the driver. */
static int device_open(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    static struct dtn_memory_ops mutant;
    const char *which = getenv("DTN_TEST_MUTANT");
    void *driver;
    int rc = dtn_ctx_open_device(ctx, err);

    if (rc != 0)
        return rc;
    if (which && strcmp(which, "settle") == 0) {
        mutant = *ctx->device->ops;
        mutant.settle = settle_forgets;
        ctx->device->ops = &mutant;
    }
    driver = getenv("DTN_TEST_GPU")
           ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (driver) {
        *(void **)&opener.open = dlsym(driver, "dtn_standin_open");
        *(void **)&opener.shut = dlsym(driver, "dtn_standin_shut");
    }
    if (!opener.open || !opener.shut) {
        opener.open = window_open;
        opener.shut = window_shut;
        window_of(dtn_cuda_of(ctx->device));
    }
    return 0;
}

/* dtensor_init(); where the suite has no file, over DTN_TEST_WIRE if set. */
static int init_over(const char *path, struct dtensor_ctx **ctxp,
                     struct dtensor_error *err)
{
    const char *wire = getenv("DTN_TEST_WIRE");
    const char *size = getenv("DTN_WORLD_SIZE");
    char file[64];
    int rc;

    if (path || !wire || !size || getenv("DTN_CLUSTER"))
        return (dtensor_init)(path, ctxp, err);
    snprintf(file, sizeof file, "%s", ranks_file(wire, atoi(size), NULL));
    rc = (dtensor_init)(file, ctxp, err);
    remove(file);
    return rc;
}

int suite_init(const char *path, struct dtensor_ctx **ctxp,
               struct dtensor_error *err)
{
    const struct sigaction act = { .sa_sigaction = window_fault,
                                   .sa_flags = SA_SIGINFO };
    int rc = init_over(path, ctxp, err);

    if (rc == 0)
        rc = device_open(*ctxp, err);
    if (rc != 0)
        return rc;
    dtn_ctx_place(*ctxp, (*ctxp)->device);
    sigaction(SIGSEGV, &act, NULL);
    return 0;
}

/* ----------------------------------------------------------------- calls -- */

int suite_enter(void)
{
    if (depth++ == 0 && opener.shut)
        opener.shut();
    return depth;
}

void suite_leave(const int *entered)
{
    if (*entered == depth--)
        return;
    fputs("suite: calls do not nest\n", stderr);
    _exit(99);
}

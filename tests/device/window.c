/* window.c - the memory of a real GPU, open to the CPU for a while
 *
 * A driver reserves the addresses of device memory in the process, without
 * access.  Where a test touches them, 64 KiB of host memory take their place
 * there, with a copy of what the GPU has at these addresses; the GPU has page
 * tables of its own and goes on.  Before the next call of the library the bytes
 * that the test has changed are copied to the GPU, and the addresses are
 * without access again.
 */
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "tests/device/window.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PANE_BYTES = 64 << 10, PANE_WORDS = PANE_BYTES / 8, PANES_MAX = 4096 };

static struct {
    const struct dtn_cuda_driver *driver;
    CUcontext context;            /* the primary one, kept to the end         */
    unsigned char *at[PANES_MAX];         /* addresses that are open          */
    uint64_t *before[PANES_MAX];          /* what the GPU has there           */
    int npanes;
} window;

static void window_die(const char *what)
{
    printf("Bail out! window: %s\n", what);
    fflush(stdout);
    _Exit(99);
}

void window_of(const struct dtn_cuda *cuda)
{
    if (window.context)
        return;
    window.driver = cuda->driver;
    if (cuda->driver->cuDevicePrimaryCtxRetain(&window.context, cuda->device)
        != CUDA_SUCCESS)
        window_die("no context");
}

/* The copy is complete when it returns. */
static bool copied(void *to, const void *from, size_t bytes)
{
    const struct dtn_cuda_driver *driver = window.driver;
    CUcontext before;
    CUresult rc = driver->cuCtxPushCurrent(window.context);

    if (rc != CUDA_SUCCESS)
        return false;
    rc = driver->cuMemcpyAsync((CUdeviceptr)(uintptr_t)to,
                               (CUdeviceptr)(uintptr_t)from, bytes, NULL);
    if (rc == CUDA_SUCCESS)
        rc = driver->cuStreamSynchronize(NULL);
    driver->cuCtxPopCurrent(&before);
    return rc == CUDA_SUCCESS;
}

static bool pane_map(unsigned char *at, int access)
{
    return mmap(at, PANE_BYTES, access, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS
                | MAP_NORESERVE, -1, 0) == at;
}

int window_open(const void *mem)
{
    const uintptr_t inside = (uintptr_t)mem % PANE_BYTES;
    unsigned char *at = (unsigned char *)(uintptr_t)mem - inside;
    uint64_t *before;

    if (!window.context || window.npanes == PANES_MAX)
        return 0;
    before = malloc(PANE_BYTES);
    if (!before || !copied(before, at, PANE_BYTES)) {
        free(before);
        return 0;
    }
    if (!pane_map(at, PROT_READ | PROT_WRITE))
        window_die("mmap");
    memcpy(at, before, PANE_BYTES);
    window.at[window.npanes] = at;
    window.before[window.npanes++] = before;
    return 1;
}

/* Each range of words that differ: other ranks may write to what is between. */
static void pane_return(unsigned char *at, uint64_t *before)
{
    uint64_t *now = malloc(PANE_BYTES);
    size_t i = 0;

    if (!now)
        window_die("malloc");
    memcpy(now, at, PANE_BYTES);
    if (!pane_map(at, PROT_NONE))
        window_die("mmap");
    while (i < PANE_WORDS) {
        size_t n = 0;

        while (i + n < PANE_WORDS && now[i + n] != before[i + n])
            n++;
        if (n > 0 && !copied(at + 8 * i, now + i, 8 * n))
            window_die("bytes do not reach the GPU");
        i += n + 1;
    }
    free(now);
    free(before);
}

void window_shut(void)
{
    while (window.npanes > 0) {
        window.npanes--;
        pane_return(window.at[window.npanes], window.before[window.npanes]);
    }
}

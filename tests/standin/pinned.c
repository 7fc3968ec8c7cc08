/* pinned.c - host memory that streams may reach
 *
 * Memory that is neither allocated nor registered here is pageable: streams
 * copy from it before the call returns, and to it not before the call returns.
 */
#include "tests/standin/standin.h"

#include <stdlib.h>
#include <sys/mman.h>

struct pinned {
    uint64_t at;
    size_t size;
    bool allocated;               /* by cuMemHostAlloc                        */
    struct pinned *next;
};

static struct pinned *pinned;     /* under standin_lock                       */

bool standin_is_pinned(uint64_t at, size_t size)
{
    for (const struct pinned *p = pinned; p; p = p->next)
        if (at >= p->at && at - p->at < p->size
            && size <= p->size - (at - p->at))
            return true;
    return false;
}

static bool pinned_overlaps(uint64_t at, size_t size)
{
    for (const struct pinned *p = pinned; p; p = p->next)
        if (at < p->at + p->size && p->at < at + size)
            return true;
    return false;
}

static CUresult pinned_add(void *mem, size_t size, bool allocated)
{
    struct pinned *p = malloc(sizeof *p);
    CUresult rc = CUDA_SUCCESS;

    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *p = (struct pinned){ (uintptr_t)mem, size, allocated, NULL };
    pthread_mutex_lock(&standin_lock);
    if (pinned_overlaps(p->at, size)) {
        rc = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        free(p);
    } else {
        p->next = pinned;
        pinned = p;
        standin_count(STANDIN_PINNED, 1);
    }
    pthread_mutex_unlock(&standin_lock);
    return rc;
}

/* Take it out of the list: its size, 0: it is not there. */
static size_t pinned_remove(void *mem, bool allocated)
{
    struct pinned **link = &pinned, *p;
    size_t size = 0;

    pthread_mutex_lock(&standin_lock);
    while (*link && ((*link)->at != (uintptr_t)mem
                     || (*link)->allocated != allocated))
        link = &(*link)->next;
    p = *link;
    if (p) {
        *link = p->next;
        size = p->size;
        free(p);
        standin_count(STANDIN_PINNED, -1);
    }
    pthread_mutex_unlock(&standin_lock);
    return size;
}

CUresult standin_cuMemHostAlloc(void **memp, size_t size, unsigned flags)
{
    CUresult rc = standin_enter_context("cuMemHostAlloc");
    void *mem;

    if (rc == CUDA_SUCCESS && size == 0)
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc != CUDA_SUCCESS)
        return rc;
    mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
               -1, 0);
    if (mem == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    rc = pinned_add(mem, size, true);
    if (rc == CUDA_SUCCESS)
        *memp = mem;
    return rc;
}

CUresult standin_cuMemFreeHost(void *mem)
{
    CUresult rc = standin_enter_context("cuMemFreeHost");
    size_t size;

    if (rc != CUDA_SUCCESS)
        return rc;
    size = pinned_remove(mem, true);
    if (size == 0) {
        standin_complain("cuMemFreeHost: %p: not of cuMemHostAlloc", mem);
        return CUDA_ERROR_INVALID_VALUE;
    }
    munmap(mem, size);
    return CUDA_SUCCESS;
}

CUresult standin_cuMemHostRegister(void *mem, size_t size, unsigned flags)
{
    CUresult rc = standin_enter_context("cuMemHostRegister");

    if (rc == CUDA_SUCCESS && (size == 0
                               || standin_is_device((uintptr_t)mem)))
        rc = CUDA_ERROR_INVALID_VALUE;
    return rc == CUDA_SUCCESS ? pinned_add(mem, size, false) : rc;
}

CUresult standin_cuMemHostUnregister(void *mem)
{
    CUresult rc = standin_enter_context("cuMemHostUnregister");

    if (rc == CUDA_SUCCESS && pinned_remove(mem, false) == 0) {
        standin_complain("cuMemHostUnregister: %p: not registered", mem);
        rc = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    return rc;
}

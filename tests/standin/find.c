/* find.c - the symbols that a program finds by dlsym()
 *
 * cuGetProcAddress() gives the others.  A driver older than CUDA 12.0 has its
 * first form only: compiled with STANDIN_OLD, so has this one.
 */
#include "tests/standin/standin.h"

#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

#define FIND_ROW(name, since, skill, params)                                  \
    { #name, since, (void (*)(void))standin_##name },
static const struct {
    const char *name;
    int since;                    /* version of CUDA                          */
    void (*fn)(void);
} calls[] = { DTN_CUDA_CALLS(FIND_ROW) };
#undef FIND_ROW

EXPORTED CUresult cuDriverGetVersion(int *version);
EXPORTED CUresult cuGetProcAddress(const char *name, void **fn, int version,
                                   cuuint64_t flags);
EXPORTED CUresult cuGetProcAddress_v2(const char *name, void **fn, int version,
                                      cuuint64_t flags, int *why);
EXPORTED int dtn_standin_left(char *text, size_t size);
EXPORTED int dtn_standin_launches(void);
EXPORTED unsigned long dtn_standin_made(const char *call);

static int find(const char *name, void **fn, int version)
{
    size_t i = 0;

    *fn = NULL;
    while (i < DTN_COUNT(calls) && strcmp(calls[i].name, name) != 0)
        i++;
    if (i == DTN_COUNT(calls) || calls[i].since > standin_version()
        || standin_listed("DTN_STANDIN_WITHOUT", name))
        return CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (calls[i].since > version)
        return CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    memcpy(fn, &calls[i].fn, sizeof *fn);
    return CU_GET_PROC_ADDRESS_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    return standin_cuDriverGetVersion(version);
}

CUresult cuGetProcAddress(const char *name, void **fn, int version,
                          cuuint64_t flags)
{
    if (version > standin_version())
        return CUDA_ERROR_INVALID_VALUE;
    return find(name, fn, version) == CU_GET_PROC_ADDRESS_SUCCESS
        ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#ifndef STANDIN_OLD
CUresult cuGetProcAddress_v2(const char *name, void **fn, int version,
                             cuuint64_t flags, int *why)
{
    int found;

    if (version > standin_version())
        return CUDA_ERROR_INVALID_VALUE;
    found = find(name, fn, version);
    if (why)
        *why = found;
    return CUDA_SUCCESS;
}
#endif

int dtn_standin_left(char *text, size_t size)
{
    return standin_left(text, size);
}

int dtn_standin_launches(void)
{
    return standin_launches();
}

unsigned long dtn_standin_made(const char *call)
{
    return standin_made(call);
}

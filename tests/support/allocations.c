/* allocations.c - how often and how much memory a test program asked for */
#include "tests/support/allocations.h"

#include <stddef.h>

_Thread_local long allocations, allocated_bytes;
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *mem, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *mem, size_t size);

void *__wrap_malloc(size_t size)
{
    allocations++;
    allocated_bytes += (long)size;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    allocations++;
    allocated_bytes += (long)(n * size);
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *mem, size_t size)
{
    allocations++;
    allocated_bytes += (long)size;
    return __real_realloc(mem, size);
}

/* allocations.h - how often a test program has asked for memory
 *
 * The linker sends malloc() and its kin here: such a program is linked with
 * -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc, and includes this once.
 */
#ifndef ALLOCATIONS_H
#define ALLOCATIONS_H

#include <stddef.h>

static long allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *mem, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *mem, size_t size);

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    allocations++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *mem, size_t size)
{
    allocations++;
    return __real_realloc(mem, size);
}

#endif

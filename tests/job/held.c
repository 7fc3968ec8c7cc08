/* held.c - what a test program holds of the memory that it allocated */
#include "base/compiler.h"
#include "tests/job/held.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

long allocations_left = -1;
struct dtn_arena;

static void *live[8192];            /* what was allocated, by hash           */
long nlive;
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *mem, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t length);
void __real_free(void *mem);
void *__real_dtn_arena_alloc(struct dtn_arena *arena, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *mem, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length);
int __wrap_asprintf(char **textp, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void __wrap_free(void *mem);
void *__wrap_dtn_arena_alloc(struct dtn_arena *arena, size_t size);

static bool allocation_fails(void)
{
    return allocations_left >= 0 && allocations_left-- == 0;
}

/* Where `mem` stands in live[], or the first hole after its hash.  Entries are
 * never moved, so a search goes on until it has seen all.
 */
static void **live_find(const void *mem, const void *wanted)
{
    size_t at = (uintptr_t)mem / 16 % DTN_COUNT(live);

    for (size_t i = 0; i < DTN_COUNT(live); i++)
        if (live[(at + i) % DTN_COUNT(live)] == wanted)
            return &live[(at + i) % DTN_COUNT(live)];
    return NULL;
}

static void *live_add(void *mem)
{
    void **hole = mem ? live_find(mem, NULL) : NULL;

    if (hole) {
        *hole = mem;
        nlive++;
    }
    return mem;
}

/* What the C library allocated by itself is not known here. */
static void live_remove(void *mem)
{
    void **at = mem ? live_find(mem, mem) : NULL;

    if (at) {
        *at = NULL;
        nlive--;
    }
}

void *__wrap_malloc(size_t size)
{
    return allocation_fails() ? NULL : live_add(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return allocation_fails() ? NULL : live_add(__real_calloc(n, size));
}

void *__wrap_realloc(void *mem, size_t size)
{
    if (allocation_fails())
        return NULL;
    live_remove(mem);
    return live_add(__real_realloc(mem, size));
}

char *__wrap_strdup(const char *text)
{
    return allocation_fails() ? NULL : live_add(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t length)
{
    return allocation_fails() ? NULL : live_add(__real_strndup(text, length));
}

int __wrap_asprintf(char **textp, const char *format, ...)
{
    va_list args;
    int n;

    if (allocation_fails())
        return -1;
    va_start(args, format);
    n = vasprintf(textp, format, args);
    va_end(args);
    live_add(n < 0 ? NULL : *textp);
    return n;
}

void __wrap_free(void *mem)
{
    live_remove(mem);
    __real_free(mem);
}

void *__wrap_dtn_arena_alloc(struct dtn_arena *arena, size_t size)
{
    return allocation_fails() ? NULL : __real_dtn_arena_alloc(arena, size);
}

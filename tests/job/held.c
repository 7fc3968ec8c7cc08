/* held.c - what a test program holds of the memory that it allocated */
#include "base/compiler.h"
#include "tests/job/held.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

_Atomic long allocations_left = -1;
struct dtn_arena;

static void *_Atomic live[8192];    /* what was allocated, by hash           */
_Atomic long nlive;
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

/* Exactly one fails, of whichever thread. */
static bool allocation_fails(void)
{
    return allocations_left >= 0 && allocations_left-- == 0;
}

/* Put `to` in the place of `from`: the first from the hash of `mem` on.
 * Entries are never moved, so a search goes on until it has seen all.
 */
static bool live_change(const void *mem, void *from, void *to)
{
    const size_t at = (uintptr_t)mem / 16;

    for (size_t i = 0; i < DTN_COUNT(live); i++) {
        void *_Atomic *place = &live[(at + i) % DTN_COUNT(live)];
        void *found = from;

        if (*place == from
            && atomic_compare_exchange_strong(place, &found, to))
            return true;
    }
    return false;
}

static void *live_add(void *mem)
{
    if (mem && live_change(mem, NULL, mem))
        nlive++;
    return mem;
}

/* What the C library allocated by itself is not known here. */
static void live_remove(void *mem)
{
    if (mem && live_change(mem, mem, NULL))
        nlive--;
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

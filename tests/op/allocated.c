/* allocated.c - bytes of the arena and of aligned memory that were taken */
#include "tests/op/allocated.h"
#include "transport/arena.h"
#include "tests/support/allocations.h"

#include <stddef.h>

size_t allocated;
void *__real_dtn_arena_alloc(struct dtn_arena *arena, size_t size);
void *__wrap_dtn_arena_alloc(struct dtn_arena *arena, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_dtn_arena_alloc(struct dtn_arena *arena, size_t size)
{
    allocations++;
    allocated += size;
    return __real_dtn_arena_alloc(arena, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    allocations++;
    allocated += size;
    return __real_aligned_alloc(align, size);
}

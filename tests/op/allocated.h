/* allocated.h - bytes of the arena and of aligned memory that were taken
 *
 * Such a program is linked with allocations.c, too, and with
 * -Wl,--wrap=aligned_alloc,--wrap=dtn_arena_alloc; see allocations.h.
 */
#ifndef TESTS_OP_ALLOCATED_H
#define TESTS_OP_ALLOCATED_H

#include <stddef.h>

extern size_t allocated;

#endif

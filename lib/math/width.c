/* width.c - the vector width that loops are compiled for, chosen at run time */
#include "math/width.h"

#include <stdatomic.h>
#include <stdbool.h>

static atomic_int width = -1;     /* in use; -1: not known yet                */

static int width_widest(void)
{
#ifdef DTN_WIDTHS
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return 0;
#ifdef DTN_HAS_F16C
    if (!DTN_HAS_F16C())
        return 0;
#endif
    if (!__builtin_cpu_supports("avx512f") ||
        !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl"))
        return 1;
    return 2;
#else
    return 0;
#endif
}

/* It is asked for each block. */
int dtn_width(void)
{
    int found = atomic_load_explicit(&width, memory_order_relaxed);

    if (found < 0) {
        found = width_widest();
        atomic_store_explicit(&width, found, memory_order_relaxed);
    }
    return found;
}

bool dtn_width_force(int wanted)
{
    if (wanted > width_widest())
        return false;
    atomic_store_explicit(&width, wanted, memory_order_relaxed);
    return true;
}

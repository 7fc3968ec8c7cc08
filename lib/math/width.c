/* width.c - the vector width that loops are compiled for, chosen at run time */
#include "math/width.h"

#include <stdatomic.h>
#include <stdbool.h>

static atomic_int forced = -1;

static int width_widest(void)
{
#ifdef DTN_WIDTHS
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return 0;
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

int dtn_width(void)
{
    const int width = atomic_load_explicit(&forced, memory_order_relaxed);

    return width < 0 ? width_widest() : width;
}

bool dtn_width_force(int width)
{
    if (width > width_widest())
        return false;
    atomic_store_explicit(&forced, width, memory_order_relaxed);
    return true;
}

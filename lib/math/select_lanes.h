/* select_lanes.h - the loops of select.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, and LANES_NAME(x), which keeps the names apart.  Of numbers
 * from 0 to size - 1 neither x nor size - 1 - x has a sign.
 */
#define WITHIN(kind, T)                                                       \
    LANES_TARGET static bool LANES_NAME(within_##kind)(                       \
        const void *run, int64_t n, int64_t size)                             \
    {                                                                         \
        const T *x = run, last = (T)(size - 1);                               \
        T signs = 0;                                                          \
                                                                              \
        for (int64_t i = 0; i < n; i++)                                       \
            signs |= x[i] | (last - x[i]);                                    \
        return signs >> (8 * sizeof signs - 1) == 0;                          \
    }

WITHIN(i32, uint32_t)
WITHIN(i64, uint64_t)

static const struct select_loops LANES_NAME(loops) = {
    { LANES_NAME(within_i32), LANES_NAME(within_i64) },
};

#undef WITHIN
#undef LANES_TARGET
#undef LANES_NAME

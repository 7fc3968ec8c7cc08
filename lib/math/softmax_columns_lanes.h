/* softmax_columns_lanes.h - the loops of softmax_columns.c, for one width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, and LANES_NAME(x), which keeps the names apart.  Rows of a
 * tile have `wide` numbers.  A sum that is no NaN has a 1 in it.
 */
#define LOOPS(kind, T, of, wide)                                              \
    LANES_TARGET static void LANES_NAME(take_##kind)(                         \
        void *to, const void *from, int64_t apart, int64_t n, void *mostp)    \
    {                                                                         \
        const T *x = from;                                                    \
        T *tile = to, *most = mostp, best[wide];                              \
                                                                              \
        memcpy(best, most, sizeof best);                                      \
        for (int64_t i = 0; i < n; i++) {                                     \
            const T *next = x + ahead(i, n, apart, wide, sizeof(T));          \
                                                                              \
            __builtin_prefetch(next);                                         \
            __builtin_prefetch((const char *)next + 64);                      \
            ACROSS                                                            \
            for (int k = 0; k < wide; k++) {                                  \
                const T e = x[i * apart + k];                                 \
                                                                              \
                tile[i * wide + k] = e;                                       \
                best[k] = e > best[k] ? e : best[k];                          \
            }                                                                 \
        }                                                                     \
        memcpy(most, best, sizeof best);                                      \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(exp_##kind)(                          \
        void *to, const void *from, int64_t n, const void *mostp)             \
    {                                                                         \
        const T *most = mostp, *tile = from;                                  \
        T *made = to;                                                         \
                                                                              \
        for (int64_t i = 0; i < n; i++)                                       \
            ACROSS                                                            \
            for (int k = 0; k < wide; k++)                                    \
                made[i * wide + k] =                                          \
                    dtn_exp_below_##of(tile[i * wide + k] - most[k]);         \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(finish_##kind)(                       \
        bool logarithm, void *to, int64_t apart, const void *from, int64_t n, \
        const void *mostp, const double ends[])                               \
    {                                                                         \
        const T *most = mostp, *tile = from;                                  \
        T *out = to, by[wide];                                                \
                                                                              \
        for (int k = 0; k < wide; k++)                                        \
            by[k] = (T)ends[k];                                               \
        for (int64_t i = 0; i < n && logarithm; i++) {                        \
            const T *next = out + ahead(i, n, apart, wide, sizeof(T));        \
                                                                              \
            __builtin_prefetch(next, 1);                                      \
            __builtin_prefetch((const char *)next + 64, 1);                   \
            ACROSS                                                            \
            for (int k = 0; k < wide; k++)                                    \
                out[i * apart + k] = tile[i * wide + k] - most[k] - by[k];    \
        }                                                                     \
        for (int64_t i = 0; i < n && !logarithm; i++) {                       \
            const T *next = out + ahead(i, n, apart, wide, sizeof(T));        \
                                                                              \
            __builtin_prefetch(next, 1);                                      \
            __builtin_prefetch((const char *)next + 64, 1);                   \
            ACROSS                                                            \
            for (int k = 0; k < wide; k++)                                    \
                out[i * apart + k] = tile[i * wide + k] * by[k];              \
        }                                                                     \
    }

#define ENDS(kind, log)                                                       \
    LANES_TARGET static bool LANES_NAME(ends_##kind)(                         \
        bool logarithm, double total[], int64_t n)                            \
    {                                                                         \
        int64_t nans = 0;                                                     \
                                                                              \
        for (int64_t k = 0; k < n; k++)                                       \
            nans += total[k] != total[k];                                     \
        if (nans > 0)                                                         \
            return false;                                                     \
        DTN_INDEPENDENT                                                       \
        for (int64_t k = 0; k < n && logarithm; k++)                          \
            total[k] = log(total[k]);                                         \
        DTN_INDEPENDENT                                                       \
        for (int64_t k = 0; k < n && !logarithm; k++)                         \
            total[k] = 1 / total[k];                                          \
        return true;                                                          \
    }

LOOPS(f32, float, f32, WIDE_F32)
LOOPS(f64, double, f64, WIDE_F64)
LOOPS(narrow, float, f32, WIDE_NARROW)
ENDS(f32, dtn_log_near_f64)
ENDS(f64, dtn_log_f64)

static const struct columns_loops LANES_NAME(loops) = {
    { LANES_NAME(take_f32), LANES_NAME(take_f64),
      LANES_NAME(take_narrow) },
    { LANES_NAME(exp_f32), LANES_NAME(exp_f64),
      LANES_NAME(exp_narrow) },
    { LANES_NAME(finish_f32), LANES_NAME(finish_f64),
      LANES_NAME(finish_narrow) },
    { LANES_NAME(ends_f32), LANES_NAME(ends_f64), LANES_NAME(ends_f32) },
};

#undef LOOPS
#undef ENDS
#undef LANES_TARGET
#undef LANES_NAME

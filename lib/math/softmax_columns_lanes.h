/* softmax_columns_lanes.h - the loops of softmax_columns.c, for one width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, and LANES_NAME(x), which keeps the names apart.  Rows of a
 * tile have WIDE(T) numbers.  The sum of a column has the 32 lanes of a block
 * that totals_lanes.h describes: so it has the bits of a row's.  Lanes without
 * an element would add 0: they are left out.
 */
#define LOOPS(kind, T)                                                        \
    LANES_TARGET static void LANES_NAME(take_##kind)(                         \
        void *to, const void *from, int64_t apart, int64_t n, void *mostp)    \
    {                                                                         \
        const T *x = from;                                                    \
        T *tile = to, *most = mostp, best[WIDE(T)];                           \
                                                                              \
        memcpy(best, most, sizeof best);                                      \
        for (int64_t i = 0; i < n; i++) {                                     \
            const T *next = x + ahead(i, n, apart, WIDE(T));                  \
                                                                              \
            __builtin_prefetch(next);                                         \
            __builtin_prefetch((const char *)next + 64);                      \
            ACROSS                                                            \
            for (int k = 0; k < WIDE(T); k++) {                               \
                const T e = x[i * apart + k];                                 \
                                                                              \
                tile[i * WIDE(T) + k] = e;                                    \
                best[k] = e > best[k] ? e : best[k];                          \
            }                                                                 \
        }                                                                     \
        memcpy(most, best, sizeof best);                                      \
    }                                                                         \
    LANES_TARGET static inline void LANES_NAME(first_##kind)(                 \
        double sum[], const T made[])                                         \
    {                                                                         \
        ACROSS                                                                \
        for (int k = 0; k < WIDE(T); k++)                                     \
            sum[k] = (double)made[k];                                         \
    }                                                                         \
    LANES_TARGET static inline void LANES_NAME(add_##kind)(                   \
        double sum[], const T made[])                                         \
    {                                                                         \
        ACROSS                                                                \
        for (int k = 0; k < WIDE(T); k++)                                     \
            sum[k] += (double)made[k];                                        \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(join_##kind)(                         \
        double lane[][WIDE(T)], int64_t n, double total[])                    \
    {                                                                         \
        for (int half = 16; half > 0; half /= 2)                              \
            for (int j = 0; j < half && j + half < n; j++)                    \
                ACROSS                                                        \
                for (int k = 0; k < WIDE(T); k++)                             \
                    lane[j][k] += lane[j + half][k];                          \
        ACROSS                                                                \
        for (int k = 0; k < WIDE(T); k++)                                     \
            total[k] += lane[0][k];                                           \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(exp_##kind)(                          \
        void *at, int64_t n, bool keep, const void *mostp, double total[])    \
    {                                                                         \
        const T *most = mostp;                                                \
        T *tile = at, room[WIDE(T)];                                          \
        double lane[32][WIDE(T)];                                             \
                                                                              \
        for (int64_t i = 0; i < n; i++) {                                     \
            const T *x = tile + i * WIDE(T);                                  \
            T *made = keep ? tile + i * WIDE(T) : room;                       \
            double *sum = lane[i % 32];                                       \
                                                                              \
            ACROSS                                                            \
            for (int k = 0; k < WIDE(T); k++)                                 \
                made[k] = dtn_exp_below_##kind(x[k] - most[k]);               \
            if (i < 32)                                                       \
                LANES_NAME(first_##kind)(sum, made);                          \
            else                                                              \
                LANES_NAME(add_##kind)(sum, made);                            \
        }                                                                     \
        LANES_NAME(join_##kind)(lane, n, total);                              \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(finish_##kind)(                       \
        bool logarithm, void *to, int64_t apart, const void *from, int64_t n, \
        const void *mostp, const double ends[])                               \
    {                                                                         \
        const T *most = mostp, *tile = from;                                  \
        T *out = to, by[WIDE(T)];                                             \
                                                                              \
        for (int k = 0; k < WIDE(T); k++)                                     \
            by[k] = (T)ends[k];                                               \
        for (int64_t i = 0; i < n && logarithm; i++) {                        \
            const T *next = out + ahead(i, n, apart, WIDE(T));                \
                                                                              \
            __builtin_prefetch(next, 1);                                      \
            __builtin_prefetch((const char *)next + 64, 1);                   \
            ACROSS                                                            \
            for (int k = 0; k < WIDE(T); k++)                                 \
                out[i * apart + k] = tile[i * WIDE(T) + k] - most[k] - by[k]; \
        }                                                                     \
        for (int64_t i = 0; i < n && !logarithm; i++) {                       \
            const T *next = out + ahead(i, n, apart, WIDE(T));                \
                                                                              \
            __builtin_prefetch(next, 1);                                      \
            __builtin_prefetch((const char *)next + 64, 1);                   \
            ACROSS                                                            \
            for (int k = 0; k < WIDE(T); k++)                                 \
                out[i * apart + k] = tile[i * WIDE(T) + k] * by[k];           \
        }                                                                     \
    }

LOOPS(f32, float)
LOOPS(f64, double)

LANES_TARGET static void LANES_NAME(ends)(bool logarithm, double total[])
{
    ACROSS
    for (int k = 0; k < WIDE(float) && logarithm; k++)
        total[k] = dtn_log_f64(total[k]);
    ACROSS
    for (int k = 0; k < WIDE(float) && !logarithm; k++)
        total[k] = 1 / total[k];
}

static const struct columns_loops LANES_NAME(loops) = {
    { LANES_NAME(take_f32), LANES_NAME(take_f64) },
    { LANES_NAME(exp_f32), LANES_NAME(exp_f64) },
    { LANES_NAME(finish_f32), LANES_NAME(finish_f64) },
    LANES_NAME(ends),
};

#undef LOOPS
#undef LANES_TARGET
#undef LANES_NAME

/* tiles_lanes.h - the loops of tiles.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, and LANES_NAME(x), which keeps the names apart.  A loop adds
 * to n elements of 4 rows of sums, or of 1, the products of 4 rows of b, or of
 * 1, and 4 factors for each row of sums.
 */
#define STEP(T, fma, r)                                                       \
    {                                                                         \
        T s = s##r[i];                                                        \
                                                                              \
        s = fma(f[4 * r], x0, s);                                             \
        s = fma(f[4 * r + 1], x1, s);                                         \
        s = fma(f[4 * r + 2], x2, s);                                         \
        s##r[i] = fma(f[4 * r + 3], x3, s);                                   \
    }

#define TILES(kind, T, fma)                                                   \
    LANES_TARGET static void LANES_NAME(four_##kind)(                         \
        void *sums, int64_t apart, const void *factors, const void *rows,     \
        int64_t stride, int64_t n)                                            \
    {                                                                         \
        T *s0 = sums, *s1 = s0 + apart, *s2 = s1 + apart, *s3 = s2 + apart;   \
        const T *b0 = rows, *b1 = b0 + stride, *b2 = b1 + stride;             \
        const T *b3 = b2 + stride;                                            \
        T f[16];                                                              \
                                                                              \
        memcpy(f, factors, sizeof f);                                         \
        DTN_INDEPENDENT                                                       \
        for (int64_t i = 0; i < n; i++) {                                     \
            const T x0 = b0[i], x1 = b1[i], x2 = b2[i], x3 = b3[i];           \
                                                                              \
            STEP(T, fma, 0)                                                   \
            STEP(T, fma, 1)                                                   \
            STEP(T, fma, 2)                                                   \
            STEP(T, fma, 3)                                                   \
        }                                                                     \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(one_##kind)(                          \
        void *sums, int64_t apart, const void *factors, const void *rows,     \
        int64_t stride, int64_t n)                                            \
    {                                                                         \
        T *s0 = sums;                                                         \
        const T *b0 = rows, *b1 = b0 + stride, *b2 = b1 + stride;             \
        const T *b3 = b2 + stride;                                            \
        T f[4];                                                               \
                                                                              \
        (void)apart;                                                          \
        memcpy(f, factors, sizeof f);                                         \
        DTN_INDEPENDENT                                                       \
        for (int64_t i = 0; i < n; i++) {                                     \
            const T x0 = b0[i], x1 = b1[i], x2 = b2[i], x3 = b3[i];           \
                                                                              \
            STEP(T, fma, 0)                                                   \
        }                                                                     \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(last_##kind)(                         \
        void *sums, int64_t apart, const void *factors, const void *rows,     \
        int64_t stride, int64_t n)                                            \
    {                                                                         \
        T *s = sums;                                                          \
        const T *b = rows, f = *(const T *)factors;                           \
                                                                              \
        (void)apart, (void)stride;                                            \
        DTN_INDEPENDENT                                                       \
        for (int64_t i = 0; i < n; i++)                                       \
            s[i] = fma(f, b[i], s[i]);                                        \
    }

TILES(f32, float, __builtin_fmaf)
TILES(f64, double, __builtin_fma)

static const struct tiles_loops LANES_NAME(loops) = {
    .four = { LANES_NAME(four_f32), LANES_NAME(four_f64) },
    .one = { LANES_NAME(one_f32), LANES_NAME(one_f64) },
    .last = { LANES_NAME(last_f32), LANES_NAME(last_f64) },
};

#undef STEP
#undef TILES
#undef LANES_TARGET
#undef LANES_NAME

/* matmul_lanes.h - the loops of matmul.c, for one vector width
 *
 * This file is included once for each width.  LANES_TARGET is the attribute
 * that selects the width in the compiler; LANES_NAME(x) gives each width its
 * own names.
 */
#define MADD(kind, T, expression)                                             \
    LANES_TARGET static void LANES_NAME(madd_##kind)(                         \
        void *to, const void *factor, const void *row, int64_t n)             \
    {                                                                         \
        T *sum = to;                                                          \
        const T x = *(const T *)factor;                                       \
        const T *b = row;                                                     \
                                                                              \
        for (int64_t i = 0; i < n; i++)                                       \
            sum[i] = expression;                                              \
    }

MADD(f32, float, __builtin_fmaf(x, b[i], sum[i]))
MADD(f64, double, __builtin_fma(x, b[i], sum[i]))
MADD(int, uint64_t, x * b[i] + sum[i])
MADD(c128, double _Complex, x * b[i] + sum[i])

static const struct matmul_loops LANES_NAME(loops) = {
    .of = {
        [DTENSOR_F32] = LANES_NAME(madd_f32),
        [DTENSOR_F64] = LANES_NAME(madd_f64),
        [DTENSOR_I64] = LANES_NAME(madd_int),
        [DTENSOR_U64] = LANES_NAME(madd_int),
        [DTENSOR_C128] = LANES_NAME(madd_c128),
    },
};

#undef MADD
#undef LANES_TARGET
#undef LANES_NAME

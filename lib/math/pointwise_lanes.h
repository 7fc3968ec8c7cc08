/* pointwise_lanes.h - the loops of pointwise.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, and LANES_NAME(x), which keeps the names apart.  Which loops
 * there are, and what is in them, is in pointwise_list.h.  Of bf16 the elements
 * are widened, computed with as f32 and narrowed within one loop.
 */
#define LOOP_OF(OP, name, kind, S, T, TO, widen, narrow, expression)          \
    LANES_TARGET static void LANES_NAME(name##_##kind)(                       \
        void *to, const void *const in[], int64_t n, const void *args)        \
    {                                                                         \
        enum { OPERANDS_USED = DTN_##OP < DTN_ADD ? 1                         \
                             : DTN_##OP < DTN_ADDCMUL ? 2 : 3 };              \
        TO *dst = to;                                                         \
        const S *a = in[0];                                                   \
        const S *b = in[OPERANDS_USED > 1];                                   \
        const S *c = in[OPERANDS_USED > 2 ? 2 : 0];                           \
        const T p = ((const T *)args)[0], q = ((const T *)args)[1];           \
                                                                              \
        DTN_INDEPENDENT                                                       \
        for (int64_t i = 0; i < n; i++) {                                     \
            const T x = widen(a[i]), y = widen(b[i]), z = widen(c[i]);        \
                                                                              \
            (void)x, (void)y, (void)z, (void)p, (void)q;                      \
            dst[i] = narrow(expression);                                      \
        }                                                                     \
    }
#define LOOP(OP, name, kind, T, TO, expression)                               \
    LOOP_OF(OP, name, kind, T, T, TO, , (TO), expression)

/* TO is float, or uint8_t of a comparison. */
#define LOOP_BF16(OP, name, kind, T, TO, expression)                          \
    LOOP_OF(OP, name, bf16, uint16_t, T, bf16_##TO, dtn_bf16_widen,           \
            bf16_of_##TO, expression)

DTN_POINTWISE_FLOAT(LOOP, f32, float)
DTN_POINTWISE_FLOAT(LOOP_BF16, f32, float)
DTN_POINTWISE_LIBM(LOOP, f32, float)
DTN_POINTWISE_FLOAT(LOOP, f64, double)
DTN_POINTWISE_LIBM(LOOP, f64, double)
DTN_POINTWISE_INTEGER(LOOP, i64, int64_t)
DTN_POINTWISE_INTEGER(LOOP, u64, uint64_t)

/* Only a block that has large numbers takes the way that is not for vectors. */
#define SINE(name, kind, T, quarters, most)                                   \
    static void LANES_NAME(name##_slow_##kind)(T *dst, const T *a, int64_t n) \
    {                                                                         \
        for (int64_t i = 0; i < n; i++)                                       \
            dst[i] = dtn_sine_any_##kind(a[i], quarters);                     \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(name##_##kind)(                       \
        void *to, const void *const in[], int64_t n, const void *args)        \
    {                                                                         \
        (void)args;                                                           \
        for (int64_t at = 0; at < n; at += DTN_BLOCK) {                       \
            const int64_t left = n - at < DTN_BLOCK ? n - at : DTN_BLOCK;     \
            const T *a = (const T *)in[0] + at;                               \
            T *dst = (T *)to + at;                                            \
            int large = 0;                                                    \
                                                                              \
            for (int64_t i = 0; i < left; i++)                                \
                large |= !(a[i] < (most) && a[i] > -(most));                  \
            if (large) {                                                      \
                LANES_NAME(name##_slow_##kind)(dst, a, left);                 \
                continue;                                                     \
            }                                                                 \
            DTN_INDEPENDENT                                                   \
            for (int64_t i = 0; i < left; i++)                                \
                dst[i] = dtn_sine_##kind(a[i], quarters);                     \
        }                                                                     \
    }

SINE(sin, f32, float, 0, DTN_SINE_MOST_F32)
SINE(cos, f32, float, 1, DTN_SINE_MOST_F32)
SINE(sin, f64, double, 0, DTN_SINE_MOST_F64)
SINE(cos, f64, double, 1, DTN_SINE_MOST_F64)

#define AT(OP, name, kind, ...) [DTN_##OP] = LANES_NAME(name##_##kind),
#define AT_BF16(OP, name, ...) AT(OP, name, bf16)

static const struct pointwise_loops LANES_NAME(loops) = {
    .of = {
        [DTENSOR_F32] = { DTN_POINTWISE_FLOAT(AT, f32, float)
                          DTN_POINTWISE_LIBM(AT, f32, float)
                          AT(SIN, sin, f32) AT(COS, cos, f32) },
        [DTENSOR_BF16] = { DTN_POINTWISE_FLOAT(AT_BF16, f32, float) },
        [DTENSOR_F64] = { DTN_POINTWISE_FLOAT(AT, f64, double)
                          DTN_POINTWISE_LIBM(AT, f64, double)
                          AT(SIN, sin, f64) AT(COS, cos, f64) },
        [DTENSOR_I64] = { DTN_POINTWISE_INTEGER(AT, i64, int64_t) },
        [DTENSOR_U64] = { DTN_POINTWISE_INTEGER(AT, u64, uint64_t) },
    },
};

#undef LOOP_OF
#undef LOOP
#undef LOOP_BF16
#undef SINE
#undef AT
#undef AT_BF16
#undef LANES_TARGET
#undef LANES_NAME

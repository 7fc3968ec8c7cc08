/* pointwise_lanes.h - the loops of pointwise.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, and LANES_NAME(x), which keeps the names apart.  Which loops
 * there are, and what is in them, is in pointwise_list.h.
 */
#define LOOP(OP, name, kind, T, TO, expression)                               \
    LANES_TARGET static void LANES_NAME(name##_##kind)(                       \
        void *to, const void *const in[], int64_t n, const void *args)        \
    {                                                                         \
        enum { OPERANDS_USED = DTN_##OP < DTN_ADD ? 1                         \
                             : DTN_##OP < DTN_ADDCMUL ? 2 : 3 };              \
        TO *dst = to;                                                         \
        const T *a = in[0];                                                   \
        const T *b = in[OPERANDS_USED > 1];                                   \
        const T *c = in[OPERANDS_USED > 2 ? 2 : 0];                           \
        const T p = ((const T *)args)[0], q = ((const T *)args)[1];           \
                                                                              \
        DTN_INDEPENDENT                                                       \
        for (int64_t i = 0; i < n; i++) {                                     \
            const T x = a[i], y = b[i], z = c[i];                             \
                                                                              \
            (void)x, (void)y, (void)z, (void)p, (void)q;                      \
            dst[i] = (TO)(expression);                                        \
        }                                                                     \
    }

DTN_POINTWISE_FLOAT(LOOP, f32, float)
DTN_POINTWISE_F32(LOOP, f32, float)
DTN_POINTWISE_LIBM_BOTH(LOOP, f32, float)
DTN_POINTWISE_FLOAT(LOOP, f64, double)
DTN_POINTWISE_LIBM_BOTH(LOOP, f64, double)
DTN_POINTWISE_LIBM_F64(LOOP, f64, double)
DTN_POINTWISE_INTEGER(LOOP, i64, int64_t)
DTN_POINTWISE_INTEGER(LOOP, u64, uint64_t)

/* Only a block that has large numbers takes the way that is not for vectors. */
#define SINE(name, quarters)                                                  \
    static void LANES_NAME(name##_slow)(float *dst, const float *a,           \
                                        int64_t n)                            \
    {                                                                         \
        for (int64_t i = 0; i < n; i++)                                       \
            dst[i] = dtn_sine_any_f32(a[i], quarters);                        \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(name##_f32)(                          \
        void *to, const void *const in[], int64_t n, const void *args)        \
    {                                                                         \
        (void)args;                                                           \
        for (int64_t at = 0; at < n; at += DTN_BLOCK) {                       \
            const int64_t most = n - at < DTN_BLOCK ? n - at : DTN_BLOCK;     \
            const float *a = (const float *)in[0] + at;                       \
            float *dst = (float *)to + at;                                    \
            int large = 0;                                                    \
                                                                              \
            for (int64_t i = 0; i < most; i++)                                \
                large |= !(fabsf(a[i]) < DTN_SINE_MOST);                      \
            if (large) {                                                      \
                LANES_NAME(name##_slow)(dst, a, most);                        \
                continue;                                                     \
            }                                                                 \
            DTN_INDEPENDENT                                                   \
            for (int64_t i = 0; i < most; i++)                                \
                dst[i] = dtn_sine_f32(a[i], quarters);                        \
        }                                                                     \
    }

SINE(sin, 0)
SINE(cos, 1)

#define AT(OP, name, kind, ...) [DTN_##OP] = LANES_NAME(name##_##kind),

static const struct pointwise_loops LANES_NAME(loops) = {
    .of = {
        [DTENSOR_F32] = { DTN_POINTWISE_FLOAT(AT, f32, float)
                          DTN_POINTWISE_F32(AT, f32, float)
                          DTN_POINTWISE_LIBM_BOTH(AT, f32, float)
                          AT(SIN, sin, f32) AT(COS, cos, f32) },
        [DTENSOR_F64] = { DTN_POINTWISE_FLOAT(AT, f64, double)
                          DTN_POINTWISE_LIBM_BOTH(AT, f64, double)
                          DTN_POINTWISE_LIBM_F64(AT, f64, double) },
        [DTENSOR_I64] = { DTN_POINTWISE_INTEGER(AT, i64, int64_t) },
        [DTENSOR_U64] = { DTN_POINTWISE_INTEGER(AT, u64, uint64_t) },
    },
};

#undef LOOP
#undef SINE
#undef AT
#undef LANES_TARGET
#undef LANES_NAME

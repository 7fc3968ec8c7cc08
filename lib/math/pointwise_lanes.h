/* pointwise_lanes.h - the loops of pointwise.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, and LANES_NAME(x), which keeps the names apart.  A loop has
 * n elements x, y, z of type T of its operands, and the arguments p and q of
 * the same type.
 */
#define LOOP(name, kind, T, TO, OPERANDS, expression)                         \
    LANES_TARGET static void LANES_NAME(name##_##kind)(                       \
        void *to, const void *const in[], int64_t n, const void *args)        \
    {                                                                         \
        TO *dst = to;                                                         \
        const T *a = in[0];                                                   \
        const T *b = in[OPERANDS > 1];                                        \
        const T *c = in[OPERANDS > 2 ? 2 : 0];                                \
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

#define UNARY(name, kind, T, expression)                                      \
    LOOP(name, kind, T, T, 1, expression)
#define BINARY(name, kind, T, expression)                                     \
    LOOP(name, kind, T, T, 2, expression)
#define TERNARY(name, kind, T, expression)                                    \
    LOOP(name, kind, T, T, 3, expression)
#define COMPARE(name, kind, T, expression)                                    \
    LOOP(name, kind, T, uint8_t, 2, expression)
#define FUNCTION(name, kind, T) UNARY(name, kind, T, dtn_##name##_##kind(x))

#define COMPARISONS(kind, T)                                                  \
    COMPARE(lt, kind, T, x < y)                                               \
    COMPARE(le, kind, T, x <= y)                                              \
    COMPARE(gt, kind, T, x > y)                                               \
    COMPARE(ge, kind, T, x >= y)                                              \
    COMPARE(eq, kind, T, x == y)                                              \
    COMPARE(ne, kind, T, x != y)

#define FLOAT(kind, T)                                                        \
    UNARY(relu, kind, T, x > 0 || x != x ? x : 0)                             \
    FUNCTION(ceil, kind, T)                                                   \
    FUNCTION(floor, kind, T)                                                  \
    FUNCTION(round, kind, T)                                                  \
    FUNCTION(trunc, kind, T)                                                  \
    UNARY(sign, kind, T, x != x ? x : (T)((x > 0) - (x < 0)))                 \
    FUNCTION(exp, kind, T)                                                    \
    FUNCTION(exp2, kind, T)                                                   \
    FUNCTION(expm1, kind, T)                                                  \
    FUNCTION(sigmoid, kind, T)                                                \
    FUNCTION(tanh, kind, T)                                                   \
    FUNCTION(sinh, kind, T)                                                   \
    FUNCTION(asinh, kind, T)                                                  \
    FUNCTION(atan, kind, T)                                                   \
    FUNCTION(erf, kind, T)                                                    \
    FUNCTION(erfc, kind, T)                                                   \
    UNARY(neg, kind, T, -x)                                                   \
    FUNCTION(abs, kind, T)                                                    \
    UNARY(square, kind, T, x * x)                                             \
    FUNCTION(log, kind, T)                                                    \
    FUNCTION(log2, kind, T)                                                   \
    FUNCTION(log10, kind, T)                                                  \
    FUNCTION(log1p, kind, T)                                                  \
    FUNCTION(sqrt, kind, T)                                                   \
    UNARY(rsqrt, kind, T, 1 / dtn_sqrt_##kind(x))                             \
    UNARY(reciprocal, kind, T, 1 / x)                                         \
    FUNCTION(gelu, kind, T)                                                   \
    UNARY(silu, kind, T, x * dtn_sigmoid_##kind(x))                           \
    FUNCTION(softplus, kind, T)                                               \
    UNARY(clamp, kind, T, x < p ? p : x > q ? q : x)                          \
    UNARY(shift, kind, T, x + p)                                              \
    UNARY(scale, kind, T, p * x)                                              \
    UNARY(pow, kind, T, dtn_pow_##kind(x, p))                                 \
    BINARY(add, kind, T, x + y)                                               \
    BINARY(sub, kind, T, x - y)                                               \
    BINARY(mul, kind, T, x * y)                                               \
    BINARY(div, kind, T, x / y)                                               \
    BINARY(maximum, kind, T, ((y > x) | (y != y)) ? y : x)                    \
    BINARY(minimum, kind, T, ((y < x) | (y != y)) ? y : x)                    \
    BINARY(axpy, kind, T, x + p * y)                                          \
    COMPARISONS(kind, T)                                                      \
    TERNARY(addcmul, kind, T, x + p * y * z)                                  \
    TERNARY(addcdiv, kind, T, x + p * y / z)                                  \
    TERNARY(lerp, kind, T, x + z * (y - x))

/* Sums and products wrap, so they are those of the unsigned type. */
#define INTEGER(kind, T)                                                      \
    UNARY(relu, kind, T, x > 0 ? x : 0)                                       \
    UNARY(same, kind, T, x)                                                   \
    UNARY(neg, kind, T, 0 - (uint64_t)x)                                      \
    UNARY(square, kind, T, (uint64_t)x * (uint64_t)x)                         \
    UNARY(clamp, kind, T, x < p ? p : x > q ? q : x)                          \
    UNARY(shift, kind, T, (uint64_t)x + (uint64_t)p)                          \
    UNARY(scale, kind, T, (uint64_t)x * (uint64_t)p)                          \
    BINARY(add, kind, T, (uint64_t)x + (uint64_t)y)                           \
    BINARY(sub, kind, T, (uint64_t)x - (uint64_t)y)                           \
    BINARY(mul, kind, T, (uint64_t)x * (uint64_t)y)                           \
    BINARY(div, kind, T, kind##_over(x, y))                                   \
    BINARY(maximum, kind, T, y > x ? y : x)                                   \
    BINARY(minimum, kind, T, y < x ? y : x)                                   \
    BINARY(axpy, kind, T, (uint64_t)x + (uint64_t)p * (uint64_t)y)            \
    COMPARISONS(kind, T)                                                      \
    TERNARY(addcmul, kind, T,                                                 \
            (uint64_t)x + (uint64_t)p * (uint64_t)y * (uint64_t)z)            \
    TERNARY(addcdiv, kind, T, (uint64_t)x + (uint64_t)kind##_over(            \
                                  (T)((uint64_t)p * (uint64_t)y), z))         \
    TERNARY(lerp, kind, T,                                                    \
            (uint64_t)x + (uint64_t)z * ((uint64_t)y - (uint64_t)x))

FLOAT(f32, float)
FLOAT(f64, double)
FUNCTION(sin, f64, double)
FUNCTION(cos, f64, double)

/* Of numbers that are too large for dtn_sine_f32(), libm's. */
#define SINE(name, quarters, exact)                                           \
    static void LANES_NAME(name##_slow)(float *dst, const float *a,           \
                                        int64_t n)                            \
    {                                                                         \
        for (int64_t i = 0; i < n; i++)                                       \
            dst[i] = fabsf(a[i]) < DTN_SINE_MOST                              \
                         ? dtn_sine_f32(a[i], quarters) : exact(a[i]);        \
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

SINE(sin, 0, sinf)
SINE(cos, 1, cosf)
INTEGER(i64, int64_t)
INTEGER(u64, uint64_t)
UNARY(sign, i64, int64_t, (x > 0) - (x < 0))
UNARY(sign, u64, uint64_t, x > 0)
UNARY(abs, i64, int64_t, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
UNARY(abs, u64, uint64_t, x)

#define AT(OP, name, kind) [DTN_##OP] = LANES_NAME(name##_##kind)
#define ROW_COMMON(kind)                                                      \
    AT(RELU, relu, kind), AT(SIGN, sign, kind), AT(NEG, neg, kind),           \
    AT(ABS, abs, kind), AT(SQUARE, square, kind), AT(CLAMP, clamp, kind),     \
    AT(SHIFT, shift, kind), AT(SCALE, scale, kind), AT(ADD, add, kind),       \
    AT(SUB, sub, kind), AT(MUL, mul, kind), AT(DIV, div, kind),               \
    AT(MAXIMUM, maximum, kind), AT(MINIMUM, minimum, kind),                   \
    AT(AXPY, axpy, kind), AT(LT, lt, kind), AT(LE, le, kind),                 \
    AT(GT, gt, kind), AT(GE, ge, kind), AT(EQ, eq, kind), AT(NE, ne, kind),   \
    AT(ADDCMUL, addcmul, kind), AT(ADDCDIV, addcdiv, kind),                   \
    AT(LERP, lerp, kind)
#define ROW_FLOAT(kind) {                                                     \
    ROW_COMMON(kind), AT(CEIL, ceil, kind), AT(FLOOR, floor, kind),           \
    AT(ROUND, round, kind), AT(TRUNC, trunc, kind), AT(EXP, exp, kind),       \
    AT(EXP2, exp2, kind), AT(EXPM1, expm1, kind),                             \
    AT(SIGMOID, sigmoid, kind), AT(TANH, tanh, kind), AT(SINH, sinh, kind),   \
    AT(ASINH, asinh, kind), AT(ATAN, atan, kind), AT(ERF, erf, kind),         \
    AT(ERFC, erfc, kind), AT(LOG, log, kind), AT(LOG2, log2, kind),           \
    AT(LOG10, log10, kind), AT(LOG1P, log1p, kind), AT(SQRT, sqrt, kind),     \
    AT(RSQRT, rsqrt, kind), AT(RECIPROCAL, reciprocal, kind),                 \
    AT(SIN, sin, kind), AT(COS, cos, kind), AT(GELU, gelu, kind),             \
    AT(SILU, silu, kind), AT(SOFTPLUS, softplus, kind), AT(POW, pow, kind) }
#define ROW_INTEGER(kind) {                                                   \
    ROW_COMMON(kind), AT(CEIL, same, kind), AT(FLOOR, same, kind),            \
    AT(ROUND, same, kind), AT(TRUNC, same, kind) }

static const struct pointwise_loops LANES_NAME(loops) = {
    .of = {
        [DTENSOR_F32] = ROW_FLOAT(f32),
        [DTENSOR_F64] = ROW_FLOAT(f64),
        [DTENSOR_I64] = ROW_INTEGER(i64),
        [DTENSOR_U64] = ROW_INTEGER(u64),
    },
};

#undef LOOP
#undef UNARY
#undef BINARY
#undef TERNARY
#undef COMPARE
#undef FUNCTION
#undef COMPARISONS
#undef FLOAT
#undef SINE
#undef INTEGER
#undef AT
#undef ROW_COMMON
#undef ROW_FLOAT
#undef ROW_INTEGER
#undef LANES_TARGET
#undef LANES_NAME

/* cast_lanes.h - the loops of cast.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, and LANES_NAME(x), which keeps the names apart.
 */
#define CAST(from, FROM, to, TO, convert)                                     \
    LANES_TARGET static void LANES_NAME(from##_to_##to)(                      \
        void *out, const void *in, int64_t n)                                 \
    {                                                                         \
        TO *dst = out;                                                        \
        const FROM *src = in;                                                 \
                                                                              \
        for (int64_t i = 0; i < n; i++) {                                     \
            const FROM x = src[i];                                            \
                                                                              \
            dst[i] = convert;                                                 \
        }                                                                     \
    }

/* Toward zero, clamped; 0 for a NaN.  `high` is the largest float of the type
 * that is not above `most`, which is an integer.
 */
#define WHOLE(I, low, high, most)                                             \
    (I)(x != x ? 0 : x > (high) ? (most)                                      \
        : (I)(x < (low) ? (low) : x > (high) ? (high) : x))

#define FROM_FLOAT(from, FROM, high32, high64)                                \
    CAST(from, FROM, i32, int32_t,                                            \
         WHOLE(int32_t, -(FROM)0x1p31, (FROM)(high32), INT32_MAX))            \
    CAST(from, FROM, i64, int64_t,                                            \
         WHOLE(int64_t, -(FROM)0x1p63, (FROM)(high64), INT64_MAX))            \
    CAST(from, FROM, u8, uint8_t, (uint8_t)WHOLE(int32_t, 0, 255, 255))       \
    CAST(from, FROM, truth, uint8_t, x != 0)
#define TO_FLOAT(to, TO)                                                      \
    CAST(i32, int32_t, to, TO, (TO)x)                                         \
    CAST(i64, int64_t, to, TO, (TO)x)                                         \
    CAST(u8, uint8_t, to, TO, (TO)x)                                          \
    CAST(truth, uint8_t, to, TO, (TO)(x != 0))

FROM_FLOAT(f32, float, 0x1.fffffep30, 0x1.fffffep62)
FROM_FLOAT(f64, double, 2147483647, 0x1.fffffffffffffp62)
TO_FLOAT(f32, float)
TO_FLOAT(f64, double)
CAST(f32, float, f64, double, (double)x)
CAST(f64, double, f32, float, (float)x)

#define AT(TO, from, to) [DTENSOR_##TO] = LANES_NAME(from##_to_##to)
#define INTEGERS(from)                                                        \
    AT(I32, from, i32), AT(I64, from, i64), AT(U8, from, u8),                 \
    AT(BOOL, from, truth)
#define FLOATS(from) { AT(F32, from, f32), AT(F64, from, f64) }

static const struct cast_loops LANES_NAME(loops) = {
    .of = {
        [DTENSOR_F32] = { AT(F64, f32, f64), INTEGERS(f32) },
        [DTENSOR_F64] = { AT(F32, f64, f32), INTEGERS(f64) },
        [DTENSOR_I32] = FLOATS(i32),
        [DTENSOR_I64] = FLOATS(i64),
        [DTENSOR_U8] = FLOATS(u8),
        [DTENSOR_BOOL] = FLOATS(truth),
    },
};

#undef CAST
#undef WHOLE
#undef FROM_FLOAT
#undef TO_FLOAT
#undef AT
#undef INTEGERS
#undef FLOATS
#undef LANES_TARGET
#undef LANES_NAME

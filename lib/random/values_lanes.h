/* values_lanes.h - the loops of values.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, LANES_NAME(x), which keeps the names apart, and fused
 * multiplications and additions: LANES_FMA32(x, y, z), LANES_FMA64,
 * LANES_UNIT(x), x 2^-32 + 2^-33 of a word, and LANES_ANGLE(x), the same times
 * 2 pi of a float.
 */

/* x * mul + add, rounded once.  A product with 1 is exact. */
LANES_TARGET static void LANES_NAME(scale_f32)(float *x, size_t n, float mul,
                                               float add)
{
    if (mul == 1.0f)
        for (size_t i = 0; i < n; i++)
            x[i] += add;
    else
        for (size_t i = 0; i < n; i++)
            x[i] = LANES_FMA32(x[i], mul, add);
}

LANES_TARGET static void LANES_NAME(scale_f64)(double *x, size_t n, double mul,
                                               double add)
{
    if (mul == 1.0)
        for (size_t i = 0; i < n; i++)
            x[i] += add;
    else
        for (size_t i = 0; i < n; i++)
            x[i] = LANES_FMA64(x[i], mul, add);
}

LANES_TARGET static void LANES_NAME(unit_f32)(const uint32_t *words, size_t n,
                                              float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = LANES_UNIT(words[i]);
}

LANES_TARGET static void LANES_NAME(unit_f64)(const uint32_t *words, size_t n,
                                              double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = unit_53(words + 2 * i);
}

/* By Box and Muller: two words, two normals. */
LANES_TARGET static void LANES_NAME(gauss_f32)(const uint32_t *words, size_t n,
                                               float *out)
{
    VALUES_INDEPENDENT
    for (size_t i = 0; i < n; i += 2) {
        const float u = LANES_UNIT(words[i]);
        const float angle = LANES_ANGLE((float)words[i + 1]);
        const struct dtn_two_f32 log = log_of_f32(u);
        const struct dtn_two_f32 twice = { -2.0f * log.high, -2.0f * log.low };

        sin_cos_times(angle, sqrt_of_two(twice), &out[i], &out[i + 1]);
    }
}

LANES_TARGET static void LANES_NAME(gauss_f64)(const uint32_t *words, size_t n,
                                               double *out)
{
    VALUES_INDEPENDENT
    for (size_t i = 0; i < n; i += 2) {
        const double u = unit_53(words + 2 * i);
        const double angle = value_53(words + 2 * i + 2) * 0x1p-52 + 0x1p-53;
        const double s = __builtin_sqrt(-2.0 * log_of_f64(u));
        double sine, cosine;

        sin_cos_pi_f64(angle, &sine, &cosine);
        out[i] = s * sine;
        out[i + 1] = s * cosine;
    }
}

/* The interval contains `from` and not `to`.  A value that is `to`, by rounding
 * or because the word was the largest, becomes `from`.
 */
LANES_TARGET static void LANES_NAME(uniform_f32)(const struct dtn_dist *dist,
                                                 const uint32_t *words,
                                                 size_t n, void *out)
{
    const float to = (float)dist->to, from = (float)dist->add;
    const float range = (float)dist->mul;
    float *x = out;

    if (range == 1 && from == 0) {
        for (size_t i = 0; i < n; i++) {
            const float value = LANES_UNIT(words[i]);

            x[i] = value >= 1 ? 0 : value;
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const float value = LANES_FMA32(LANES_UNIT(words[i]), range, from);

        x[i] = value >= to ? from : value;
    }
}

LANES_TARGET static void LANES_NAME(uniform_f64)(const struct dtn_dist *dist,
                                                 const uint32_t *words,
                                                 size_t n, void *out)
{
    const double to = dist->to, from = dist->add;
    const double range = dist->mul;
    double *x = out;

    if (range == 1 && from == 0) {
        for (size_t i = 0; i < n; i++) {
            const double value = unit_53(words + 2 * i);

            x[i] = value >= 1 ? 0 : value;
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const double value = LANES_FMA64(unit_53(words + 2 * i), range, from);

        x[i] = value >= to ? from : value;
    }
}

LANES_TARGET static void LANES_NAME(normal_f32)(const struct dtn_dist *dist,
                                                const uint32_t *words,
                                                size_t n, void *out)
{
    LANES_NAME(gauss_f32)(words, n, out);
    LANES_NAME(scale_f32)(out, n, (float)dist->mul, (float)dist->add);
}

LANES_TARGET static void LANES_NAME(normal_f64)(const struct dtn_dist *dist,
                                                const uint32_t *words,
                                                size_t n, void *out)
{
    LANES_NAME(gauss_f64)(words, n, out);
    LANES_NAME(scale_f64)(out, n, dist->mul, dist->add);
}

LANES_TARGET static void LANES_NAME(log_normal_f32)(const struct dtn_dist *dist,
                                                    const uint32_t *words,
                                                    size_t n, void *out)
{
    float *x = out;

    LANES_NAME(normal_f32)(dist, words, n, out);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)exp_of_f64((double)x[i]);
}

LANES_TARGET static void LANES_NAME(log_normal_f64)(const struct dtn_dist *dist,
                                                    const uint32_t *words,
                                                    size_t n, void *out)
{
    double *x = out;

    LANES_NAME(normal_f64)(dist, words, n, out);
    for (size_t i = 0; i < n; i++)
        x[i] = exp_of_f64(x[i]);
}

/* The logarithm of 1 is set to -epsilon/2, so that no value is 0. */
LANES_TARGET static void LANES_NAME(exponential_f32)(
    const struct dtn_dist *dist, const uint32_t *words, size_t n, void *out)
{
    const float mul = (float)dist->mul;
    float *x = out;

    LANES_NAME(unit_f32)(words, n, x);
    for (size_t i = 0; i < n; i++) {
        const float y = log_of_f32(x[i]).high;

        x[i] = mul * (y > -0x1p-24f ? -0x1p-24f : y);
    }
}

LANES_TARGET static void LANES_NAME(exponential_f64)(
    const struct dtn_dist *dist, const uint32_t *words, size_t n, void *out)
{
    const double mul = dist->mul;
    double *x = out;

    LANES_NAME(unit_f64)(words, n, x);
    for (size_t i = 0; i < n; i++) {
        const double y = log_of_f64(x[i]);

        x[i] = mul * (y > -0x1p-53 ? -0x1p-53 : y);
    }
}

LANES_TARGET static void LANES_NAME(bernoulli_f32)(const struct dtn_dist *dist,
                                                   const uint32_t *words,
                                                   size_t n, void *out)
{
    const float p = (float)dist->mul;
    float *x = out;

    LANES_NAME(unit_f32)(words, n, x);
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] < p ? 1.0f : 0.0f;
}

LANES_TARGET static void LANES_NAME(bernoulli_f64)(const struct dtn_dist *dist,
                                                   const uint32_t *words,
                                                   size_t n, void *out)
{
    double *x = out;

    LANES_NAME(unit_f64)(words, n, x);
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] < dist->mul ? 1.0 : 0.0;
}

LANES_TARGET static void LANES_NAME(cut_f32)(const struct dtn_dist *dist,
                                             const uint32_t *words, size_t n,
                                             void *out)
{
    float *x = out;

    LANES_NAME(unit_f32)(words, n, x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)value_cut(dist, x[i]);
}

LANES_TARGET static void LANES_NAME(cut_f64)(const struct dtn_dist *dist,
                                             const uint32_t *words, size_t n,
                                             void *out)
{
    double *x = out;

    LANES_NAME(unit_f64)(words, n, x);
    for (size_t i = 0; i < n; i++)
        x[i] = value_cut(dist, x[i]);
}

static const struct values LANES_NAME(values) = {
    .f32 = {
        [DTN_UNIFORM] = LANES_NAME(uniform_f32),
        [DTN_NORMAL] = LANES_NAME(normal_f32),
        [DTN_LOG_NORMAL] = LANES_NAME(log_normal_f32),
        [DTN_EXPONENTIAL] = LANES_NAME(exponential_f32),
        [DTN_BERNOULLI] = LANES_NAME(bernoulli_f32),
        [DTN_TRUNC_NORMAL] = LANES_NAME(cut_f32),
    },
    .f64 = {
        [DTN_UNIFORM] = LANES_NAME(uniform_f64),
        [DTN_NORMAL] = LANES_NAME(normal_f64),
        [DTN_LOG_NORMAL] = LANES_NAME(log_normal_f64),
        [DTN_EXPONENTIAL] = LANES_NAME(exponential_f64),
        [DTN_BERNOULLI] = LANES_NAME(bernoulli_f64),
        [DTN_TRUNC_NORMAL] = LANES_NAME(cut_f64),
    },
};

#undef LANES_TARGET
#undef LANES_NAME
#undef LANES_FMA32
#undef LANES_FMA64
#undef LANES_ANGLE
#undef LANES_UNIT

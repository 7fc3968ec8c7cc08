/* finish_lanes.h - the loops of finish.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, and LANES_NAME(x), which keeps the names apart.
 */
#define EACH(value)                                                           \
    {                                                                         \
        DTN_INDEPENDENT                                                       \
        for (int64_t i = 0; i < n; i++)                                       \
            out[i] = value;                                                   \
    }
#define FINISH(kind, T)                                                       \
    LANES_TARGET static void LANES_NAME(exp_##kind)(                          \
        void *to, const void *const from[], int64_t n, const double by[2])    \
    {                                                                         \
        T *out = to;                                                          \
        const T *in = from[0];                                                \
        const T most = (T)by[0], factor = (T)by[1];                           \
                                                                              \
        DTN_INDEPENDENT                                                       \
        for (int64_t i = 0; i < n; i++)                                       \
            out[i] = dtn_exp_##kind(in[i] - most) * factor;                   \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(log_##kind)(                          \
        void *to, const void *const from[], int64_t n, const double by[2])    \
    {                                                                         \
        T *out = to;                                                          \
        const T *in = from[0];                                                \
        const T most = (T)by[0], less = (T)by[1];                             \
                                                                              \
        DTN_INDEPENDENT                                                       \
        for (int64_t i = 0; i < n; i++)                                       \
            out[i] = in[i] - most - less;                                     \
    }                                                                         \
    LANES_TARGET static void LANES_NAME(norm_##kind)(                         \
        void *to, const void *const from[], int64_t n, const double by[2])    \
    {                                                                         \
        T *out = to;                                                          \
        const T *in = from[0], *weight = from[1], *bias = from[2];            \
        const T mean = (T)by[0], rstd = (T)by[1];                             \
                                                                              \
        if (weight && bias)                                                   \
            EACH((in[i] - mean) * rstd * weight[i] + bias[i])                 \
        else if (weight)                                                      \
            EACH((in[i] - mean) * rstd * weight[i])                           \
        else if (bias)                                                        \
            EACH((in[i] - mean) * rstd + bias[i])                             \
        else                                                                  \
            EACH((in[i] - mean) * rstd)                                       \
    }

FINISH(f32, float)
FINISH(f64, double)

LANES_TARGET static double LANES_NAME(one_log_f32)(double x)
{
    return dtn_log_33_f64(x);
}

LANES_TARGET static double LANES_NAME(one_log_f64)(double x)
{
    return dtn_log_f64(x);
}

LANES_TARGET static void LANES_NAME(round)(float *out, const double total[],
                                           int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)total[i];
}

static const struct finish_loops LANES_NAME(loops) = {
    .exp = { LANES_NAME(exp_f32), LANES_NAME(exp_f64) },
    .log = { LANES_NAME(log_f32), LANES_NAME(log_f64) },
    .norm = { LANES_NAME(norm_f32), LANES_NAME(norm_f64) },
    .one_log = { LANES_NAME(one_log_f32), LANES_NAME(one_log_f64) },
    .round = LANES_NAME(round),
};

#undef EACH
#undef FINISH
#undef LANES_TARGET
#undef LANES_NAME

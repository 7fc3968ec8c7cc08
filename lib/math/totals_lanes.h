/* totals_lanes.h - the loops of totals.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, and LANES_NAME(x), which keeps the names apart.  There are
 * always 16 running totals: element i goes to number i % 16.  So the bits do
 * not depend on the width.  A step makes a total of the total `t`, the element
 * `x` and the middle `m`.
 */
#define TOTAL(name, kind, T, first, step, join)                               \
    LANES_TARGET static double LANES_NAME(name##_##kind)(                     \
        const void *elements, int64_t n, double total, double m)              \
    {                                                                         \
        const T *array = elements;                                            \
        double lane[16];                                                      \
        int64_t i = 0;                                                        \
                                                                              \
        for (int j = 0; j < 16; j++)                                          \
            lane[j] = first;                                                  \
        for (; i + 16 <= n; i += 16)                                          \
            for (int j = 0; j < 16; j++) {                                    \
                const double x = (double)array[i + j], t = lane[j];           \
                                                                              \
                lane[j] = step;                                               \
            }                                                                 \
        for (int j = 0; i < n; i++, j++) {                                    \
            const double x = (double)array[i], t = lane[j];                   \
                                                                              \
            lane[j] = step;                                                   \
        }                                                                     \
        for (int j = 0; j < 16; j++) {                                        \
            const double t = total, x = lane[j];                              \
                                                                              \
            total = join;                                                     \
        }                                                                     \
        return total;                                                         \
    }

#define LARGER(x) ((((x) > t) | ((x) != (x))) ? (x) : t)
#define SMALLER(x) ((((x) < t) | ((x) != (x))) ? (x) : t)

#define TOTALS(kind, T)                                                       \
    TOTAL(sum, kind, T, 0, t + x, t + x)                                      \
    TOTAL(prod, kind, T, 1, t * x, t * x)                                     \
    TOTAL(max, kind, T, (double)-INFINITY, LARGER(x), LARGER(x))              \
    TOTAL(min, kind, T, (double)INFINITY, SMALLER(x), SMALLER(x))             \
    TOTAL(count, kind, T, 0, t + (x != 0 ? 1.0 : 0.0), t + x)                 \
    TOTAL(abs, kind, T, 0, t + fabs(x), t + x)                                \
    TOTAL(squares, kind, T, 0, t + (x - m) * (x - m), t + x)                  \
    TOTAL(most, kind, T, 0, LARGER(fabs(x)), LARGER(x))                       \
    TOTAL(least, kind, T, (double)INFINITY, SMALLER(fabs(x)), SMALLER(x))     \
    LANES_TARGET static double LANES_NAME(exp_##kind)(                        \
        const void *elements, int64_t n, double total, double middle)         \
    {                                                                         \
        const T *x = elements, m = (T)middle;                                 \
        T made[DTN_BLOCK];                                                    \
                                                                              \
        for (int64_t i = 0; i < n; i++)                                       \
            made[i] = dtn_exp_##kind(x[i] - m);                               \
        return LANES_NAME(sum_##kind)(made, n, total, 0);                     \
    }                                                                         \
    static double LANES_NAME(powers_##kind)(                                  \
        const void *elements, int64_t n, double total, double middle)         \
    {                                                                         \
        const T *x = elements;                                                \
                                                                              \
        for (int64_t i = 0; i < n; i++)                                       \
            total += pow(fabs((double)x[i]), middle);                         \
        return total;                                                         \
    }

TOTALS(f32, float)
TOTALS(f64, double)

#define ROW(kind) {                                                           \
    LANES_NAME(sum_##kind), LANES_NAME(prod_##kind), LANES_NAME(max_##kind),  \
    LANES_NAME(min_##kind), LANES_NAME(count_##kind), LANES_NAME(abs_##kind), \
    LANES_NAME(squares_##kind), LANES_NAME(most_##kind),                      \
    LANES_NAME(least_##kind), LANES_NAME(exp_##kind),                         \
    LANES_NAME(powers_##kind) }

static const struct totals_loops LANES_NAME(loops) = {
    .of = { ROW(f32), ROW(f64) },
};

#undef TOTAL
#undef LARGER
#undef SMALLER
#undef TOTALS
#undef ROW
#undef LANES_TARGET
#undef LANES_NAME

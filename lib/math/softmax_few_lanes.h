/* softmax_few_lanes.h - the loops of softmax_few.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, and LANES_NAME(x), which keeps the names apart.  Elements
 * are added in the order of the lanes of totals.c: the first and the middle
 * one, and so on.  A sum that is no NaN has a 1 in it.
 */
#define SUM_2(i, step) ((double)e[i] + (double)e[(i) + (step)])
#define SUM_4(i, step) (SUM_2(i, 2 * (step)) + SUM_2((i) + (step), 2 * (step)))
#define SUM_8(i, step) (SUM_4(i, 2 * (step)) + SUM_4((i) + (step), 2 * (step)))
#define FEW_LOOP(name, kind, T, rows, end, result)                            \
    LANES_TARGET static bool LANES_NAME(name##_##rows##_##kind)(              \
        void *const out[], const void *const in[], int64_t columns)           \
    {                                                                         \
        int nans = 0;                                                         \
                                                                              \
        DTN_INDEPENDENT                                                       \
        for (int64_t k = 0; k < columns; k++) {                               \
            T x[rows], e[rows], most;                                         \
                                                                              \
            EACH_OF(rows)                                                     \
                x[i] = ((const T *)in[i])[k];                                 \
            most = x[0];                                                      \
            EACH_OF(rows)                                                     \
                most = x[i] > most ? x[i] : most;                             \
            EACH_OF(rows)                                                     \
                e[i] = dtn_exp_below_##kind(x[i] - most);                     \
                                                                              \
            const double sum = SUM_##rows(0, 1);                              \
            const T by = (T)(end);                                            \
                                                                              \
            nans |= sum != sum;                                               \
            EACH_OF(rows)                                                     \
                ((T *)out[i])[k] = result;                                    \
        }                                                                     \
        return nans == 0;                                                     \
    }
#define FEW_LOOPS(name, kind, T, end, result)                                 \
    FEW_LOOP(name, kind, T, 2, end, result)                                   \
    FEW_LOOP(name, kind, T, 4, end, result)                                   \
    FEW_LOOP(name, kind, T, 8, end, result)
#define OF_ROWS(name)                                                         \
    { LANES_NAME(name##_2_f32), LANES_NAME(name##_4_f32),                     \
      LANES_NAME(name##_8_f32) },                                             \
    { LANES_NAME(name##_2_f64), LANES_NAME(name##_4_f64),                     \
      LANES_NAME(name##_8_f64) }

FEW_LOOPS(softmax, f32, float, 1 / sum, e[i] * by)
FEW_LOOPS(softmax, f64, double, 1 / sum, e[i] * by)
FEW_LOOPS(logarithm, f32, float, dtn_log_near_f64(sum), x[i] - most - by)
FEW_LOOPS(logarithm, f64, double, dtn_log_f64(sum), x[i] - most - by)

static const struct few_loops LANES_NAME(loops) = {
    { OF_ROWS(softmax) },
    { OF_ROWS(logarithm) },
};

#undef SUM_2
#undef SUM_4
#undef SUM_8
#undef FEW_LOOP
#undef FEW_LOOPS
#undef OF_ROWS
#undef LANES_TARGET
#undef LANES_NAME

/* softmax_few_lanes.h - the loops of softmax_few.c, for one vector width
 *
 * Included once for each width with LANES_TARGET, the attribute that asks the
 * compiler for it, and LANES_NAME(x), which keeps the names apart.  Elements
 * are added in the order of the lanes of totals.c: the first and the middle
 * one, and so on, of the next power of two; those that there are not are 0.  A
 * sum that is no NaN has a 1 in it.
 */
#define SUM_1(i, step) ((double)e[i])
#define SUM_2(i, step) ((double)e[i] + (double)e[(i) + (step)])
#define SUM_4(i, step) (SUM_2(i, 2 * (step)) + SUM_2((i) + (step), 2 * (step)))
#define SUM_8(i, step) (SUM_4(i, 2 * (step)) + SUM_4((i) + (step), 2 * (step)))
#define FEW_LOOP(name, kind, T, rows, most_rows, end, result)                 \
    LANES_TARGET static bool LANES_NAME(name##_##rows##_##kind)(              \
        void *const out[], const void *const in[], int64_t columns)           \
    {                                                                         \
        int nans = 0;                                                         \
                                                                              \
        DTN_INDEPENDENT                                                       \
        for (int64_t k = 0; k < columns; k++) {                               \
            T x[rows], e[most_rows] = { 0 }, most;                            \
                                                                              \
            EACH_OF(rows)                                                     \
                x[i] = ((const T *)in[i])[k];                                 \
            most = x[0];                                                      \
            EACH_OF(rows)                                                     \
                most = x[i] > most ? x[i] : most;                             \
            EACH_OF(rows)                                                     \
                e[i] = dtn_exp_below_##kind(x[i] - most);                     \
                                                                              \
            const double sum = SUM_##most_rows(0, 1);                         \
            const T by = (T)(end);                                            \
                                                                              \
            nans |= sum != sum;                                               \
            EACH_OF(rows)                                                     \
                ((T *)out[i])[k] = result;                                    \
        }                                                                     \
        return nans == 0;                                                     \
    }
#define FEW_LOOPS(name, kind, T, end, result)                                 \
    FEW_LOOP(name, kind, T, 1, 1, end, result)                                \
    FEW_LOOP(name, kind, T, 2, 2, end, result)                                \
    FEW_LOOP(name, kind, T, 3, 4, end, result)                                \
    FEW_LOOP(name, kind, T, 4, 4, end, result)                                \
    FEW_LOOP(name, kind, T, 5, 8, end, result)                                \
    FEW_LOOP(name, kind, T, 6, 8, end, result)                                \
    FEW_LOOP(name, kind, T, 7, 8, end, result)                                \
    FEW_LOOP(name, kind, T, 8, 8, end, result)
#define OF_ROWS(name, kind)                                                   \
    { LANES_NAME(name##_1_##kind), LANES_NAME(name##_2_##kind),               \
      LANES_NAME(name##_3_##kind), LANES_NAME(name##_4_##kind),               \
      LANES_NAME(name##_5_##kind), LANES_NAME(name##_6_##kind),               \
      LANES_NAME(name##_7_##kind), LANES_NAME(name##_8_##kind) }

FEW_LOOPS(softmax, f32, float, 1 / sum, e[i] * by)
FEW_LOOPS(softmax, f64, double, 1 / sum, e[i] * by)
FEW_LOOPS(logarithm, f32, float, dtn_log_near_f64(sum), x[i] - most - by)
FEW_LOOPS(logarithm, f64, double, dtn_log_f64(sum), x[i] - most - by)

static const struct few_loops LANES_NAME(loops) = {
    { OF_ROWS(softmax, f32), OF_ROWS(softmax, f64) },
    { OF_ROWS(logarithm, f32), OF_ROWS(logarithm, f64) },
};

#undef SUM_1
#undef SUM_2
#undef SUM_4
#undef SUM_8
#undef FEW_LOOP
#undef FEW_LOOPS
#undef OF_ROWS
#undef LANES_TARGET
#undef LANES_NAME

/* softmax_few.c - softmax of columns of up to eight elements
 *
 * Such columns are not worth several passes: one loop over columns, of its own
 * for each number of elements, loads them, finds the largest, makes and adds
 * the exponentials and stores the results, and nothing of it goes through
 * memory.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math")
#endif

#include "math/softmax_few.h"
#include "math/block.h"
#include "math/functions.h"
#include "math/width.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* So many columns are done at once, and again row by row if one has a NaN. */
enum { FEW = DTN_SOFTMAX_FEW, SOME = 512 };

/* A loop that must not stay one: then GCC makes vectors of columns. */
#if defined(__GNUC__) && !defined(__clang__)
#define EACH_OF(rows) _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++)
#else
#define EACH_OF(rows) for (int i = 0; i < rows; i++)
#endif

/* out[i] may be in[i].  False: a sum is NaN. */
typedef bool few_f(void *const out[], const void *const in[], int64_t columns);

/* Of f32, of f64; of 1 to 8 rows. */
struct few_loops {
    few_f *softmax[2][FEW], *logarithm[2][FEW];
};

#define LANES_FILE "math/softmax_few_lanes.h"
#define LANES_LOOPS struct few_loops
#include "math/width_lanes.h"

/* Where the rows are that the loop takes and makes. */
struct few {
    struct dtn_columns of;        /* at most SOME                             */
    struct dtn_storage how;
    const void *in[FEW];
    void *out[FEW];
    _Alignas(64) float room[FEW][SOME];        /* of narrower floats          */
};

static char *row_at(const struct few *few, const char *array, int64_t i,
                    int64_t apart)
{
    return (char *)array + i * apart *
                           (int64_t)dtn_dtype_size(few->how.dtype);
}

static void rows_begin(struct few *few)
{
    const struct dtn_columns *of = &few->of;

    for (int64_t i = 0; i < of->n; i++) {
        few->in[i] = dtn_block_load(&few->how,
                                    row_at(few, of->in, i, of->in_apart),
                                    of->count, few->room[i]);
        few->out[i] = dtn_block_place(&few->how,
                                      row_at(few, of->out, i, of->out_apart),
                                      few->room[i]);
    }
}

static void rows_end(const struct few *few)
{
    for (int64_t i = 0; i < few->of.n; i++)
        if (few->out[i] == few->room[i])
            dtn_block_store(&few->how, row_at(few, few->of.out, i,
                                              few->of.out_apart),
                            few->of.count, few->room[i]);
}

int64_t dtn_softmax_few(bool logarithm, const struct dtn_columns *columns)
{
    struct few few;                       /* initialised as far as it is used */
    const struct few_loops *loops = widths[dtn_width()];
    few_f *const *of;

    few.of = *columns;
    few.how = (struct dtn_storage){ columns->dtype,
                                    dtn_block_type(columns->dtype), 1 };
    if (few.of.count > SOME)
        few.of.count = SOME;
    of = (logarithm ? loops->logarithm
                    : loops->softmax)[few.how.work == DTENSOR_F64];
    rows_begin(&few);
    if (!of[few.of.n - 1](few.out, few.in, few.of.count))
        return 0;
    rows_end(&few);
    return few.of.count;
}

/* bundle.c - neighbouring rows that lie apart, as rows without gaps
 *
 * Of 1024 x 1024 f32 along the first dimension a bundle is 32 columns: 128 KiB,
 * of which each cache line of 16 columns is read once.
 */
#include "math/bundle.h"
#include "base/dtype.h"

#include <stdbool.h>
#include <stddef.h>

enum { LEAST = 4, WHOLE = 16 };   /* rows, for which a copy is worth it; that */
                                  /* fill cache lines                         */

int64_t dtn_bundle_rows(int64_t beside, int64_t apart, int64_t n, int64_t step,
                        size_t size)
{
    const int64_t fit = n > 0 ? DTN_BUNDLE_BYTES / (n * (int64_t)size) : 0;
    const int64_t most = fit > WHOLE ? fit - fit % WHOLE : fit;
    const int64_t count = beside < most ? beside : most;

    return step != 1 && apart == 1 && n > 1 && count >= LEAST ? count : 0;
}

int64_t dtn_bundle_strips(const struct dtn_strips *rows, int i)
{
    if (rows->row.ndim > 0 || rows->row.empty || rows->outer.empty)
        return 0;
    return dtn_bundle_rows(dtn_strips_beside(rows), rows->outer.step[i],
                           rows->row.run, rows->row.step[i],
                           rows->row.size[i]);
}

struct dtn_array dtn_bundle_view(const struct dtn_strips *rows, int i,
                                 int64_t count)
{
    const int64_t step = rows->row.step[i];

    return (struct dtn_array){
        .data = rows->row.at[i], .dtype = rows->how[i].dtype, .ndim = 2,
        .shape = { count, step == 0 ? 1 : rows->row.run },
        .stride = { rows->outer.step[i], step } };
}

struct dtn_array dtn_bundle_take(const struct dtn_array *view, void *room)
{
    const struct dtn_array copy = dtn_array_packed(room, view->dtype, 2,
                                                   view->shape);

    dtn_array_copy(&copy, view);
    return copy;
}

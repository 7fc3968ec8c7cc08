/* matmul.c - products of matrices
 *
 * One row of the result at a time: element k of the row of `a` times row k of
 * `b` is added to the sums.  Each sum has its terms in the order of k, with
 * fused multiply-add, whatever the shape of the matrix is.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=off")
#endif

#include "math/matmul.h"
#include "math/block.h"
#include "math/loop.h"
#include "math/width.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef void madd_f(void *sums, const void *factor, const void *row, int64_t n);

struct matmul_loops { madd_f *of[DTENSOR_NDTYPES]; };

#define LANES_TARGET
#define LANES_NAME(name) name##_plain
#include "math/matmul_lanes.h"

#ifdef DTN_WIDTHS
#define LANES_TARGET DTN_TARGET_AVX2
#define LANES_NAME(name) name##_avx2
#include "math/matmul_lanes.h"

#define LANES_TARGET DTN_TARGET_AVX512
#define LANES_NAME(name) name##_avx512
#include "math/matmul_lanes.h"
#endif

static const struct matmul_loops *const widths[] = {
    &loops_plain,
#ifdef DTN_WIDTHS
    &loops_avx2,
    &loops_avx512,
#endif
};

size_t dtn_matmul_workspace(const struct dtn_array *out,
                            const struct dtn_array *a,
                            const struct dtn_array *b, unsigned flags)
{
    return 0;
}

/* One product of two matrices. */
struct product {
    enum dtensor_dtype dtype, work;
    int64_t m, n, k;
    int64_t out[2], a[2], b[2];   /* strides: rows, columns; elements         */
    bool adds;
};

/* n <= DTN_BLOCK sums of row i from column j on. */
static void product_part(const struct product *p, char *out, const char *a,
                         const char *b, int64_t n)
{
    _Alignas(64) char sums[DTN_BLOCK_BYTES], rows[DTN_BLOCK_BYTES], one[16];
    const int64_t size = (int64_t)dtn_dtype_size(p->dtype);
    const struct dtn_storage to = { p->dtype, p->work, p->out[1] };
    const struct dtn_storage row = { p->dtype, p->work, p->b[1] };
    const struct dtn_storage element = { p->dtype, p->work, 1 };
    const void *old = sums;

    memset(sums, 0, sizeof sums);
    if (p->adds)
        old = dtn_block_load(&to, out, n, sums);
    if (old != sums)
        memcpy(sums, old, (size_t)n * dtn_dtype_size(p->work));
    for (int64_t k = 0; k < p->k; k++)
        widths[dtn_width()]->of[p->work](
            sums, dtn_block_load(&element, a + k * p->a[1] * size, 1, one),
            dtn_block_load(&row, b + k * p->b[0] * size, n, rows), n);
    if (dtn_block_place(&to, out, sums) == sums)
        dtn_block_store(&to, out, n, sums);
    else
        memcpy(out, sums, (size_t)(n * size));
}

static void product(const struct product *p, char *out, const char *a,
                    const char *b)
{
    const int64_t size = (int64_t)dtn_dtype_size(p->dtype);

    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j += DTN_BLOCK)
            product_part(p, out + (i * p->out[0] + j * p->out[1]) * size,
                         a + i * p->a[0] * size, b + j * p->b[1] * size,
                         p->n - j < DTN_BLOCK ? p->n - j : DTN_BLOCK);
}

/* The array without its last two dimensions, with the shape of `out`. */
static struct dtn_array batch_of(const struct dtn_array *array,
                                 const struct dtn_array *out)
{
    struct dtn_array batch = *array, like = *out;

    like.ndim = batch.ndim = out->ndim - 2;
    return dtn_array_expanded(&batch, &like);
}

void dtn_matmul(const struct dtn_array *out, const struct dtn_array *a,
                const struct dtn_array *b, unsigned flags, void *workspace)
{
    const int r = out->ndim - 2, c = out->ndim - 1;
    const struct product p = {
        .dtype = out->dtype, .work = dtn_block_type(out->dtype),
        .m = out->shape[r], .n = out->shape[c], .k = a->shape[c],
        .out = { out->stride[r], out->stride[c] },
        .a = { a->stride[r], a->stride[c] },
        .b = { b->stride[r], b->stride[c] },
        .adds = flags & DTN_MATMUL_ADD,
    };
    const struct dtn_array batches[3] = { batch_of(out, out), batch_of(a, out),
                                          batch_of(b, out) };
    struct dtn_loop loop;

    dtn_loop_begin(&loop, batches, 3);
    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop))
        for (int64_t i = 0; i < loop.run; i++)
            product(&p, loop.at[0] + i * loop.step[0] * (int64_t)loop.size[0],
                    loop.at[1] + i * loop.step[1] * (int64_t)loop.size[1],
                    loop.at[2] + i * loop.step[2] * (int64_t)loop.size[2]);
}

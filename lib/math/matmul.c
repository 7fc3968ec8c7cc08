/* matmul.c - products of matrices
 *
 * Floats go to the BLAS if there is one.  A BLAS takes f32 and f64 whose rows
 * or columns are contiguous.  A matrix of bf16, or one with gaps everywhere, is
 * first copied to the workspace in such a form, and so is the result.
 *
 * Without a BLAS, with DTN_MATMUL_REPRO, of narrow floats, and where the
 * vectors of the BLAS are narrower than those of the CPU, tiles.c multiplies
 * matrices, which it reads as they lie.  Of small matrices and other types one
 * row of the result is made at a time: element k of the row of `a` times row k
 * of `b` is added to the sums.  In both each sum has its terms in the order of
 * k, with fused multiply-add, whatever the shape of the matrix is.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=off")
#endif

#include "math/matmul.h"
#include "math/blas.h"
#include "math/block.h"
#include "math/loop.h"
#include "math/pointwise.h"
#include "math/tiles.h"
#include "math/width.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef void madd_f(void *sums, const void *factor, const void *row, int64_t n);

struct matmul_loops { madd_f *of[DTENSOR_NDTYPES]; };

#define LANES_FILE "math/matmul_lanes.h"
#define LANES_LOOPS struct matmul_loops
#include "math/width_lanes.h"

/* One product of two matrices: m x k by k x n. */
struct product {
    enum dtensor_dtype dtype, work;
    int64_t m, n, k;
    int64_t out[2], a[2], b[2];   /* strides: rows, columns; elements         */
    unsigned flags;
};

static struct product product_of(const struct dtn_array *out,
                                 const struct dtn_array *a,
                                 const struct dtn_array *b, unsigned flags)
{
    const int r = out->ndim - 2, c = out->ndim - 1;

    return (struct product){
        .dtype = out->dtype, .work = dtn_block_type(out->dtype),
        .m = out->shape[r], .n = out->shape[c], .k = a->shape[c],
        .out = { out->stride[r], out->stride[c] },
        .a = { a->stride[r], a->stride[c] },
        .b = { b->stride[r], b->stride[c] },
        .flags = flags,
    };
}

/* ---------------------------------------------------------- own loops --- */

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
    if (p->flags & DTN_MATMUL_ADD)
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

static void product_own(const struct product *p, char *out, const char *a,
                        const char *b)
{
    const int64_t size = (int64_t)dtn_dtype_size(p->dtype);

    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j += DTN_BLOCK)
            product_part(p, out + (i * p->out[0] + j * p->out[1]) * size,
                         a + i * p->a[0] * size, b + j * p->b[1] * size,
                         p->n - j < DTN_BLOCK ? p->n - j : DTN_BLOCK);
}

/* ------------------------------------------------- BLAS, or the tiles --- */

enum { BLAS_LEAST = 512 };       /* terms: fewer are not worth the call       */

enum { TILES_LEAST = 8192 };     /* terms: fewer are not worth a copy        */

static bool product_is_float(const struct product *p, double least)
{
    return (p->work == DTENSOR_F32 || p->work == DTENSOR_F64) && p->k > 0 &&
           (double)p->m * (double)p->n * (double)p->k >= least;
}

/* Short rows of the result are as well made one by one. */
static bool tiles_take(const struct product *p)
{
    return product_is_float(p, TILES_LEAST) && p->n >= 16 && p->m >= 4;
}

/* OpenBLAS copies a transposed second factor of f32 slowly. */
static bool product_is_slow(const struct product *p)
{
    return p->work == DTENSOR_F32 && p->b[0] == 1 && p->b[1] != 1 &&
           p->m >= 16 && p->n >= 64;
}

/* Are the tiles faster than the BLAS?  They are 32 columns wide, and a BLAS
 * would need copies of narrow floats as f32.
 */
static bool tiles_win(const struct product *p)
{
    return tiles_take(p) &&
           (p->dtype != p->work ||
            (p->n >= 32 && dtn_blas_behind(product_is_slow(p))));
}

static bool product_by_blas(const struct product *p)
{
    return product_is_float(p, BLAS_LEAST) && !(p->flags & DTN_MATMUL_REPRO) &&
           p->m < INT32_MAX && p->n < INT32_MAX && p->k < INT32_MAX &&
           dtn_blas_ok() && !tiles_win(p);
}

/* Can rows x columns elements of these strides be given to a BLAS?  Then
 * *matrix says how.  Of one row the stride between rows does not matter.
 */
static bool blas_takes(const struct product *p, const int64_t stride[2],
                       int64_t rows, int64_t columns,
                       struct dtn_blas_matrix *matrix)
{
    const int64_t row = rows > 1 ? stride[0] : columns;
    const int64_t column = columns > 1 ? stride[1] : rows;

    if (p->dtype != p->work)
        return false;
    matrix->transposed = !((stride[1] == 1 || columns == 1) && row >= columns);
    matrix->stride = matrix->transposed ? column : row;
    if (!matrix->transposed)
        return row < INT32_MAX;
    return (stride[0] == 1 || rows == 1) && column >= rows &&
           column < INT32_MAX;
}

static size_t copy_bytes(const struct product *p, int64_t rows, int64_t columns)
{
    const size_t bytes = (size_t)(rows * columns) * dtn_dtype_size(p->work);

    return (bytes + 63) / 64 * 64;
}

/* What of a product is copied, and the bytes of the copies. */
struct copies {
    bool out, a, b;
    struct dtn_blas_call call;    /* its addresses are those of one product   */
    size_t out_bytes, a_bytes, b_bytes;
};

/* A result whose columns are contiguous is copied, too: it is rare. */
static struct copies copies_of(const struct product *p, bool by_blas)
{
    struct copies c = { .call = { .dtype = p->work, .m = p->m, .n = p->n,
                                  .k = p->k,
                                  .beta = p->flags & DTN_MATMUL_ADD } };

    c.out = !blas_takes(p, p->out, p->m, p->n, &c.call.out) ||
            c.call.out.transposed;
    c.a = by_blas && !blas_takes(p, p->a, p->m, p->k, &c.call.a);
    c.b = by_blas && !blas_takes(p, p->b, p->k, p->n, &c.call.b);
    if (c.out) {
        c.call.out = (struct dtn_blas_matrix){ .stride = p->n };
        c.out_bytes = copy_bytes(p, p->m, p->n);
    }
    if (c.a) {
        c.call.a = (struct dtn_blas_matrix){ .stride = p->k };
        c.a_bytes = copy_bytes(p, p->m, p->k);
    }
    if (c.b) {
        c.call.b = (struct dtn_blas_matrix){ .stride = p->n };
        c.b_bytes = copy_bytes(p, p->k, p->n);
    }
    return c;
}

static struct dtn_array matrix_at(enum dtensor_dtype dtype, const char *at,
                                  int64_t rows, int64_t columns,
                                  const int64_t stride[2])
{
    return (struct dtn_array){ .data = (void *)at, .dtype = dtype, .ndim = 2,
                               .shape = { rows, columns },
                               .stride = { stride[0], stride[1] } };
}

/* Rows without gaps, in the type of the computation, `at` bytes behind the
 * start of the workspace, which is NULL if nothing is copied.
 */
static struct dtn_array copy_at(const struct product *p, char *workspace,
                                size_t at, int64_t rows, int64_t columns)
{
    const int64_t shape[] = { rows, columns };

    return dtn_array_packed(workspace ? workspace + at : NULL, p->work, 2,
                            shape);
}

/* A copy of a factor, `before` bytes behind the start of the workspace. */
static void *factor_copy(const struct product *p, struct dtn_array from,
                         char *workspace, size_t before)
{
    const struct dtn_array copy = copy_at(p, workspace, before, from.shape[0],
                                          from.shape[1]);

    dtn_cast(&copy, &from);
    return copy.data;
}

/* The result where it lies, or a copy of it in the workspace. */
static void blas_run(const struct product *p, char *const at[3], char *out,
                     char *workspace, struct copies *c)
{
    c->call.a.data = !c->a ? at[1] : factor_copy(
        p, matrix_at(p->dtype, at[1], p->m, p->k, p->a), workspace,
        c->out_bytes);
    c->call.b.data = !c->b ? at[2] : factor_copy(
        p, matrix_at(p->dtype, at[2], p->k, p->n, p->b), workspace,
        c->out_bytes + c->a_bytes);
    c->call.out.data = out;
    dtn_blas_multiply(&c->call);
}

static struct dtn_tiles_call tiles_call(const struct product *p,
                                        const struct copies *c)
{
    return (struct dtn_tiles_call){
        .work = p->work, .m = p->m, .n = p->n, .k = p->k,
        .adds = p->flags & DTN_MATMUL_ADD,
        .apart = c->call.out.stride,
        .a = { .dtype = p->dtype, .stride = { p->a[0], p->a[1] } },
        .b = { .dtype = p->dtype, .stride = { p->b[0], p->b[1] } },
    };
}

static void tiles_run(const struct product *p, char *const at[3], char *out,
                      char *workspace, const struct copies *c)
{
    struct dtn_tiles_call call = tiles_call(p, c);

    call.out = out;
    call.a.data = at[1];
    call.b.data = at[2];
    dtn_tiles_multiply(&call, workspace + c->out_bytes);
}

static void run(const struct product *p, bool by_blas, char *const at[3],
                char *out, char *workspace, struct copies *c)
{
    if (by_blas)
        blas_run(p, at, out, workspace, c);
    else
        tiles_run(p, at, out, workspace, c);
}

static void product_float(const struct product *p, bool by_blas,
                          char *const at[3], char *workspace,
                          struct copies *c)
{
    if (!c->out) {
        run(p, by_blas, at, at[0], workspace, c);
        return;
    }

    const struct dtn_array out = matrix_at(p->dtype, at[0], p->m, p->n, p->out);
    const struct dtn_array copy = copy_at(p, workspace, 0, p->m, p->n);

    if (p->flags & DTN_MATMUL_ADD)
        dtn_cast(&copy, &out);
    run(p, by_blas, at, workspace, workspace, c);
    dtn_cast(&out, &copy);
}

/* -------------------------------------------------------------- batch --- */

size_t dtn_matmul_workspace(const struct dtn_array *out,
                            const struct dtn_array *a,
                            const struct dtn_array *b, unsigned flags)
{
    const struct product p = product_of(out, a, b, flags);

    const bool by_blas = product_by_blas(&p);

    if (!by_blas && !tiles_take(&p))
        return 0;

    const struct copies c = copies_of(&p, by_blas);
    const struct dtn_tiles_call tiles = tiles_call(&p, &c);

    return c.out_bytes + c.a_bytes + c.b_bytes +
           (by_blas ? 0 : dtn_tiles_bytes(&tiles));
}

/* The array without its last two dimensions, with the shape of `out`. */
static struct dtn_array batch_of(const struct dtn_array *array,
                                 const struct dtn_array *out)
{
    struct dtn_array batch = *array, like = *out;

    like.ndim = batch.ndim = out->ndim - 2;
    return dtn_array_expanded(&batch, &like);
}

static char *batch_at(const struct dtn_loop *loop, int array, int64_t i)
{
    return loop->at[array] + i * loop->step[array] *
                             (int64_t)loop->size[array];
}

/* A run of products whose matrices lie as a BLAS takes them. */
static void run_by_blas(const struct dtn_loop *loop, struct dtn_blas_call call)
{
    int64_t apart[3];

    for (int k = 0; k < 3; k++)
        apart[k] = loop->step[k] * (int64_t)loop->size[k];
    call.out.data = loop->at[0];
    call.a.data = loop->at[1];
    call.b.data = loop->at[2];
    dtn_blas_multiply_each(&call, loop->run, apart);
}

static void run_each(const struct product *p, const struct dtn_loop *loop,
                     bool by_blas, void *workspace, struct copies *copies)
{
    const bool copied = by_blas || tiles_take(p);

    for (int64_t i = 0; i < loop->run; i++) {
        char *at[3];

        for (int k = 0; k < 3; k++)
            at[k] = batch_at(loop, k, i);
        if (copied)
            product_float(p, by_blas, at, workspace, copies);
        else
            product_own(p, at[0], at[1], at[2]);
    }
}

void dtn_matmul(const struct dtn_array *out, const struct dtn_array *a,
                const struct dtn_array *b, unsigned flags, void *workspace)
{
    const struct product p = product_of(out, a, b, flags);
    const bool by_blas = product_by_blas(&p);
    struct copies copies = copies_of(&p, by_blas);
    const bool direct = by_blas && !copies.out && !copies.a && !copies.b;

    if (direct && out->ndim == 2) {               /* a small one is 0.2 us    */
        copies.call.out.data = out->data;
        copies.call.a.data = a->data;
        copies.call.b.data = b->data;
        dtn_blas_multiply(&copies.call);
        return;
    }

    const struct dtn_array batches[3] = { batch_of(out, out), batch_of(a, out),
                                          batch_of(b, out) };
    struct dtn_loop loop;

    dtn_loop_begin(&loop, batches, 3);
    for (bool more = !loop.empty; more; more = dtn_loop_next(&loop))
        if (direct)
            run_by_blas(&loop, copies.call);
        else
            run_each(&p, &loop, by_blas, workspace, &copies);
}

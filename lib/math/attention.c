/* attention.c - softmax(scale q k^T) v, and its gradients
 *
 * For 64 queries and 128 keys at a time the scores are a product of matrices.
 * The largest score of a query so far is `most`, the sum of exp(score - most)
 * `sum`; a block with a larger score multiplies what came before by
 * exp(old most - most).
 */
#include "math/attention.h"
#include "math/block.h"
#include "math/finish.h"
#include "math/matmul.h"
#include "math/pointwise.h"
#include "math/totals.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <math.h>
#include <string.h>

enum { QUERIES = 64, KEYS = 128 };         /* of one block                    */

/* Matrices of one head, or of blocks of it, in the type of computation. */
struct head {
    const struct dtn_attention *a;
    enum dtensor_dtype work;      /* f32 or f64                               */
    int64_t n, h;                 /* which head                               */
    struct dtn_array q, k, v;     /* blocks of queries, scaled, keys, values  */
    struct dtn_array scores;      /* QUERIES x KEYS                           */
    struct dtn_array made;        /* QUERIES x V: of the result; of its       */
                                  /* gradient                                 */
    struct dtn_array late;        /* QUERIES x 1: what corrects `made`        */
    struct dtn_array slopes;      /* QUERIES x KEYS: gradients of scores      */
    struct dtn_array dq, dk, dv;  /* of all queries; of a block of keys       */
    double most[QUERIES], sum[QUERIES];          /* of the block's queries    */
    double dot[QUERIES];          /* sums of grad out                         */
    void *room;                   /* of the products                          */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ------------------------------------------------------------ workspace --- */

static struct dtn_array matrix(void *data, enum dtensor_dtype dtype,
                               int64_t rows, int64_t columns)
{
    return dtn_array_packed(data, dtype, 2, (const int64_t[]){ rows, columns });
}

/* Place a matrix in memory; without memory only count. */
static void place(char *memory, size_t *at, enum dtensor_dtype dtype,
                  int64_t rows, int64_t columns, struct dtn_array *made)
{
    *made = matrix(memory ? memory + *at : NULL, dtype, rows, columns);
    *at += ((size_t)(rows * columns) * dtn_dtype_size(dtype) + 63) / 64 * 64;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* What a product of blocks needs, by a BLAS or, if the last block is small, by
 * the own loops.
 */
static size_t product_room(const struct dtn_array *out,
                           const struct dtn_array *a, const struct dtn_array *b)
{
    return larger(dtn_matmul_workspace(out, a, b, DTN_MATMUL_ADD),
                  dtn_matmul_workspace(out, a, b, DTN_MATMUL_ADD |
                                                  DTN_MATMUL_REPRO));
}

static size_t products_room(const struct head *head)
{
    const struct dtn_array *scores = &head->scores;
    const struct dtn_array turned = dtn_array_swapped(scores, 0, 1);
    const struct dtn_array keys = dtn_array_swapped(&head->k, 0, 1);
    const struct dtn_array values = dtn_array_swapped(&head->v, 0, 1);

    return larger(larger(product_room(scores, &head->q, &keys),
                         product_room(scores, &head->made, &values)),
                  larger(larger(product_room(&head->made, scores, &head->v),
                                product_room(&head->q, scores, &head->k)),
                         larger(product_room(&head->k, &turned, &head->q),
                                product_room(&head->v, &turned,
                                             &head->made))));
}

/* Set up for blocks of whole size; returns the bytes of all. */
static size_t head_begin(struct head *head, const struct dtn_attention *a,
                         bool gradients, char *memory)
{
    const int64_t width = a->q->shape[3], values = a->v->shape[3];
    const enum dtensor_dtype work = dtn_block_type(a->q->dtype);
    size_t at = 0;

    *head = (struct head){ .a = a, .work = work };
    place(memory, &at, work, QUERIES, width, &head->q);
    place(memory, &at, work, KEYS, width, &head->k);
    place(memory, &at, work, KEYS, values, &head->v);
    place(memory, &at, work, QUERIES, KEYS, &head->scores);
    place(memory, &at, work, QUERIES, values, &head->made);
    place(memory, &at, work, QUERIES, 1, &head->late);
    if (gradients) {
        place(memory, &at, work, QUERIES, KEYS, &head->slopes);
        place(memory, &at, work, a->q->shape[2], width, &head->dq);
        place(memory, &at, work, KEYS, width, &head->dk);
        place(memory, &at, work, KEYS, values, &head->dv);
    }
    head->room = memory ? memory + at : NULL;
    return at + products_room(head);
}

size_t dtn_attention_workspace(const struct dtn_attention *a, bool gradients)
{
    struct head head;

    return head_begin(&head, a, gradients, NULL);
}

/* --------------------------------------------------------------- blocks --- */

/* Rows `first` and up of the head's matrix in a packed array. */
static struct dtn_array rows_of(const struct head *head,
                                const struct dtn_array *array, int64_t first,
                                int64_t count)
{
    const struct dtn_array batch = dtn_array_selected(array, 0, head->n);
    const struct dtn_array all = dtn_array_selected(&batch, 0, head->h);

    return dtn_array_sliced(&all, 0, first, count, 1);
}

/* The same copied to a block, which has `count` rows then. */
static void load(const struct head *head, struct dtn_array *block,
                 const struct dtn_array *array, int64_t first, int64_t count)
{
    const struct dtn_array from = rows_of(head, array, first, count);

    *block = matrix(block->data, head->work, count, from.shape[1]);
    dtn_cast(block, &from);
}

static void store(const struct head *head, const struct dtn_array *array,
                  int64_t first, const struct dtn_array *block)
{
    const struct dtn_array to = rows_of(head, array, first, block->shape[0]);

    dtn_cast(&to, block);
}

static void scale(const struct dtn_array *block, double factor)
{
    dtn_pointwise(DTN_SCALE, block, (const struct dtn_array *const[]){ block },
                  (const double[]){ factor, 0 });
}

static void load_queries(struct head *head, int64_t first)
{
    load(head, &head->q, head->a->q, first,
         least(QUERIES, head->a->q->shape[2] - first));
    scale(&head->q, head->a->scale);
}

static void load_keys(struct head *head, int64_t first)
{
    const int64_t count = least(KEYS, head->a->k->shape[2] - first);

    load(head, &head->k, head->a->k, first, count);
    load(head, &head->v, head->a->v, first, count);
}

static void multiply(const struct head *head, const struct dtn_array *out,
                     const struct dtn_array *a, const struct dtn_array *b,
                     bool adds)
{
    dtn_matmul(out, a, b, head->a->flags | (adds ? DTN_MATMUL_ADD : 0),
               head->room);
}

/* a b^T, or a^T b. */
static void multiply_last(const struct head *head, const struct dtn_array *out,
                          const struct dtn_array *a, const struct dtn_array *b)
{
    const struct dtn_array turned = dtn_array_swapped(b, 0, 1);

    multiply(head, out, a, &turned, false);
}

static void multiply_first(const struct head *head, const struct dtn_array *out,
                           const struct dtn_array *a, const struct dtn_array *b)
{
    const struct dtn_array turned = dtn_array_swapped(a, 0, 1);

    multiply(head, out, &turned, b, true);
}

static void find_scores(struct head *head)
{
    head->scores = matrix(head->scores.data, head->work, head->q.shape[0],
                          head->k.shape[0]);
    multiply_last(head, &head->scores, &head->q, &head->k);
}

/* How many keys of the block that begins at `key` query `i` sees. */
static int64_t seen(const struct head *head, int64_t i, int64_t key)
{
    const int64_t count = head->k.shape[0];

    if (!head->a->causal || i - key + 1 >= count)
        return count;
    return i < key ? 0 : i - key + 1;
}

static char *row_of(const struct dtn_array *block, int64_t i)
{
    return (char *)block->data +
           (size_t)(i * block->shape[1]) * dtn_dtype_size(block->dtype);
}

/* Row i becomes exp(score - most), and 0 for keys that are not seen. */
static void exponentials(const struct head *head, int64_t i, int64_t n,
                         double most)
{
    const size_t size = dtn_dtype_size(head->work);
    char *row = row_of(&head->scores, i);

    dtn_finish_softmax(false, head->work, row, row, n,
                       (const double[]){ most, 1 });
    memset(row + (size_t)n * size, 0,
           (size_t)(head->scores.shape[1] - n) * size);
}

/* --------------------------------------------------------------- result --- */

/* The scores of row i become exponentials; what came before is corrected. */
static void query_step(struct head *head, int64_t i, int64_t n)
{
    const char *row = row_of(&head->scores, i);
    const double before = head->most[i];
    double late = 1;

    head->most[i] = dtn_total(DTN_TOTAL_MAX, head->work, row, n, before, 0);
    exponentials(head, i, n, head->most[i]);
    if (head->most[i] != before)
        late = exp(before - head->most[i]);
    head->sum[i] = head->sum[i] * late +
                   dtn_total(DTN_TOTAL_SUM, head->work, row, n, 0, 0);
    dtn_store(head->work, head->late.data, (size_t)i, late);
}

static void multiply_rows(const struct head *head, const struct dtn_array *by)
{
    dtn_pointwise(DTN_MUL, &head->made, (const struct dtn_array *const[]){
                  &head->made, by }, NULL);
}

/* The queries of a block have seen all keys. */
static void queries_end(struct head *head, int64_t first,
                        const struct dtn_array *out,
                        const struct dtn_array *lse)
{
    for (int64_t i = 0; i < head->q.shape[0]; i++)
        dtn_store(head->work, head->late.data, (size_t)i,
                  head->sum[i] != 0 ? 1 / head->sum[i] : 0);
    multiply_rows(head, &head->late);
    store(head, out, first, &head->made);
    for (int64_t i = 0; i < head->q.shape[0] && lse; i++) {
        const struct dtn_array batch = dtn_array_selected(lse, 0, head->n);
        const struct dtn_array all = dtn_array_selected(&batch, 0, head->h);

        dtn_store(lse->dtype, all.data, (size_t)(first + i),
                  head->most[i] + log(head->sum[i]));
    }
}

static void queries_run(struct head *head, int64_t first,
                        const struct dtn_array *out,
                        const struct dtn_array *lse)
{
    const int64_t keys = head->a->k->shape[2];
    int64_t rows;

    load_queries(head, first);
    rows = head->q.shape[0];
    head->made = matrix(head->made.data, head->work, rows,
                        head->a->v->shape[3]);
    head->late = matrix(head->late.data, head->work, rows, 1);
    dtn_array_fill(&head->made, 0);
    for (int64_t i = 0; i < rows; i++) {
        head->most[i] = (double)-INFINITY;
        head->sum[i] = 0;
    }
    for (int64_t key = 0; key < keys && (!head->a->causal ||
                                         key < first + rows); key += KEYS) {
        load_keys(head, key);
        find_scores(head);
        for (int64_t i = 0; i < rows; i++)
            query_step(head, i, seen(head, first + i, key));
        multiply_rows(head, &head->late);
        multiply(head, &head->made, &head->scores, &head->v, true);
    }
    queries_end(head, first, out, lse);
}

void dtn_attention(const struct dtn_attention *a, const struct dtn_array *out,
                   const struct dtn_array *lse, void *workspace)
{
    struct head head;

    head_begin(&head, a, false, workspace);
    for (head.n = 0; head.n < a->q->shape[0]; head.n++)
        for (head.h = 0; head.h < a->q->shape[1]; head.h++)
            for (int64_t i = 0; i < a->q->shape[2]; i += QUERIES)
                queries_run(&head, i, out, lse);
}

/* ------------------------------------------------------------ gradients --- */

/* The sums of grad out, and lse, of a block of queries. */
static void load_totals(struct head *head, const struct dtn_attention_grads *g,
                        int64_t first)
{
    const int64_t rows = head->made.shape[0], columns = head->made.shape[1];
    const struct dtn_array out = rows_of(head, g->out, first, rows);
    const struct dtn_array batch = dtn_array_selected(g->lse, 0, head->n);
    const struct dtn_array lse = dtn_array_selected(&batch, 0, head->h);

    for (int64_t i = 0; i < rows; i++) {
        double dot = 0;

        for (int64_t j = 0; j < columns; j++)
            dot += dtn_load(head->work, head->made.data,
                            (size_t)(i * columns + j)) *
                   dtn_load(out.dtype, out.data, (size_t)(i * columns + j));
        head->dot[i] = dot;
        head->most[i] = dtn_load(lse.dtype, lse.data, (size_t)(first + i));
    }
}

/* slopes = p (slopes - dot), row by row, where p are the scores by now. */
static void find_slopes(const struct head *head)
{
    const int64_t rows = head->slopes.shape[0];

    for (int64_t i = 0; i < rows; i++)
        dtn_store(head->work, head->late.data, (size_t)i, -head->dot[i]);
    dtn_pointwise(DTN_ADD, &head->slopes, (const struct dtn_array *const[]){
                  &head->slopes, &head->late }, NULL);
    dtn_pointwise(DTN_MUL, &head->slopes, (const struct dtn_array *const[]){
                  &head->slopes, &head->scores }, NULL);
}

/* What a block of queries adds to the gradients, with the loaded keys. */
static void queries_back(struct head *head, const struct dtn_attention_grads *g,
                         int64_t first, int64_t key)
{
    struct dtn_array dq;
    int64_t rows;

    load_queries(head, first);
    rows = head->q.shape[0];
    load(head, &head->made, g->grad, first, rows);
    load_totals(head, g, first);
    head->late = matrix(head->late.data, head->work, rows, 1);
    find_scores(head);
    for (int64_t i = 0; i < rows; i++)
        exponentials(head, i, seen(head, first + i, key), head->most[i]);
    multiply_first(head, &head->dv, &head->scores, &head->made);
    head->slopes = matrix(head->slopes.data, head->work, rows,
                          head->k.shape[0]);
    multiply_last(head, &head->slopes, &head->made, &head->v);
    find_slopes(head);
    multiply_first(head, &head->dk, &head->slopes, &head->q);
    dq = dtn_array_sliced(&head->dq, 0, first, rows, 1);
    multiply(head, &dq, &head->slopes, &head->k, true);
}

static void head_back(struct head *head, const struct dtn_attention_grads *g)
{
    const struct dtn_attention *a = head->a;

    dtn_array_fill(&head->dq, 0);
    for (int64_t key = 0; key < a->k->shape[2]; key += KEYS) {
        const int64_t skip = a->causal ? key / QUERIES * QUERIES : 0;

        load_keys(head, key);
        head->dk = matrix(head->dk.data, head->work, head->k.shape[0],
                          head->k.shape[1]);
        head->dv = matrix(head->dv.data, head->work, head->v.shape[0],
                          head->v.shape[1]);
        dtn_array_fill(&head->dk, 0);
        dtn_array_fill(&head->dv, 0);
        for (int64_t i = skip; i < a->q->shape[2]; i += QUERIES)
            queries_back(head, g, i, key);
        if (g->k)
            store(head, g->k, key, &head->dk);
        if (g->v)
            store(head, g->v, key, &head->dv);
    }
    scale(&head->dq, a->scale);
    store(head, g->q, 0, &head->dq);
}

void dtn_attention_backward(const struct dtn_attention *a,
                            const struct dtn_attention_grads *grads,
                            void *workspace)
{
    struct head head;

    head_begin(&head, a, true, workspace);
    for (head.n = 0; head.n < a->q->shape[0]; head.n++)
        for (head.h = 0; head.h < a->q->shape[1]; head.h++)
            head_back(&head, grads);
}

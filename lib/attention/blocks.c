/* blocks.c - attention of this rank's queries to some of the keys
 *
 * Under a causal mask a query sees the keys up to its own row.  So a run of
 * queries sees a run of keys entirely, up to the diagonal, or not at all.  Two
 * runs of one sequence are equal or disjoint, or one contains the other.  So
 * each pair of runs needs at most two products: one with the keys before the
 * queries, and one with the keys of the same rows, under the mask.
 */
#include "attention/blocks.h"
#include "base/dtype.h"
#include "math/attention.h"
#include "math/pointwise.h"
#include "dtensor.h"

#include <math.h>

/* One pair: rows of this rank's parts. */
struct pair {
    int64_t n, h;                 /* which sequence and head                  */
    int64_t query, queries;       /* first row, and how many                  */
    int64_t key, keys;            /* the same of the keys                     */
    bool diagonal;                /* query i of them sees keys 0 to i of them */
};

typedef void pair_f(const struct dtn_queries *queries,
                    const struct dtn_keys *keys, const struct pair *pair);

/* --------------------------------------------------------------- pairs --- */

/* Rows of one head, as an array of 1 x 1 x rows x columns, or 1 x 1 x rows. */
static struct dtn_array head_rows(const struct dtn_array *array,
                                  const struct pair *pair, int64_t first,
                                  int64_t count)
{
    const struct dtn_array one = dtn_array_sliced(array, 0, pair->n, 1, 1);
    const struct dtn_array head = dtn_array_sliced(&one, 1, pair->h, 1, 1);

    return dtn_array_sliced(&head, 2, first, count, 1);
}

static struct dtn_array of_queries(const struct dtn_array *array,
                                   const struct pair *pair)
{
    return head_rows(array, pair, pair->query, pair->queries);
}

static struct dtn_array of_keys(const struct dtn_array *array,
                                const struct pair *pair)
{
    return head_rows(array, pair, pair->key, pair->keys);
}

/* The pairs of two runs; `pair` has the rows of both, whole. */
static void runs_meet(const struct dtn_queries *queries,
                      const struct dtn_keys *keys, struct pair pair,
                      int64_t query, int64_t key, pair_f *f)
{
    const int64_t before = query - key;          /* keys before the queries   */
    const int64_t key_rows = pair.keys;

    if (!queries->causal) {
        f(queries, keys, &pair);
        return;
    }
    if (before > 0) {
        pair.keys = before < key_rows ? before : key_rows;
        f(queries, keys, &pair);
    }
    if (before < 0 || before >= key_rows)
        return;
    pair.key += before;
    pair.keys = key_rows - before;
    if (pair.keys > pair.queries)
        pair.keys = pair.queries;
    pair.diagonal = true;
    f(queries, keys, &pair);
}

static void head_meet(const struct dtn_queries *queries,
                      const struct dtn_keys *keys, struct pair pair, pair_f *f)
{
    for (int64_t i = 0; i < queries->rows.n; i++) {
        const struct dtensor_run *run = &queries->rows.run[i];

        pair.queries = run->size;
        pair.key = 0;
        for (int64_t j = 0; j < keys->rows.n; j++) {
            pair.keys = keys->rows.run[j].size;
            runs_meet(queries, keys, pair, run->start, keys->rows.run[j].start,
                      f);
            pair.key += pair.keys;
        }
        pair.query += run->size;
    }
}

static int all_meet(const struct dtn_queries *queries,
                    const struct dtn_keys *keys, pair_f *f,
                    struct dtensor_error *err)
{
    int rc = 0;

    for (int64_t n = 0; n < queries->q.shape[0]; n++)
        for (int64_t h = 0; h < queries->q.shape[1] && rc == 0; h++) {
            head_meet(queries, keys, (struct pair){ .n = n, .h = h }, f);
            if (queries->progress)
                rc = queries->progress(queries->whose, err);
        }
    return rc;
}

/* -------------------------------------------------------------- memory --- */

/* 1 x 1 x rows x columns, or 1 x 1 x rows; without memory only counted. */
static struct dtn_array taken(char *memory, size_t *at,
                              enum dtensor_dtype dtype, int ndim, int64_t rows,
                              int64_t columns)
{
    const int64_t shape[4] = { 1, 1, rows, columns };
    const struct dtn_array made = dtn_array_packed(memory ? memory + *at : NULL,
                                                   dtype, ndim, shape);

    *at += ((size_t)dtn_array_count(&made) * dtn_dtype_size(dtype) + 63) / 64 *
           64;
    return made;
}

static struct dtn_attention call_of(const struct dtn_queries *queries,
                                    const struct dtn_array *q,
                                    const struct dtn_array *k,
                                    const struct dtn_array *v, bool causal)
{
    return (struct dtn_attention){ .q = q, .k = k, .v = v,
        .scale = queries->scale, .causal = causal, .flags = queries->flags };
}

size_t dtn_queries_room(const struct dtn_queries *queries, int64_t keys,
                        int64_t values)
{
    const bool gradients = queries->grad.data != NULL;
    const int64_t rows = queries->q.shape[2], width = queries->q.shape[3];
    size_t at = 0, none = 0;
    const struct dtn_array q = taken(NULL, &none, queries->q.dtype, 4, rows,
                                     width);
    const struct dtn_array k = taken(NULL, &none, queries->q.dtype, 4, keys,
                                     width);
    const struct dtn_array v = taken(NULL, &none, queries->q.dtype, 4, keys,
                                     values);
    const struct dtn_attention call = call_of(queries, &q, &k, &v, false);

    if (gradients) {
        taken(NULL, &at, queries->work, 4, rows, width);
        taken(NULL, &at, queries->work, 4, keys, width);
        taken(NULL, &at, queries->work, 4, keys, values);
    } else {
        taken(NULL, &at, queries->work, 4, rows, values);
        taken(NULL, &at, queries->work, 3, rows, 1);
    }
    return at + dtn_attention_workspace(&call, gradients);
}

void dtn_queries_begin(const struct dtn_queries *queries)
{
    dtn_array_fill(&queries->out, 0);
    dtn_array_fill(&queries->lse, (double)-INFINITY);
}

/* ------------------------------------------------------------- results --- */

/* to[i] = keep to[i] + add from[i] */
static void row_merge(enum dtensor_dtype work, void *to, const void *from,
                      int64_t n, double keep, double add)
{
    double *to64 = to;
    const double *from64 = from;
    float *to32 = to;
    const float *from32 = from;

    if (work == DTENSOR_F64) {
        for (int64_t i = 0; i < n; i++)
            to64[i] = keep * to64[i] + add * from64[i];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        to32[i] = (float)keep * to32[i] + (float)add * from32[i];
}

/* Both are averages of values, weighted by exponentials of scores; lse has the
 * logarithms of the sums of these.
 */
static void rows_merge(enum dtensor_dtype work, const struct dtn_array *out,
                       const struct dtn_array *lse,
                       const struct dtn_array *new_out,
                       const struct dtn_array *new_lse)
{
    const int64_t columns = out->shape[3];
    const size_t bytes = (size_t)columns * dtn_dtype_size(work);

    for (int64_t i = 0; i < out->shape[2]; i++) {
        const double a = dtn_load(work, lse->data, (size_t)i);
        const double b = dtn_load(work, new_lse->data, (size_t)i);
        const double most = a > b ? a : b;
        double both;

        if (b == (double)-INFINITY)
            continue;
        both = most + log(exp(a - most) + exp(b - most));
        row_merge(work, (char *)out->data + (size_t)i * bytes,
                  (const char *)new_out->data + (size_t)i * bytes, columns,
                  exp(a - both), exp(b - both));
        dtn_store(work, lse->data, (size_t)i, both);
    }
}

static void pair_see(const struct dtn_queries *queries,
                     const struct dtn_keys *keys, const struct pair *pair)
{
    const struct dtn_array q = of_queries(&queries->q, pair);
    const struct dtn_array k = of_keys(&keys->k, pair);
    const struct dtn_array v = of_keys(&keys->v, pair);
    const struct dtn_array out = of_queries(&queries->out, pair);
    const struct dtn_array lse = of_queries(&queries->lse, pair);
    const struct dtn_attention call = call_of(queries, &q, &k, &v,
                                              pair->diagonal);
    char *room = queries->room;
    size_t at = 0;
    const struct dtn_array new_out = taken(room, &at, queries->work, 4,
                                           pair->queries, v.shape[3]);
    const struct dtn_array new_lse = taken(room, &at, queries->work, 3,
                                           pair->queries, 1);

    dtn_attention(&call, &new_out, &new_lse, room + at);
    rows_merge(queries->work, &out, &lse, &new_out, &new_lse);
}

int dtn_queries_see(const struct dtn_queries *queries,
                    const struct dtn_keys *keys, struct dtensor_error *err)
{
    return all_meet(queries, keys, pair_see, err);
}

/* ----------------------------------------------------------- gradients --- */

static void add(const struct dtn_array *to, const struct dtn_array *more)
{
    dtn_pointwise(DTN_ADD, to, (const struct dtn_array *const[]){ to, more },
                  NULL);
}

static void pair_back(const struct dtn_queries *queries,
                      const struct dtn_keys *keys, const struct pair *pair)
{
    const struct dtn_array q = of_queries(&queries->q, pair);
    const struct dtn_array k = of_keys(&keys->k, pair);
    const struct dtn_array v = of_keys(&keys->v, pair);
    const struct dtn_array grad = of_queries(&queries->grad, pair);
    const struct dtn_array out = of_queries(&queries->out, pair);
    const struct dtn_array lse = of_queries(&queries->lse, pair);
    const struct dtn_array dq = of_queries(&queries->dq, pair);
    const struct dtn_array dk = of_keys(&keys->dk, pair);
    const struct dtn_array dv = of_keys(&keys->dv, pair);
    const struct dtn_attention call = call_of(queries, &q, &k, &v,
                                              pair->diagonal);
    char *room = queries->room;
    size_t at = 0;
    const struct dtn_array more_q = taken(room, &at, queries->work, 4,
                                          pair->queries, q.shape[3]);
    const struct dtn_array more_k = taken(room, &at, queries->work, 4,
                                          pair->keys, k.shape[3]);
    const struct dtn_array more_v = taken(room, &at, queries->work, 4,
                                          pair->keys, v.shape[3]);

    dtn_attention_backward(&call, &(struct dtn_attention_grads){
        .grad = &grad, .out = &out, .lse = &lse, .q = &more_q, .k = &more_k,
        .v = &more_v }, room + at);
    add(&dq, &more_q);
    add(&dk, &more_k);
    add(&dv, &more_v);
}

int dtn_queries_back(const struct dtn_queries *queries,
                     const struct dtn_keys *keys, struct dtensor_error *err)
{
    return all_meet(queries, keys, pair_back, err);
}

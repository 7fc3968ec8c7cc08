/* naive_attention.c - attention and its gradients in nested loops */
#include "tests/op/naive.h"

#include <math.h>
#include <string.h>

enum { KEYS_MAX = 64 };

/* Sizes, and which head. */
struct sizes {
    int64_t queries, keys, width, values;  /* of one head                     */
    int64_t head;                          /* n h in row-major order          */
    double scale;
    bool causal;
};

static double score(const struct sizes *s, const struct whole *q,
                    const struct whole *k, int64_t i, int64_t j)
{
    double sum = 0;

    for (int64_t d = 0; d < s->width; d++)
        sum += q->at[(s->head * s->queries + i) * s->width + d] *
               k->at[(s->head * s->keys + j) * s->width + d];
    return s->causal && j > i ? (double)-INFINITY : s->scale * sum;
}

static void forward(const struct sizes *s, const struct whole in[], int64_t i,
                    int nout, struct whole out[])
{
    double share[KEYS_MAX], most = (double)-INFINITY, sum = 0;
    const int64_t row = s->head * s->queries + i;

    for (int64_t j = 0; j < s->keys; j++) {
        share[j] = score(s, &in[0], &in[1], i, j);
        most = fmax(most, share[j]);
    }
    for (int64_t j = 0; j < s->keys; j++)
        sum += share[j] = exp(share[j] - most);
    for (int64_t v = 0; v < s->values; v++) {
        double made = 0;

        for (int64_t j = 0; j < s->keys; j++)
            made += share[j] / sum *
                    in[2].at[(s->head * s->keys + j) * s->values + v];
        out[0].at[row * s->values + v] = made;
    }
    if (nout > 1)
        out[1].at[row] = most + log(sum);
}

/* Inputs: gradient, query, key, value, result, logarithms. */
static void backward(const struct sizes *s, const struct whole in[], int64_t i,
                     int64_t j, struct whole out[])
{
    const int64_t row = s->head * s->queries + i, key = s->head * s->keys + j;
    const double *g = &in[0].at[row * s->values];
    const double share = exp(score(s, &in[1], &in[2], i, j) - in[5].at[row]);
    double slope = 0;

    for (int64_t v = 0; v < s->values; v++) {
        slope += g[v] * (in[3].at[key * s->values + v] -
                         in[4].at[row * s->values + v]);
        out[2].at[key * s->values + v] += share * g[v];
    }
    for (int64_t d = 0; d < s->width; d++) {
        out[0].at[row * s->width + d] += s->scale * share * slope *
                                         in[2].at[key * s->width + d];
        out[1].at[key * s->width + d] += s->scale * share * slope *
                                         in[1].at[row * s->width + d];
    }
}

bool naive_attention(const struct dtensor_op_call *call,
                     const struct whole in[], int nout, struct whole out[])
{
    const bool grads = strcmp(call->op, "attention_backward") == 0;
    const struct whole *q = &in[grads ? 1 : 0];
    struct sizes s;

    if (!grads && strcmp(call->op, "attention") != 0)
        return false;
    s = (struct sizes){ q[0].shape[2], q[1].shape[2], q[0].shape[3],
                        q[2].shape[3], 0, call->args.value,
                        call->args.causal };
    if (s.scale == 0)
        s.scale = 1 / sqrt((double)s.width);
    for (int k = 0; k < nout && grads; k++)
        memset(out[k].at, 0, sizeof out[k].at);
    for (; s.head < q->shape[0] * q->shape[1]; s.head++)
        for (int64_t i = 0; i < s.queries; i++) {
            for (int64_t j = 0; j < s.keys && grads; j++)
                backward(&s, in, i, j, out);
            if (!grads)
                forward(&s, in, i, nout, out);
        }
    return true;
}

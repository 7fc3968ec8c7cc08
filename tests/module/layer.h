/* layer.h - a transformer layer, written for whole tensors
 *
 * Attention and an MLP, each behind a norm and with a residual; parameters are
 * small, so that results of cut and of whole layers can be compared.
 */
#ifndef TESTS_MODULE_LAYER_H
#define TESTS_MODULE_LAYER_H

#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

enum { BATCH = 2, LENGTH = 8, WIDTH = 16, HEADS = 4, HIDDEN = 32,
       NUMBERS = WIDTH * HIDDEN };

/* A parameter of small numbers; a linear layer and a norm of such. */
void small(struct dtensor_module *m, const char *name, int ndim,
           const int64_t shape[], int seed);
struct dtensor_module *small_linear(struct dtensor_module *parent,
                                    const char *name, int64_t to, int64_t from,
                                    bool bias, int seed);
void small_norm(struct dtensor_module *parent, const char *name, int seed);

/* A module with its own forward function; its type is its name. */
struct dtensor_module *own(struct dtensor_module *parent, const char *name,
                           dtensor_forward_f *forward);

/* The layer: norm1, attn with q, k, v and out, norm2, mlp with up, act and
 * down; `parent` NULL: it is the top.
 */
struct dtensor_module *layer(struct dtensor_module *parent, const char *name,
                             bool attention_bias);

/* The same up to 1e-12, of at most NUMBERS f64. */
void near(const struct dtensor *a, const struct dtensor *b, const char *what);

#endif

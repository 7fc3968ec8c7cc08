/* example.h - what the examples share: a job, layers, a step of training
 *
 * An error ends the program with its text; all other ranks then name the rank
 * that ended.
 */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <dtensor.h>

extern struct dtensor_error err;

/* End the program if the call has failed. */
void check(int rc);

/* Join the job, and seed its numbers: the same on any number of ranks. */
struct dtensor_ctx *begin(void);

/* A tensor of normal numbers around 0, whole on every rank of the job. */
struct dtensor *numbers(struct dtensor_ctx *ctx, int ndim,
                        const int64_t shape[], double std);

/* A child of `parent`, or with NULL the top of a tree: of any type, a linear
 * layer, a norm, a table of `rows` rows.
 */
struct dtensor_module *add(struct dtensor_ctx *ctx,
                           struct dtensor_module *parent, const char *name,
                           const char *type, dtensor_forward_f *forward);
void linear(struct dtensor_ctx *ctx, struct dtensor_module *parent,
            const char *name, int64_t to, int64_t from);
void norm(struct dtensor_ctx *ctx, struct dtensor_module *parent,
          const char *name, int64_t width);
void embedding(struct dtensor_ctx *ctx, struct dtensor_module *parent,
               const char *name, int64_t rows, int64_t width);

/* A tape that watches all parameters of the model. */
struct dtensor_tape *watched(struct dtensor_ctx *ctx,
                             struct dtensor_module *model);

/* After `loss` was computed on the tape: its gradients, and a step down them.
 * `loss` is destroyed; returns its value.
 */
double descend(struct dtensor_tape *tape, struct dtensor_module *model,
               struct dtensor *loss, double rate);

/* The mean of the squares of `y` - `want`; y is destroyed. */
struct dtensor *squares(struct dtensor *y, const struct dtensor *want);

#endif

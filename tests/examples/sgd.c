/* sgd.c - data-parallel descent: each rank has some rows of every batch
 *
 *   $ cc -o sgd sgd.c example.c $(pkg-config --cflags --libs dtensor) -lm
 *   $ dtensor-run -n 4 ./sgd
 *
 * The weights are whole on every rank, and a batch is sharded by rows.  Each
 * rank computes the gradient of its rows, a term of a sum.  The terms are
 * reduced when the step needs the whole gradient.
 */
#include "example.h"

#include <stdio.h>

enum { ROWS = 64, WIDTH = 8, STEPS = 6 };

int main(void)
{
    static const int64_t shape[] = { ROWS, WIDTH }, column[] = { WIDTH, 1 };
    struct dtensor_ctx *ctx = begin();
    struct dtensor_module *model = add(ctx, NULL, NULL, "sequential", NULL);
    struct dtensor *truth = numbers(ctx, 2, column, 1);
    struct dtensor *x = NULL, *want = NULL, *y = NULL;
    struct dtensor_spec rows;
    struct dtensor_tape *tape;
    double loss;

    linear(ctx, model, "layer", 1, WIDTH);
    tape = watched(ctx, model);
    check(dtensor_spec_init(&rows, ctx, "world", "S(0)", DTENSOR_F64, 2, shape,
                            &err));
    for (int i = 0; i < STEPS; i++) {
        check(dtensor_randn(&rows, NULL, &x, &err));   /* the batch           */
        check(dtensor_matmul(x, truth, &want, &err));
        check(dtensor_tape_begin(tape, &err));
        check(dtensor_module_apply(model, "", x, &y, &err));
        loss = descend(tape, model, squares(y, want), 0.2);
        if (dtensor_rank(ctx) == 0)
            printf("step %d: loss %.6f\n", i, loss);
        dtensor_destroy(want);
        dtensor_destroy(x);
    }
    dtensor_tape_destroy(tape);
    dtensor_destroy(truth);
    dtensor_module_destroy(model);
    dtensor_fini(ctx);
    return 0;
}

/* mlp.c - two linear layers, tensor-parallel over all ranks
 *
 *   $ cc -o mlp mlp.c example.c $(pkg-config --cflags --libs dtensor) -lm
 *   $ dtensor-run -n 4 ./mlp
 *
 * The first layer is sharded by its outputs, the second by its inputs.  So the
 * activations between them are never sent, and one allreduce sums the result.
 */
#include "example.h"

#include <stdio.h>

enum { ROWS = 8, WIDTH = 8, HIDDEN = 32, STEPS = 5 };

int main(void)
{
    static const struct dtensor_style plan[] = {
        { "up", "colwise" }, { "down", "rowwise" } };
    static const int64_t shape[] = { ROWS, WIDTH };
    struct dtensor_ctx *ctx = begin();
    struct dtensor_module *model = add(ctx, NULL, NULL, "sequential", NULL);
    struct dtensor *x = numbers(ctx, 2, shape, 1);
    struct dtensor *want = numbers(ctx, 2, shape, 1), *y = NULL;
    const struct dtensor_mesh *world;
    struct dtensor_tape *tape;
    double loss;

    linear(ctx, model, "up", HIDDEN, WIDTH);
    add(ctx, model, "act", "gelu", NULL);
    linear(ctx, model, "down", WIDTH, HIDDEN);
    check(dtensor_mesh_find(ctx, "world", &world, &err));
    check(dtensor_parallelize(model, world, 2, plan, -1, &err));
    tape = watched(ctx, model);
    for (int i = 0; i < STEPS; i++) {
        check(dtensor_tape_begin(tape, &err));
        check(dtensor_module_apply(model, "", x, &y, &err));
        loss = descend(tape, model, squares(y, want), 0.05);
        if (dtensor_rank(ctx) == 0)
            printf("step %d: loss %.6f\n", i, loss);
    }
    dtensor_tape_destroy(tape);
    dtensor_destroy(x);
    dtensor_destroy(want);
    dtensor_module_destroy(model);
    dtensor_fini(ctx);
    return 0;
}

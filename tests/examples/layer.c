/* layer.c - a transformer layer, sharded by heads, or also by the sequence
 *
 *   $ cc -o layer layer.c example.c transformer.c \
 *         $(pkg-config --cflags --libs dtensor) -lm
 *   $ dtensor-run -n 4 ./layer             # 2 allreduces forward
 *   $ dtensor-run -n 4 ./layer sequence    # 2 all-gathers, 2 reduce-scatters
 *
 * With `sequence`, norms and residuals are sharded by the sequence: each
 * position is computed and stored by one rank only.
 */
#include "example.h"
#include "transformer.h"

#include <stdio.h>

enum { BATCH = 2, LENGTH = 8, WIDTH = 32, STEPS = 3 };

int main(int argc, char **argv)
{
    static const int64_t shape[] = { BATCH, LENGTH, WIDTH };
    struct dtensor_ctx *ctx = begin();
    struct dtensor_module *model = layer(ctx, NULL, NULL, WIDTH);
    struct dtensor *x = numbers(ctx, 3, shape, 1);
    struct dtensor *want = numbers(ctx, 3, shape, 1), *y = NULL;
    const struct dtensor_mesh *world;
    struct dtensor_tape *tape;
    double loss;

    (void)argv;
    check(dtensor_mesh_find(ctx, "world", &world, &err));
    if (argc > 1)
        check(dtensor_parallelize(model, world, 7, by_sequence, -1, &err));
    else
        check(dtensor_parallelize(model, world, 4, by_heads, -1, &err));
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

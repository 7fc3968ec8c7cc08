/* attention.c - an attention block with its heads sharded over all ranks
 *
 *   $ cc -o attention attention.c example.c transformer.c \
 *         $(pkg-config --cflags --libs dtensor) -lm
 *   $ dtensor-run -n 4 ./attention
 *
 * q, k and v give each rank whole heads, so attention needs no message.  The
 * layer out reads these heads where they are, and one allreduce sums its
 * result.
 */
#include "example.h"
#include "transformer.h"

#include <stdio.h>

enum { BATCH = 2, LENGTH = 8, WIDTH = 32, STEPS = 3 };

int main(void)
{
    static const struct dtensor_style plan[] = {
        { "[qkv]", "colwise" }, { "out", "rowwise" } };
    static const int64_t shape[] = { BATCH, LENGTH, WIDTH };
    struct dtensor_ctx *ctx = begin();
    struct dtensor_module *model = attention(ctx, NULL, NULL, WIDTH);
    struct dtensor *x = numbers(ctx, 3, shape, 1);
    struct dtensor *want = numbers(ctx, 3, shape, 1), *y = NULL;
    const struct dtensor_mesh *world;
    struct dtensor_tape *tape;
    double loss;

    check(dtensor_mesh_find(ctx, "world", &world, &err));
    check(dtensor_parallelize(model, world, 2, plan, -1, &err));
    tape = watched(ctx, model);
    for (int i = 0; i < STEPS; i++) {
        check(dtensor_tape_begin(tape, &err));
        check(dtensor_module_apply(model, "", x, &y, &err));
        loss = descend(tape, model, squares(y, want), 0.1);
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

/* parameters.c - the same parameters on any number of ranks, in any placements
 *
 *   $ cc -o parameters parameters.c example.c \
 *         $(pkg-config --cflags --libs dtensor) -lm
 *   $ dtensor-run -n 4 ./parameters
 *
 * Each rank makes its own part and nothing is sent: element i gets number i of
 * the stream that the seed defines.  All printed lines are the same.
 */
#include "example.h"

#include <stdio.h>

enum { ROWS = 30, COLUMNS = 20 };

int main(void)
{
    static const char *const placements[] = { "R", "S(0)", "S(1)", "C(0,4)" };
    const int64_t shape[] = { ROWS, COLUMNS };
    struct dtensor_ctx *ctx = begin();
    struct dtensor_generator *gen = NULL;
    const struct dtensor_mesh *world;
    double whole[ROWS * COLUMNS], sum;

    check(dtensor_mesh_find(ctx, "world", &world, &err));
    check(dtensor_generator_create(42, &gen, &err));
    for (int i = 0; i < 4; i++) {
        struct dtensor *weight = NULL;
        struct dtensor_spec spec;

        check(dtensor_manual_seed(world, 42, gen, &err));
        check(dtensor_spec_on(&spec, world, placements[i], DTENSOR_F64, 2,
                              shape, &err));
        check(dtensor_randn(&spec, gen, &weight, &err));
        check(dtensor_full_tensor(weight, whole, sizeof whole, &err));
        dtensor_destroy(weight);
        sum = 0;
        for (int k = 0; k < ROWS * COLUMNS; k++)
            sum += whole[k];
        if (dtensor_rank(ctx) == 0)
            printf("%.17g %.17g ... sum %.17g\n", whole[0], whole[1], sum);
    }
    dtensor_generator_destroy(gen);
    dtensor_fini(ctx);
    return 0;
}

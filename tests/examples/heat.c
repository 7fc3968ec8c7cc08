/* heat.c - heat in a rod that is sharded over all ranks
 *
 *   $ cc -o heat heat.c example.c $(pkg-config --cflags --libs dtensor) -lm
 *   $ dtensor-run -n 4 ./heat
 *
 * Each step needs the temperature on both sides of a point, so a rank gets one
 * number from each neighbour.  A sine keeps its form and shrinks by the same
 * factor in each step: rank 0 compares the whole rod with that.
 */
#include "example.h"

#include <math.h>
#include <stdio.h>

enum { POINTS = 100, STEPS = 300, EVERY = 100 };

static const double rate = 0.25;      /* of the difference, in each step      */

/* The number beside each end of this rank's part; 0 beyond the rod.  On many
 * ranks those after `last` have no part.
 */
static void neighbours(struct dtensor_ctx *ctx, const double *u, int64_t n,
                       double side[2])
{
    const int me = dtensor_rank(ctx), size = dtensor_world_size(ctx);
    const int chunk = (POINTS + size - 1) / size, last = (POINTS - 1) / chunk;
    const struct dtensor_mesh *world;

    side[0] = side[1] = 0;
    check(dtensor_mesh_find(ctx, "world", &world, &err));
    check(dtensor_group_begin(ctx, &err));
    if (me > 0 && me <= last) {
        check(dtensor_send(world, me - 1, &u[0], 1, DTENSOR_F64, &err));
        check(dtensor_recv(world, me - 1, &side[0], 1, DTENSOR_F64, &err));
    }
    if (me < last) {
        check(dtensor_send(world, me + 1, &u[n - 1], 1, DTENSOR_F64, &err));
        check(dtensor_recv(world, me + 1, &side[1], 1, DTENSOR_F64, &err));
    }
    check(dtensor_group_end(ctx, &err));
}

static void step(struct dtensor_ctx *ctx, double *u, int64_t n)
{
    double side[2], before;

    neighbours(ctx, u, n, side);
    before = side[0];
    for (int64_t i = 0; i < n; i++) {
        const double here = u[i], after = i + 1 < n ? u[i + 1] : side[1];

        u[i] += rate * (before - 2 * here + after);
        before = here;
    }
}

/* The whole comes to rank 0, which prints how far it is from a sine. */
static void show(struct dtensor_ctx *ctx, const struct dtensor *rod, int nsteps)
{
    const double pi = acos(-1), half = sin(pi / (POINTS + 1) / 2);
    const double factor = pow(1 - 4 * rate * half * half, nsteps);
    const int me = dtensor_rank(ctx);
    double u[POINTS], off = 0;

    check(dtensor_full_tensor_at(rod, 0, me == 0 ? u : NULL,
                                 me == 0 ? sizeof u : 0, &err));
    for (int i = 0; me == 0 && i < POINTS; i++)
        off = fmax(off, fabs(u[i] - factor * sin(pi * (i + 1) / (POINTS + 1))));
    if (me == 0)
        printf("step %d: middle %.6f, %s\n", nsteps, u[POINTS / 2],
               off < 1e-12 ? "as computed by hand" : "wrong");
}

int main(void)
{
    const int64_t shape[] = { POINTS };
    struct dtensor_ctx *ctx = begin();
    struct dtensor *rod = NULL;
    struct dtensor_spec spec;
    double start[POINTS];

    for (int i = 0; i < POINTS; i++)
        start[i] = sin(acos(-1) * (i + 1) / (POINTS + 1));
    check(dtensor_spec_init(&spec, ctx, "world", "S(0)", DTENSOR_F64, 1, shape,
                            &err));
    check(dtensor_distribute(&spec, start, -1, &rod, &err));
    for (int i = 0; i <= STEPS; i++) {
        if (i % EVERY == 0)
            show(ctx, rod, i);
        step(ctx, dtensor_to_local(rod),
             (int64_t)(dtensor_local_bytes(rod) / sizeof(double)));
    }
    dtensor_destroy(rod);
    dtensor_fini(ctx);
    return 0;
}

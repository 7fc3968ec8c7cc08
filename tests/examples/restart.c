/* restart.c - a job that continues where an earlier job has ended
 *
 *   $ cc -o restart restart.c example.c $(pkg-config --cflags --libs dtensor)
 *   $ dtensor-run -n 4 ./restart state.npy 100
 *
 * Each step adds 1 to a tensor that is sharded over all ranks, and every tenth
 * step saves it.  A job that finds the file `state.npy` continues from there,
 * on any number of ranks: with conf/restart.sbatch, without the hosts that
 * failed. The last line is the same, however often the job was started.
 *
 *     rank 0: went on from step 40
 *     rank 0: step 100
 */
#include "example.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROWS = 32, COLUMNS = 32, EVERY = 10 };

/* What was saved, or zeros. */
static struct dtensor *state_begin(struct dtensor_ctx *ctx, const char *path)
{
    static const int64_t shape[] = { ROWS, COLUMNS };
    struct dtensor_spec spec;
    struct dtensor *state = NULL;

    check(dtensor_spec_init(&spec, ctx, "world", "S(0)", DTENSOR_F32, 2, shape,
                            &err));
    if (access(path, R_OK) == 0)
        check(dtensor_load(&spec, path, &state, &err));
    else
        check(dtensor_zeros(&spec, &state, &err));
    return state;
}

/* The mean of the elements, which is the number of steps so far. */
static int state_step(const struct dtensor *state)
{
    struct dtensor *mean = NULL;
    float step = 0;

    check(dtensor_op("mean", 1, &state, NULL, 1, &mean, &err));
    check(dtensor_full_tensor(mean, &step, sizeof step, &err));
    dtensor_destroy(mean);
    return (int)step;
}

int main(int argc, char **argv)
{
    const int steps = argc == 3 ? atoi(argv[2]) : 0;
    struct dtensor_ctx *ctx = begin();
    struct dtensor *state, *one = NULL, *next = NULL;
    int step;

    if (steps < 1)
        return 2;
    state = state_begin(ctx, argv[1]);
    check(dtensor_ones(dtensor_spec_of(state), &one, &err));
    step = state_step(state);
    if (dtensor_rank(ctx) == 0 && step > 0)
        fprintf(stderr, "rank 0: went on from step %d\n", step);
    while (step < steps) {
        check(dtensor_add(state, one, &next, &err));
        dtensor_destroy(state);
        state = next;
        step = state_step(state);
        if (step % EVERY == 0 || step == steps)
            check(dtensor_save(state, argv[1], &err));
    }
    if (dtensor_rank(ctx) == 0)
        printf("rank 0: step %d\n", step);
    dtensor_destroy(one);
    dtensor_destroy(state);
    dtensor_fini(ctx);
    return 0;
}

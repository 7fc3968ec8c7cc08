/* step.c - a step of training of small tensors, where calls cost most
 *
 * Two linear layers with relu between them in f64: forward, backward, and a
 * step of descent.  Data-parallel: the rows of a batch are sharded over the
 * ranks, parameters are R.  Prints the microseconds of a step, the least mean
 * of ROUNDS rounds.  step_torch.py does the same.
 *
 *     dtensor-run -n 2 ./step ROWS WIDTH HIDDEN
 */
#include "tests/examples/example.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 9, STEPS = 1000 };

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static struct dtensor *rows(struct dtensor_ctx *ctx, const int64_t shape[])
{
    struct dtensor *whole = numbers(ctx, 2, shape, 1), *t = NULL;

    check(dtensor_redistribute(whole, "S(0)", &t, &err));
    dtensor_destroy(whole);
    return t;
}

/* Forward, backward, descent; the loss is read, as PyTorch's item() does. */
static void step(struct dtensor_tape *tape, struct dtensor_module *model,
                 const struct dtensor *x, const struct dtensor *want)
{
    struct dtensor *y = NULL;

    check(dtensor_tape_begin(tape, &err));
    check(dtensor_module_apply(model, "", x, &y, &err));
    descend(tape, model, squares(y, want), 0.01);
}

static double round_us(struct dtensor_tape *tape, struct dtensor_module *model,
                       const struct dtensor *x, const struct dtensor *want)
{
    const double begin = now_us();

    for (int i = 0; i < STEPS; i++)
        step(tape, model, x, want);
    return (now_us() - begin) / STEPS;
}

int main(int argc, char *argv[])
{
    struct dtensor_ctx *ctx = begin();
    struct dtensor_module *model = add(ctx, NULL, NULL, "sequential", NULL);
    const int64_t shape[] = { argc > 1 ? atoi(argv[1]) : 8,
                              argc > 2 ? atoi(argv[2]) : 16 };
    const int64_t hidden = argc > 3 ? atoi(argv[3]) : 32;
    struct dtensor *x = rows(ctx, shape), *want = rows(ctx, shape);
    struct dtensor_tape *tape;
    double least = 0;

    linear(ctx, model, "up", hidden, shape[1]);
    add(ctx, model, "act", "relu", NULL);
    linear(ctx, model, "down", shape[1], hidden);
    tape = watched(ctx, model);
    for (int i = 0; i < ROUNDS; i++) {
        const double us = round_us(tape, model, x, want);

        least = i == 0 || us < least ? us : least;
    }
    if (dtensor_rank(ctx) == 0)
        printf("dtensor %7.1f us a step, ranks %d\n", least,
               dtensor_world_size(ctx));
    dtensor_tape_destroy(tape);
    dtensor_destroy(x);
    dtensor_destroy(want);
    dtensor_module_destroy(model);
    dtensor_fini(ctx);
    return 0;
}

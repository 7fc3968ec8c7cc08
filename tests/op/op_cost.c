/* op_cost.c - what a decision costs, made and found
 *
 *   $ make bench-ops
 *
 * Nanoseconds of dtensor_op_infer() for calls that repeat the last one (hit),
 * that alternate with another (other), and that are new (miss), the fastest of
 * several rounds.
 */
#include "dtensor.h"
#include "tests/redist/plan_of.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 30, CALLS = 400 };

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void infer(const struct dtensor_op_call *call)
{
    struct dtensor_spec want[3], out[3];
    struct dtensor_op_info info;
    struct dtensor_error err;

    if (dtensor_op_infer(call, want, 3, out, &info, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
}

/* The fastest of several rounds of `calls` calls. */
static double hits_ns(const struct dtensor_op_call call[2], int stride)
{
    double best = 1e18;

    for (int r = 0; r < ROUNDS; r++) {
        const double start = now_ns();

        for (int i = 0; i < CALLS; i++)
            infer(&call[i % 2 * stride]);
        if (now_ns() - start < best)
            best = now_ns() - start;
    }
    return best / CALLS;
}

/* Each call has another first size. */
static double misses_ns(const struct dtensor_op_call *call,
                        struct dtensor_spec in[2])
{
    double best = 1e18;

    for (int i = 0; i < ROUNDS * 4; i++) {
        double start;

        in[0].shape[0] += 8;
        if (strcmp(call->op, "add") == 0)
            in[1].shape[0] += 8;
        start = now_ns();
        infer(call);
        if (now_ns() - start < best)
            best = now_ns() - start;
    }
    return best;
}

int main(void)
{
    static const struct {
        const char *op;
        int ndim, mesh[3];
        const char *a, *b;
    } rows[] = {
        { "add", 1, { 4 }, "S(0)", "S(0)" },
        { "add", 1, { 4 }, "S(0)", "S(1)" },
        { "matmul", 1, { 4 }, "S(0)", "R" },
        { "matmul", 1, { 4 }, "S(0)", "S(1)" },
        { "matmul", 2, { 2, 4 }, "S(0),R", "R,S(1)" },
        { "matmul", 2, { 2, 4 }, "S(0),S(1)", "S(1),P" },
        { "matmul", 3, { 2, 2, 2 }, "S(0),R,R", "R,S(1),R" },
        { "matmul", 3, { 2, 2, 2 }, "S(0),S(1),R", "R,P,S(1)" },
    };
    const int64_t shape[] = { 512, 512 };
    struct dtensor_ctx *ctx = planner_of(8, 8);

    printf("%-8s %-24s %10s %10s %10s\n", "op", "inputs", "hit ns", "other ns",
           "miss ns");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct dtensor_mesh *mesh = mesh_of(ctx, rows[i].ndim,
                                                  rows[i].mesh);
        struct dtensor_spec in[2] = { spec_at(mesh, 2, shape, rows[i].a),
                                      spec_at(mesh, 2, shape, rows[i].b) };
        struct dtensor_spec whole = spec_at(mesh, 2, shape,
            rows[i].ndim == 1 ? "R" : rows[i].ndim == 2 ? "R,R" : "R,R,R");
        const struct dtensor_op_call call[2] = {
            { .op = rows[i].op, .nin = 2, .in = in },
            { .op = "relu", .nin = 1, .in = &whole } };
        char words[60];

        snprintf(words, sizeof words, "%s  %s", rows[i].a, rows[i].b);
        printf("%-8s %-24s %10.0f %10.0f", rows[i].op, words,
               hits_ns(call, 0), hits_ns(call, 1));
        printf(" %10.0f\n", misses_ns(call, in));
    }
    dtensor_fini(ctx);
    return 0;
}

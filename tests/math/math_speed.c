/* math_speed.c - how fast local arithmetic is, beside memcpy and libm
 *
 * 64 x 1024 f32, which fit the L2 cache, and a product of 512 x 512; the best
 * of 15 runs, in CPU time of this thread.  make bench-math prints it.
 */
#include "math/blas.h"
#include "math/matmul.h"
#include "math/norm.h"
#include "math/pointwise.h"
#include "math/reduction.h"
#include "math/room.h"
#include "math/softmax.h"
#include "dtensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static _Alignas(64) char room[DTN_ROOM_BYTES];

enum { ROWS = 64, COLUMNS = 1024, COUNT = ROWS * COLUMNS, SIDE = 512 };

static float a[SIDE * SIDE], b[SIDE * SIDE], out[SIDE * SIDE], less[COLUMNS];
static _Alignas(64) char workspace[1 << 20];
static const int64_t shape[] = { ROWS, COLUMNS }, row[] = { 1, COLUMNS };
static const int64_t column[] = { ROWS, 1 }, square[] = { SIDE, SIDE };

static struct dtn_array array_of(float *data, const int64_t sizes[])
{
    return dtn_array_packed(data, DTENSOR_F32, 2, sizes);
}

static void pointwise(int op)
{
    const struct dtn_array x = array_of(a, shape), y = array_of(b, shape);
    const struct dtn_array to = array_of(out, shape);
    const struct dtn_array *const in[] = { &x, &y };

    dtn_pointwise((enum dtn_pointwise)op, &to, in, NULL);
}

static void run_memcpy(int unused)
{
    memcpy(out, a, COUNT * sizeof *a);
}

static void run_expf(int unused)
{
    for (int i = 0; i < COUNT; i++)
        out[i] = expf(a[i]);
}

static void run_softmax(int unused)
{
    const struct dtn_array x = array_of(a, shape), to = array_of(out, shape);

    dtn_softmax(false, &to, &x, 1, room);
}

static void run_norm(int unused)
{
    const struct dtn_array x = array_of(a, shape), to = array_of(out, shape);
    const struct dtn_array weight = dtn_array_packed(b, DTENSOR_F32, 1,
                                                     shape + 1);
    const struct dtn_norm norm = { .out = &to, .in = &x, .weight = &weight,
                                   .bias = &weight, .dims = 1,
                                   .centred = true, .epsilon = 1e-5 };

    dtn_norm(&norm);
}

static void run_sum(int along_rows)
{
    const struct dtn_array x = array_of(a, shape);
    const struct dtn_array to = array_of(less, along_rows ? column : row);

    dtn_reduce_dims(DTN_REDUCE_SUM, &to, &x, 0, room);
}

static void run_matmul(int flags)
{
    const struct dtn_array x = array_of(a, square), y = array_of(b, square);
    const struct dtn_array to = array_of(out, square);

    dtn_matmul(&to, &x, &y, (unsigned)flags, workspace);
}

static double seconds_of(void (*run)(int), int argument)
{
    double best = 1e9;

    for (int i = 0; i < 15; i++) {
        struct timespec from, to;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
        run(argument);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
        best = fmin(best, (double)(to.tv_sec - from.tv_sec) +
                          (double)(to.tv_nsec - from.tv_nsec) * 1e-9);
    }
    return best;
}

int main(void)
{
    static const struct { const char *name; void (*run)(int); int arg; } all[] =
    {
        { "memcpy", run_memcpy, 0 },     { "add", pointwise, DTN_ADD },
        { "exp", pointwise, DTN_EXP },   { "libm's expf", run_expf, 0 },
        { "tanh", pointwise, DTN_TANH }, { "silu", pointwise, DTN_SILU },
        { "gelu", pointwise, DTN_GELU }, { "softmax", run_softmax, 0 },
        { "layer norm", run_norm, 0 },   { "sum of rows", run_sum, 1 },
        { "sum of columns", run_sum, 0 },
    };
    const double terms = 2.0 * SIDE * SIDE * SIDE;
    char words[200];

    for (int i = 0; i < SIDE * SIDE; i++) {
        a[i] = 4.0F * sinf((float)i);
        b[i] = cosf((float)i);
    }
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++)
        printf("%-16s %8.3f ns an element\n", all[i].name,
               seconds_of(all[i].run, all[i].arg) * 1e9 / COUNT);
    dtn_blas_describe(words, sizeof words);
    printf("%s\n%-16s %8.1f Gflop/s\n", words, "matmul",
           terms / seconds_of(run_matmul, 0) * 1e-9);
    printf("%-16s %8.1f Gflop/s\n", "matmul, repro",
           terms / seconds_of(run_matmul, DTN_MATMUL_REPRO) * 1e-9);
    return 0;
}

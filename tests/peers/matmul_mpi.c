/* matmul_mpi.c - a product of matrices cut over ranks, ours and ScaLAPACK's
 *
 * C = A B of n x n floats.  Ours: A is S(0), B is S(1) and gathered in each
 * call, so that C is S(0): of both as they are the cheapest product is terms of
 * a sum, which psgemm does not leave.  ScaLAPACK thinks in column-major order,
 * where our rows are the columns of the transpose: it computes C' = B' A' with
 * all three cut along their columns, in blocks of n / ranks and of 64.  All
 * take turns, a call each, and start from a barrier; the slowest rank counts,
 * and of the calls the median.
 *
 * Usage: mpirun -n RANKS matmul_mpi CALLS SIZE...; prints "RANKS SIZE LIBRARY
 * MIN MEDIAN P99" in microseconds, and a ratio.  Built and run by op.sh.
 */
#include "dtensor.h"
#include "mpi_time.h"

#include <math.h>

/* BLACS and ScaLAPACK have no header. */
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridexit(int context);
void psgemm_(const char *ta, const char *tb, const int *m, const int *n,
             const int *k, const float *alpha, const float *a, const int *ia,
             const int *ja, const int *desca, const float *b, const int *ib,
             const int *jb, const int *descb, const float *beta, float *c,
             const int *ic, const int *jc, const int *descc);

enum { CUT, WHOLE_BLOCKS, BLOCKS_64, NLIBRARIES };
static const char *const names[NLIBRARIES] = {
    "S(0)xS(1)", "psgemm", "psgemm-64"
};

struct bench {
    struct dtensor_ctx *ctx;
    int n, mine, grid;            /* n x n; rows of a rank; BLACS context     */
    struct dtensor *a, *b, *c;    /* S(0), S(1), S(0)                         */
    struct dtensor *whole;        /* B as R                                   */
    float *at, *bt, *ct;          /* ScaLAPACK's parts                        */
};

static struct dtensor *tensor(const struct bench *b, const char *places)
{
    const int64_t shape[] = { b->n, b->n };
    struct dtensor_spec spec;
    struct dtensor_error err;
    struct dtensor *t = NULL;

    if (dtensor_spec_init(&spec, b->ctx, "world", places, DTENSOR_F32, 2, shape,
                          &err) != 0 || dtensor_zeros(&spec, &t, &err) != 0)
        die("tensor", err.text);
    return t;
}

/* The same small whole numbers on all ranks: products are exact. */
static float element(int which, int64_t row, int64_t column)
{
    return (float)((row * 7 + column * (which ? 3 : 5)) % 11 - 5);
}

static void fill(const struct bench *b, float *part, int which, int columns)
{
    const int64_t first = (int64_t)rank * b->mine;

    for (int64_t i = 0; i < (columns ? b->n : b->mine); i++)
        for (int64_t j = 0; j < (columns ? b->mine : b->n); j++)
            part[i * (columns ? b->mine : b->n) + j] =
                columns ? element(which, i, first + j)
                        : element(which, first + i, j);
}

static void call_ours(const struct bench *b)
{
    const struct dtensor *const in[] = { b->a, b->whole };
    struct dtensor_error err;
    struct dtensor *out = b->c;

    if (dtensor_redistribute_into(b->b, b->whole, &err) != 0 ||
        dtensor_op_into("matmul", 2, in, NULL, 1, &out, &err) != 0)
        die("matmul", err.text);
}

static void call_psgemm(const struct bench *b, int block)
{
    const int desc[9] = { 1, b->grid, b->n, b->n, b->n, block, 0, 0, b->n };
    const int one = 1;
    const float alpha = 1, beta = 0;

    psgemm_("N", "N", &b->n, &b->n, &b->n, &alpha, b->bt, &one, &one, desc,
            b->at, &one, &one, desc, &beta, b->ct, &one, &one, desc);
}

static double timed(const struct bench *b, int which)
{
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    switch (which) {
    case CUT: call_ours(b); break;
    case WHOLE_BLOCKS: call_psgemm(b, b->mine); break;
    default: call_psgemm(b, 64); break;
    }
    return (MPI_Wtime() - start) * 1e6;
}

static void check(const struct bench *b, const float *part, const char *name)
{
    for (int k = 0; k < 200; k++) {
        const int i = k * 31 % b->mine, j = k * 97 % b->n;
        double sum = 0;

        for (int l = 0; l < b->n; l++)
            sum += (double)(element(0, rank * b->mine + i, l) *
                            element(1, l, j));
        if (fabs(sum - (double)part[(int64_t)i * b->n + j]) > 0.5)
            die(name, "a wrong element");
    }
}

static void measure(const struct bench *b, int calls)
{
    double *us = malloc(sizeof *us * NLIBRARIES * (size_t)calls);
    double half[NLIBRARIES];

    if (!us)
        die("times", "out of memory");
    for (int i = -2; i < calls; i++)
        for (int l = 0; l < NLIBRARIES; l++) {
            const int who = (l + i + 2) % NLIBRARIES;
            const double took = timed(b, who);

            if (i >= 0)
                us[who * calls + i] = took;
            if (i < 0 && who != BLOCKS_64)         /* which cuts otherwise    */
                check(b, who < WHOLE_BLOCKS ? dtensor_to_local(b->c) : b->ct,
                      names[who]);
        }
    slowest(us, NLIBRARIES * calls);
    for (int l = 0; rank == 0 && l < NLIBRARIES; l++) {
        printf("%d %d %-10s", ranks, b->n, names[l]);
        print_times(us + l * calls, calls);
        half[l] = us[l * calls + calls / 2];
        printf("  %.1f Gflop/s a rank\n", 2.0 * b->n * b->n * b->n / ranks /
               half[l] / 1e3);
    }
    if (rank == 0)
        printf("target: S(0) x S(1), %d^2 on %d ranks, no slower than psgemm: "
               "%s (%.2f)\n", b->n, ranks,
               half[CUT] <= fmin(half[WHOLE_BLOCKS], half[BLOCKS_64]) ? "met"
               : "missed", half[CUT] / fmin(half[WHOLE_BLOCKS],
                                            half[BLOCKS_64]));
    free(us);
}

static float *part_of(const struct bench *b)
{
    float *part = calloc((size_t)b->n * (size_t)b->mine, sizeof *part);

    if (!part)
        die("buffers", "out of memory");
    return part;
}

static void measure_size(struct dtensor_ctx *ctx, int n, int calls)
{
    struct bench b = { .ctx = ctx, .n = n, .mine = n / ranks };

    if (n % (64 * ranks) != 0)
        die("size", "64 times the ranks do not divide it");
    b.a = tensor(&b, "S(0)");
    b.b = tensor(&b, "S(1)");
    b.c = tensor(&b, "S(0)");
    b.whole = tensor(&b, "R");
    b.at = part_of(&b);
    b.bt = part_of(&b);
    b.ct = part_of(&b);
    fill(&b, dtensor_to_local(b.a), 0, 0);
    fill(&b, dtensor_to_local(b.b), 1, 1);
    fill(&b, b.at, 0, 0);
    fill(&b, b.bt, 1, 0);
    Cblacs_get(-1, 0, &b.grid);
    Cblacs_gridinit(&b.grid, "Row", 1, ranks);
    measure(&b, calls);
    Cblacs_gridexit(b.grid);
    free(b.at);
    free(b.bt);
    free(b.ct);
    dtensor_destroy(b.a);
    dtensor_destroy(b.b);
    dtensor_destroy(b.c);
    dtensor_destroy(b.whole);
}

int main(int argc, char **argv)
{
    const int calls = argc > 1 ? atoi(argv[1]) : 10;
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err;

    mpi_open(&argc, &argv);
    be_rank();
    if (calls < 1 || dtensor_init(NULL, &ctx, &err) != 0)
        die("init", calls < 1 ? "expected calls" : err.text);
    for (int i = 2; i < argc; i++)
        measure_size(ctx, atoi(argv[i]), calls);
    dtensor_fini(ctx);
    MPI_Finalize();
    return 0;
}

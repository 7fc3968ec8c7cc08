/* solver_mpi.c - a step of conjugate gradients by two libraries
 *
 * Two ranks have half of the rows of N x N points each, in memory of malloc().
 * In a step each sends its last row to the other and receives the row beyond,
 * computes the inner rows meanwhile, then the one at the edge, and adds two
 * sums over both ranks.  Contestants take turns, a solution of 12 steps each,
 * since on a virtual machine CPUs may be near in one job and far in the next:
 *
 *     blocking  ours, a group that ends before the inner rows are computed
 *     started   ours, dtensor_group_start() and dtensor_wait()
 *     mpi       persistent MPI_Send_init() and MPI_Recv_init(), MPI_Allreduce()
 *
 * Usage: mpirun -n 2 solver_mpi N SOLUTIONS; prints "CONTESTANT MIN MEDIAN P99"
 * of a step in microseconds.  Built and run by solver.sh.
 */
#include "dtensor.h"
#include "mpi_time.h"

enum who { BLOCKING, STARTED, PERSISTENT, NCONTESTANTS };
enum { STEPS = 12 };

struct solver {
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *world;
    MPI_Request messages[2];      /* of the row that goes, of the one beyond  */
    int n, rows, edge;            /* of a row; of this rank; the last of them */
    double *x, *p, *q, *r;        /* [rows * n]                               */
    double *beyond;               /* [n] the other rank's last row of p       */
    double rr;                    /* the square of the residual               */
};

static void good(int rc, const struct dtensor_error *err)
{
    if (rc != 0)
        die("dtensor", err->text);
}

static double add(struct solver *s, enum who who, double term)
{
    struct dtensor_error err;
    double sum;

    if (who == PERSISTENT)
        MPI_Allreduce(&term, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    else
        good(dtensor_allreduce(s->world, &term, &sum, 1, DTENSOR_F64,
                               DTENSOR_SUM, &err), &err);
    return sum;
}

static double dot(const struct solver *s, const double *a, const double *b)
{
    double sum = 0;

    for (int i = 0; i < s->rows * s->n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* A row of q: four times that of p, less its neighbours. */
static void row(struct solver *s, int i)
{
    const int inward = rank == 0 ? -1 : 1, n = s->n;
    const double *p = s->p + i * n;
    const double *in = i == (rank == 0 ? 0 : s->rows - 1) ? NULL
                                                          : p + inward * n;
    const double *out = i == s->edge ? s->beyond : p - inward * n;

    for (int j = 0; j < n; j++)
        s->q[i * n + j] = 4 * p[j] - out[j] - (in ? in[j] : 0)
                        - (j > 0 ? p[j - 1] : 0) - (j < n - 1 ? p[j + 1] : 0);
}

static void inner(struct solver *s)
{
    for (int i = 0; i < s->rows; i++)
        if (i != s->edge)
            row(s, i);
}

static void exchange_mpi(struct solver *s)
{
    MPI_Status statuses[2];

    MPI_Startall(2, s->messages);
    inner(s);
    MPI_Waitall(2, s->messages, statuses);
}

static void exchange(struct solver *s, enum who who)
{
    struct dtensor_request *request = NULL;
    struct dtensor_error err;

    good(dtensor_group_begin(s->ctx, &err)
         || dtensor_send(s->world, 1 - rank, s->p + s->edge * s->n,
                         (size_t)s->n, DTENSOR_F64, &err)
         || dtensor_recv(s->world, 1 - rank, s->beyond, (size_t)s->n,
                         DTENSOR_F64, &err), &err);
    good(who == BLOCKING ? dtensor_group_end(s->ctx, &err)
                         : dtensor_group_start(s->ctx, &request, &err), &err);
    inner(s);
    good(dtensor_wait(request, &err), &err);
}

static void step(struct solver *s, enum who who)
{
    double a, b, rr;

    if (who == PERSISTENT)
        exchange_mpi(s);
    else
        exchange(s, who);
    row(s, s->edge);
    a = s->rr / add(s, who, dot(s, s->p, s->q));
    for (int i = 0; i < s->rows * s->n; i++) {
        s->x[i] += a * s->p[i];
        s->r[i] -= a * s->q[i];
    }
    rr = add(s, who, dot(s, s->r, s->r));
    b = rr / s->rr;
    s->rr = rr;
    for (int i = 0; i < s->rows * s->n; i++)
        s->p[i] = s->r[i] + b * s->p[i];
}

/* A solution: us of a step.  All contestants have the same residual. */
static double solve(struct solver *s, enum who who, double *residual)
{
    double start;

    for (int i = 0; i < s->rows * s->n; i++) {
        s->x[i] = 0;
        s->r[i] = s->p[i] = 1 + (rank + i) % 3;
    }
    s->rr = add(s, who, dot(s, s->r, s->r));
    start = MPI_Wtime();
    for (int i = 0; i < STEPS; i++)
        step(s, who);
    start = (MPI_Wtime() - start) * 1e6 / STEPS;
    if (*residual != 0 && s->rr != *residual)
        die("solver", "another residual");
    *residual = s->rr;
    return start;
}

static void open_all(struct solver *s, int n)
{
    const size_t all = (size_t)(n / 2 * n);
    struct dtensor_error err;
    double **const arrays[] = { &s->x, &s->p, &s->q, &s->r, &s->beyond };

    be_rank();
    good(dtensor_init(NULL, &s->ctx, &err)
         || dtensor_mesh_find(s->ctx, "world", &s->world, &err), &err);
    s->n = n;
    s->rows = n / 2;
    s->edge = rank == 0 ? s->rows - 1 : 0;
    for (int i = 0; i < 5; i++)
        if (!(*arrays[i] = calloc(all, sizeof(double))))
            die("malloc", "out of memory");
    MPI_Send_init(s->p + s->edge * n, n, MPI_DOUBLE, 1 - rank, 0,
                  MPI_COMM_WORLD, &s->messages[0]);
    MPI_Recv_init(s->beyond, n, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD,
                  &s->messages[1]);
}

static void close_all(struct solver *s)
{
    for (int i = 0; i < 2; i++)
        MPI_Request_free(&s->messages[i]);
    free(s->x);
    free(s->p);
    free(s->q);
    free(s->r);
    free(s->beyond);
    dtensor_fini(s->ctx);
}

int main(int argc, char **argv)
{
    static const char *const names[] = { "blocking", "started", "mpi" };
    const int solutions = argc > 2 ? atoi(argv[2]) : 1000;
    double *us = calloc((size_t)(NCONTESTANTS * solutions), sizeof *us);
    double residual = 0;
    struct solver s;

    mpi_open(&argc, &argv);
    if (ranks != 2 || !us)
        die("solver", "expected 2 ranks, and memory");
    open_all(&s, argc > 1 ? atoi(argv[1]) : 8);
    for (int i = 0; i < solutions; i++)
        for (int who = 0; who < NCONTESTANTS; who++)
            us[who * solutions + i] = solve(&s, (enum who)who, &residual);
    slowest(us, NCONTESTANTS * solutions);
    for (int who = 0; who < NCONTESTANTS && rank == 0; who++) {
        printf("%s", names[who]);
        print_times(us + who * solutions, solutions);
        printf("\n");
    }
    close_all(&s);
    MPI_Finalize();
    free(us);
    return 0;
}

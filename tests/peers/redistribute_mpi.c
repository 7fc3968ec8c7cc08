/* redistribute_mpi.c - rows to columns by three libraries and by hand
 *
 * An n x n matrix of doubles in rows over p ranks becomes columns: our
 * redistribute S(0) -> S(1), MPI_Alltoallw with subarrays, and ScaLAPACK's
 * pdgemr2d.  pdgemr2d thinks in column-major order, where our rows are the
 * columns of the transpose: from a 1 x p grid with blocks n x n/p to a p x 1
 * grid with blocks n/p x n it moves the same bytes between the same addresses.
 * Of 256 x 256 on 2 ranks that is 128 KiB in 128 runs of 1 KiB each way.
 *
 * Two ways more show what there is to reach and to lose.  "bound" is what no
 * library can leave out, in shared memory and with nothing around it: arrive,
 * copy the rows of each piece from where the peer has them to where they go,
 * arrive again.  "copied" is ours for a program whose matrices are its own:
 * copied into the tensor before and out of it after, for tensors live in
 * memory of dtensor_alloc().
 *
 * All take turns, a call each, on matrices of their own, so they see the same
 * machine and none finds in the caches what another left.  A call stands
 * between two barriers: before them its whole input is written, after them its
 * whole output read.  So of 4 ranks on 2 CPUs none reads while another still
 * waits for its turn in the call.  The barriers are neither MPI's, which some
 * ranks leave 80 us after others, nor ours.  The slowest rank of each call
 * counts, of those the median.
 *
 * Usage: mpirun -n RANKS redistribute_mpi CALLS SIZE...; prints for each size
 * "RANKS SIZE LIBRARY MIN MEDIAN P99" in microseconds.  Built and run by
 * redistribute.sh.
 */
#include "dtensor.h"
#include "mpi_time.h"

#include <sched.h>
#include <stdatomic.h>

/* BLACS and ScaLAPACK have no header. */
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridexit(int context);
void Cpdgemr2d(int m, int n, const double *a, int ia, int ja, const int *desca,
               double *b, int ib, int jb, const int *descb, int context);

/* Where ranks of the bench meet. */
struct meeting {
    _Alignas(64) _Atomic int arrived;
    _Alignas(64) _Atomic int times;
};

enum { OURS, COPIED, BOUND, ALLTOALLW, PDGEMR2D, NLIBRARIES };

struct bench {
    struct dtensor_ctx *ctx;
    struct meeting *meeting;
    int crowded;                  /* more ranks than CPUs                     */
    MPI_Win window;
    double **shown;               /* of each rank: "bound"'s input            */
    int rank, ranks, n;           /* n x n elements                           */
    size_t bytes;                 /* of a rank's part                         */
    struct dtensor *rows[2], *columns[2];          /* OURS, COPIED            */
    double *in[NLIBRARIES], *out[NLIBRARIES];      /* nobody finds in the     */
                                  /* caches what another left there           */
    MPI_Datatype *give, *take;
    int *one, *zero;              /* counts and displacements of Alltoallw    */
    int tall, wide;               /* BLACS contexts                           */
    int rows_desc[9], columns_desc[9];
};

/* ------------------------------------------------------------ the calls --- */

/* All have arrived: a counter, and who is last says so. */
static void meet(struct bench *b)
{
    int times = atomic_load(&b->meeting->times);

    if (atomic_fetch_add(&b->meeting->arrived, 1) == b->ranks - 1) {
        atomic_store(&b->meeting->arrived, 0);
        atomic_store(&b->meeting->times, times + 1);
    }
    while (atomic_load_explicit(&b->meeting->times, memory_order_acquire) ==
           times)
        if (b->crowded)
            sched_yield();
}

static void call_tensors(struct bench *b, int which)
{
    struct dtensor_error err;

    if (dtensor_redistribute_into(b->rows[which], b->columns[which], &err) != 0)
        die("redistribute", err.text);
}

static void call_ours(struct bench *b)
{
    call_tensors(b, OURS);
}

static void call_copied(struct bench *b)
{
    memcpy(dtensor_to_local(b->rows[COPIED]), b->in[COPIED], b->bytes);
    call_tensors(b, COPIED);
    memcpy(b->out[COPIED], dtensor_to_local(b->columns[COPIED]), b->bytes);
}

static void call_bound(struct bench *b)
{
    const int mine = b->n / b->ranks;

    meet(b);
    for (int i = 0; i < b->ranks; i++) {
        const int peer = (b->rank + i) % b->ranks;
        const double *from = b->shown[peer] + b->rank * mine;
        double *to = b->out[BOUND] +
                     (size_t)peer * (size_t)mine * (size_t)mine;

        for (int row = 0; row < mine; row++)
            memcpy(to + (size_t)row * (size_t)mine,
                   from + (size_t)row * (size_t)b->n,
                   (size_t)mine * sizeof *to);
    }
    meet(b);
}

static void call_alltoallw(struct bench *b)
{
    MPI_Alltoallw(b->in[ALLTOALLW], b->one, b->zero, b->give,
                  b->out[ALLTOALLW], b->one, b->zero, b->take, MPI_COMM_WORLD);
}

static void call_pdgemr2d(struct bench *b)
{
    Cpdgemr2d(b->n, b->n, b->in[PDGEMR2D], 1, 1, b->rows_desc,
              b->out[PDGEMR2D], 1, 1, b->columns_desc, b->wide);
}

static const struct library {
    const char *name;
    void (*call)(struct bench *b);
} libraries[] = {
    [OURS] = { "dtensor", call_ours },
    [COPIED] = { "copied", call_copied },
    [BOUND] = { "bound", call_bound },
    [ALLTOALLW] = { "alltoallw", call_alltoallw },
    [PDGEMR2D] = { "pdgemr2d", call_pdgemr2d }
};

/* ------------------------------------------------------- input, output --- */

static double value_at(const struct bench *b, int64_t row, int64_t column,
                       int call)
{
    return (double)((row * b->n + column) * 8 + call % 8);
}

static void fill(const struct bench *b, double *in, int call)
{
    int64_t mine = b->n / b->ranks;

    for (int64_t i = 0; i < mine; i++)
        for (int64_t j = 0; j < b->n; j++)
            in[i * b->n + j] = value_at(b, b->rank * mine + i, j, call);
}

static void check(const struct bench *b, const double *out, int call,
                  const char *name)
{
    int64_t mine = b->n / b->ranks;

    for (int64_t i = 0; i < b->n; i++)
        for (int64_t j = 0; j < mine; j++)
            if (out[i * mine + j] !=
                value_at(b, i, b->rank * mine + j, call))
                die(name, "a wrong element");
}

/* ------------------------------------------------------- open and close --- */

static void open_ours(struct bench *b)
{
    struct dtensor_spec spec;
    struct dtensor_error err;
    const int64_t shape[] = { b->n, b->n };
    int rc;

    rc = dtensor_spec_init(&spec, b->ctx, "world", "S(0)", DTENSOR_F64, 2,
                           shape, &err);
    for (int i = OURS; rc == 0 && i <= COPIED; i++) {
        rc = dtensor_zeros(&spec, &b->rows[i], &err);
        if (rc == 0)
            rc = dtensor_redistribute(b->rows[i], "S(1)", &b->columns[i],
                                      &err);
    }
    if (rc != 0)
        die("tensors", err.text);
}

/* The block a rank and peer exchange, as it lies in my rows or columns. */
static MPI_Datatype block(const struct bench *b, int peer, int columns)
{
    int mine = b->n / b->ranks, own = columns == 0;
    int sizes[] = { own ? mine : b->n, own ? b->n : mine };
    int block_sizes[] = { mine, mine };
    int start[] = { own ? 0 : peer * mine, own ? peer * mine : 0 };
    MPI_Datatype type;

    MPI_Type_create_subarray(2, sizes, block_sizes, start, MPI_ORDER_C,
                             MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

static void open_mpi(struct bench *b)
{
    size_t ranks = (size_t)b->ranks;

    b->give = malloc(ranks * sizeof *b->give);
    b->take = malloc(ranks * sizeof *b->take);
    b->one = malloc(ranks * sizeof *b->one);
    b->zero = calloc(ranks, sizeof *b->zero);
    if (!b->give || !b->take || !b->one || !b->zero)
        die("buffers", "out of memory");
    for (int r = 0; r < b->ranks; r++) {
        b->one[r] = 1;
        b->give[r] = block(b, r, 0);
        b->take[r] = block(b, r, 1);
    }
}

/* Memory that all ranks reach by loads and stores: the meeting, and inputs. */
static void open_window(struct bench *b)
{
    const size_t room = sizeof *b->meeting + b->bytes;
    void *mem;

    b->crowded = b->ranks > sysconf(_SC_NPROCESSORS_ONLN);
    b->shown = malloc((size_t)b->ranks * sizeof *b->shown);
    if (!b->shown)
        die("window", "out of memory");
    MPI_Win_allocate_shared((MPI_Aint)room, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                            &mem, &b->window);
    memset(mem, 0, room);
    for (int r = 0; r < b->ranks; r++) {
        MPI_Aint size;
        int unit;

        MPI_Win_shared_query(b->window, r, &size, &unit, &mem);
        b->shown[r] = (double *)((struct meeting *)mem + 1);
        if (r == 0)
            b->meeting = mem;
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void open_scalapack(struct bench *b)
{
    int mine = b->n / b->ranks;

    Cblacs_get(-1, 0, &b->wide);
    b->tall = b->wide;
    Cblacs_gridinit(&b->wide, "Row", 1, b->ranks);
    Cblacs_gridinit(&b->tall, "Row", b->ranks, 1);
    memcpy(b->rows_desc, (int[9]){ 1, b->wide, b->n, b->n, b->n, mine, 0, 0,
                                   b->n }, sizeof b->rows_desc);
    memcpy(b->columns_desc, (int[9]){ 1, b->tall, b->n, b->n, mine, b->n, 0, 0,
                                      mine }, sizeof b->columns_desc);
}

/* Each has its input and its output: ours are in tensors, the bound's input is
 * in the window.
 */
static void open_buffers(struct bench *b)
{
    b->in[OURS] = dtensor_to_local(b->rows[OURS]);
    b->out[OURS] = dtensor_to_local(b->columns[OURS]);
    for (int i = COPIED; i < NLIBRARIES; i++) {
        b->in[i] = i == BOUND ? b->shown[b->rank] : malloc(b->bytes);
        b->out[i] = malloc(b->bytes);
        if (!b->in[i] || !b->out[i])
            die("buffers", "out of memory");
    }
}

static void close_all(struct bench *b)
{
    for (int r = 0; r < b->ranks; r++) {
        MPI_Type_free(&b->give[r]);
        MPI_Type_free(&b->take[r]);
    }
    for (int i = COPIED; i < NLIBRARIES; i++) {
        if (i != BOUND)
            free(b->in[i]);
        free(b->out[i]);
    }
    free(b->give);
    free(b->take);
    free(b->one);
    free(b->zero);
    Cblacs_gridexit(b->tall);
    Cblacs_gridexit(b->wide);
    free(b->shown);
    MPI_Win_free(&b->window);
    for (int i = OURS; i <= COPIED; i++) {
        dtensor_destroy(b->rows[i]);
        dtensor_destroy(b->columns[i]);
    }
}

/* ------------------------------------------------------------ measuring --- */

static double timed(struct bench *b, int turn, int call)
{
    double start, us;

    fill(b, b->in[turn], call);
    meet(b);
    start = MPI_Wtime();
    libraries[turn].call(b);
    us = (MPI_Wtime() - start) * 1e6;
    meet(b);
    check(b, b->out[turn], call, libraries[turn].name);
    return us;
}

static void measure(struct bench *b, int calls, double *us)
{
    for (int i = -calls / 10 - 3; i < calls; i++)
        for (int l = 0; l < NLIBRARIES; l++) {
            int turn = (l + i + calls) % NLIBRARIES;
            double took = timed(b, turn, i + calls);

            if (i >= 0)
                us[turn * calls + i] = took;
        }
    slowest(us, NLIBRARIES * calls);
    for (int l = 0; b->rank == 0 && l < NLIBRARIES; l++) {
        printf("%d %d %s", b->ranks, b->n, libraries[l].name);
        print_times(us + l * calls, calls);
        printf("\n");
    }
    fflush(stdout);
}

static void measure_size(struct dtensor_ctx *ctx, int n, int calls, double *us)
{
    struct bench b = { .ctx = ctx, .rank = dtensor_rank(ctx),
                       .ranks = dtensor_world_size(ctx), .n = n };

    if (n % b.ranks != 0)
        die("size", "the ranks do not divide it (ScaLAPACK's local sizes "
            "would differ)");
    b.bytes = (size_t)n * (size_t)(n / b.ranks) * sizeof(double);
    open_ours(&b);
    open_mpi(&b);
    open_window(&b);
    open_buffers(&b);
    open_scalapack(&b);
    measure(&b, calls, us);
    close_all(&b);
}

int main(int argc, char **argv)
{
    int calls = argc > 1 ? atoi(argv[1]) : 200;
    double *us = malloc(sizeof *us * NLIBRARIES * (size_t)calls);
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err;

    mpi_open(&argc, &argv);
    be_rank();
    if (!us || dtensor_init(NULL, &ctx, &err) != 0)
        die("init", us ? err.text : "out of memory");
    for (int i = 2; i < argc; i++)
        measure_size(ctx, atoi(argv[i]), calls, us);
    dtensor_fini(ctx);
    MPI_Finalize();
    free(us);
    return 0;
}

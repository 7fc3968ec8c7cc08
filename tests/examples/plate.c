/* plate.c - heat in a plate that is sharded in both dimensions
 *
 *   $ cc -o plate plate.c example.c $(pkg-config --cflags --libs dtensor) -lm
 *   $ dtensor-run -n 4 ./plate
 *
 * Ranks are a grid, and each has a block of the plate.  A step needs the edges
 * of the blocks on four sides: their messages are started, the inner points are
 * computed while they are on their way, and then the points at the edges.  At
 * most 8 ranks fit in a row.
 */
#include "example.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 60, STEPS = 200, EVERY = 100 };

static const double rate = 0.2;       /* of the difference, in each step      */

/* The block of this rank. */
struct block {
    const struct dtensor_mesh *line[2];   /* the column and row of ranks that */
                                      /* this rank is in                      */
    int place[2], size[2];            /* of this rank in them, and their size */
    int64_t rows, cols;               /* points                               */
    double *now, *next;               /* [rows][cols] before and after a step */
    double beside[2][2][POINTS];      /* above and below, left and right: of  */
                                      /* the neighbours; 0 beyond the plate   */
    double edge[2][POINTS];           /* the first and last column            */
};

static double *edge_of(struct block *b, int dim, int side)
{
    const int64_t far = side ? (dim == 0 ? b->rows : b->cols) - 1 : 0;

    if (dim == 0)
        return &b->now[far * b->cols];
    for (int64_t i = 0; i < b->rows; i++)
        b->edge[side][i] = b->now[i * b->cols + far];
    return b->edge[side];
}

/* Start to send the four edges, and to receive those of the neighbours. */
static struct dtensor_request *edges_start(struct dtensor_ctx *ctx,
                                           struct block *b)
{
    struct dtensor_request *request = NULL;

    check(dtensor_group_begin(ctx, &err));
    for (int dim = 0; dim < 2; dim++)
        for (int side = 0; side < 2; side++) {
            const size_t n = (size_t)(dim == 0 ? b->cols : b->rows);
            const int peer = b->place[dim] + (side ? 1 : -1);

            if (peer < 0 || peer >= b->size[dim])
                continue;
            check(dtensor_send(b->line[dim], peer, edge_of(b, dim, side), n,
                               DTENSOR_F64, &err));
            check(dtensor_recv(b->line[dim], peer, b->beside[dim][side], n,
                               DTENSOR_F64, &err));
        }
    check(dtensor_group_start(ctx, &request, &err));
    return request;
}

static double value(const struct block *b, int64_t i, int64_t j)
{
    if (i < 0 || i == b->rows)
        return b->beside[0][i > 0][j];
    if (j < 0 || j == b->cols)
        return b->beside[1][j > 0][i];
    return b->now[i * b->cols + j];
}

static void point(const struct block *b, int64_t i, int64_t j)
{
    const double here = value(b, i, j);

    b->next[i * b->cols + j] = here + rate *
        (value(b, i - 1, j) + value(b, i + 1, j) + value(b, i, j - 1)
         + value(b, i, j + 1) - 4 * here);
}

static void step(struct dtensor_ctx *ctx, struct block *b)
{
    struct dtensor_request *request = edges_start(ctx, b);

    for (int64_t i = 1; i < b->rows - 1; i++)
        for (int64_t j = 1; j < b->cols - 1; j++)
            point(b, i, j);
    check(dtensor_wait(request, &err));
    for (int64_t i = 0; i < b->rows; i++)
        for (int64_t j = 0; j < b->cols; j++)
            if (i == 0 || i == b->rows - 1 || j == 0 || j == b->cols - 1)
                point(b, i, j);
    memcpy(b->now, b->next, (size_t)(b->rows * b->cols) * sizeof *b->now);
}

/* ------------------------------------------------------------- the plate -- */

/* As square a grid of all ranks as there is. */
static const struct dtensor_mesh *grid_make(struct dtensor_ctx *ctx)
{
    const struct dtensor_mesh *grid = NULL;
    const int n = dtensor_world_size(ctx);
    int rows = 1;

    for (int i = 1; i * i <= n; i++)
        if (n % i == 0)
            rows = i;
    check(dtensor_mesh_create(ctx, 2, (const int[]){ rows, n / rows },
                              "row,col", NULL, &grid, &err));
    return grid;
}

static void block_make(const struct dtensor_mesh *grid, int rank,
                       const struct dtensor_spec *spec, struct block *b)
{
    static const char *const names[] = { "row", "col" };
    int64_t shape[2], offset[2];

    dtensor_mesh_coord(grid, rank, b->place);
    for (int dim = 0; dim < 2; dim++) {
        check(dtensor_mesh_slice(grid, names[dim], &b->line[dim], &err));
        b->size[dim] = dtensor_mesh_size(b->line[dim]);
    }
    dtensor_spec_local(spec, rank, shape, offset);
    b->rows = shape[0];
    b->cols = shape[1];
}

static double sine(int i, int j)
{
    const double step = acos(-1) / (POINTS + 1);

    return sin(step * (i + 1)) * sin(step * (j + 1));
}

/* The whole comes to rank 0, which prints how far it is from sines. */
static void show(struct dtensor_ctx *ctx, const struct dtensor *plate, int step)
{
    static double u[POINTS][POINTS];
    const double half = sin(acos(-1) / (POINTS + 1) / 2);
    const double factor = pow(1 - 8 * rate * half * half, step);
    const int me = dtensor_rank(ctx);
    double off = 0;

    check(dtensor_full_tensor_at(plate, 0, me == 0 ? u : NULL,
                                 me == 0 ? sizeof u : 0, &err));
    for (int i = 0; me == 0 && i < POINTS * POINTS; i++)
        off = fmax(off, fabs(u[i / POINTS][i % POINTS]
                             - factor * sine(i / POINTS, i % POINTS)));
    if (me == 0)
        printf("step %d: middle %.6f, %s\n", step, u[POINTS / 2][POINTS / 2],
               off < 1e-12 ? "as computed by hand" : "wrong");
}

int main(void)
{
    static const int64_t shape[] = { POINTS, POINTS };
    static double start[POINTS * POINTS];
    static struct block block;
    struct dtensor_ctx *ctx = begin();
    const struct dtensor_mesh *grid = grid_make(ctx);
    struct dtensor *plate = NULL, *after = NULL;
    struct dtensor_spec spec;

    for (int i = 0; i < POINTS * POINTS; i++)
        start[i] = sine(i / POINTS, i % POINTS);
    check(dtensor_spec_on(&spec, grid, "S(0),S(1)", DTENSOR_F64, 2, shape,
                          &err));
    check(dtensor_distribute(&spec, start, -1, &plate, &err));
    check(dtensor_empty(&spec, &after, &err));
    block_make(grid, dtensor_rank(ctx), &spec, &block);
    block.now = dtensor_to_local(plate);
    block.next = dtensor_to_local(after);
    for (int i = 0; i <= STEPS; i++) {
        if (i % EVERY == 0)
            show(ctx, plate, i);
        step(ctx, &block);
    }
    dtensor_destroy(after);
    dtensor_destroy(plate);
    dtensor_fini(ctx);
    return 0;
}

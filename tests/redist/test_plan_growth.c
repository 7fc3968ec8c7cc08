/* test_plan_growth.c - a plan takes no more over 131,072 ranks than over 64
 *
 * All pairs of R, S(0), S(1) and P over meshes of one, two and three
 * dimensions: what PyTorch's collectives can say, one for each mesh dimension.
 * For each pair the test counts the bytes and blocks of memory that are asked
 * for and the looks at ranks, which are the same on every machine.  The CPU
 * time of all pairs together may be twice as long: an empty loop over the ranks
 * in each plan makes it 3.4 times.  The first plan over a mesh counts, too.
 *
 * Without this test, a loop over the ranks in some route could make each new
 * redistribute of a large job take milliseconds.
 */
#include "dtensor.h"
#include "tests/redist/looks.h"
#include "tests/redist/plan_of.h"
#include "tests/support/allocations.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DIMS = 3, SIZES = 4, LETTERS = 4, TRIES = 5 };
#define LOOKS_MAX 32              /* of a plan; 18 on three dimensions        */
#define BLOCKS_MAX 2              /* of memory: the plan                      */
#define BYTES_MAX 8192            /* in them                                  */
#define LONGER_MAX 2              /* as long over the most ranks              */

static const int sizes[DIMS][SIZES][DIMS] = {
    { { 64 }, { 1024 }, { 16384 }, { 131072 } },
    { { 8, 8 }, { 32, 32 }, { 128, 128 }, { 512, 256 } },
    { { 4, 4, 4 }, { 16, 8, 8 }, { 32, 32, 16 }, { 64, 64, 32 } }
};

/* What the plans of a mesh take: each at most, and all together. */
struct taken {
    int pairs;
    long looks, blocks, bytes;
    double seconds;
};

static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The placements of a number: a digit for each mesh dimension. */
static const char *placements(int ndim, int number, char text[32])
{
    static const char *const letters[LETTERS] = { "R", "S(0)", "S(1)", "P" };

    text[0] = '\0';
    for (int i = 0; i < ndim; i++, number /= LETTERS) {
        strcat(text, i > 0 ? "," : "");
        strcat(text, letters[number % LETTERS]);
    }
    return text;
}

static long larger(long a, long b)
{
    return a > b ? a : b;
}

static void plan_take(const struct dtensor_mesh *mesh, int ndim, int from,
                      int to, struct taken *taken)
{
    static const int64_t shape[] = { 1 << 20, 1 << 20 };
    char text[32];
    const struct dtensor_spec src =
        spec_at(mesh, 2, shape, placements(ndim, from, text));
    const struct dtensor_spec dst =
        spec_at(mesh, 2, shape, placements(ndim, to, text));
    struct dtensor_plan *plan = NULL;
    double begin;

    work = allocations = allocated_bytes = 0;
    begin = cpu_seconds();
    if (dtensor_plan_create(&src, &dst, NULL, &plan, NULL) != 0)
        exit(1);
    taken->seconds += cpu_seconds() - begin;
    taken->looks = larger(taken->looks, work);
    taken->blocks = larger(taken->blocks, allocations);
    taken->bytes = larger(taken->bytes, allocated_bytes);
    taken->pairs++;
    dtensor_plan_destroy(plan);
}

static struct taken mesh_take(int ndim, const int size[], int *np)
{
    const int texts = 1 << (2 * ndim);
    struct taken taken = { .pairs = 0 };
    const struct dtensor_mesh *mesh;
    struct dtensor_ctx *ctx;

    *np = 1;
    for (int d = 0; d < ndim; d++)
        *np *= size[d];
    ctx = planner_of(*np, 8);
    mesh = mesh_of(ctx, ndim, size);
    for (int from = 0; from < texts; from++)
        for (int to = 0; to < texts; to++)
            plan_take(mesh, ndim, from, to, &taken);
    dtensor_fini(ctx);
    return taken;
}

/* The seconds of all pairs over meshes of one size. */
static double size_seconds(int s, bool tell)
{
    double seconds = 0;
    int n;

    for (int ndim = 1; ndim <= DIMS; ndim++) {
        const struct taken taken = mesh_take(ndim, sizes[ndim - 1][s], &n);

        seconds += taken.seconds;
        if (tell)
            ok(taken.looks <= LOOKS_MAX && taken.blocks <= BLOCKS_MAX
               && taken.bytes <= BYTES_MAX, "%d plans over %d ranks in %d "
               "dimensions take at most %ld looks at ranks and %ld bytes in "
               "%ld blocks, and %.1f us each", taken.pairs, n, ndim,
               taken.looks, taken.bytes, taken.blocks,
               taken.seconds * 1e6 / taken.pairs);
    }
    return seconds;
}

int main(void)
{
    double few = size_seconds(0, true), many;

    for (int s = 1; s < SIZES - 1; s++)
        size_seconds(s, true);
    many = size_seconds(SIZES - 1, true);
    for (int t = 0; t < TRIES && many > LONGER_MAX * few; t++) {
        few = size_seconds(0, false);
        many = size_seconds(SIZES - 1, false);
    }
    ok(many <= LONGER_MAX * few, "the plans over the most ranks take %.2f "
       "times as long as those over 64", many / few);
    return done();
}

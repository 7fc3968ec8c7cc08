/* test_oracle.c - 350,000 redistributions, against the definition
 *
 * No transport: the ranks of a mesh are buffers of this process.  A global
 * tensor of distinct values is laid out by the source placements, the plan of
 * every rank is carried out piece by piece, and every element that every rank
 * ends with is compared with what the target placements say it holds.  The
 * oracle knows layouts by cutting lists of indices, as the definition does: 5
 * rows on 2 x 2 as S(0),S(0) are the lists 0 1 2 | 3 4, then 0 1 | 2 | 3 | 4.
 *
 * The space is all 43 shapes of a mesh of up to 16 ranks, tensors of 1 to 3
 * dimensions, every pair of placements, and sizes 0, 1, p-1, p, p+1, 7, uneven
 * and large for the p ranks along a mesh dimension.  Of R, P and S on one mesh
 * of up to three dimensions every pair of placements is tried, with sizes,
 * routes and reductions in turn.  Other pairs are sampled evenly: of N every
 * 0.618 N-th, modulo N.  These are every eighth on 2 x 2 x 2 x 2, which has
 * each pair of three mesh dimensions; strided, cyclic and chosen shards; and
 * placements between each of the 1,806 pairs of meshes.  The claim says how
 * many of how many.  Nothing is random; TEST_SEED moves the sample, and
 * DTN_TEST_ROUNDS=300 makes it three times as large.  Two processes take the
 * cases in turn.
 *
 * Without this test, one of the rare pairs of placements could be wrong, and
 * only its user would find it.
 */
#include "base/compiler.h"
#include "job/ctx.h"
#include "layout/layout.h"
#include "layout/lengths.h"
#include "mesh/mesh.h"
#include "dtensor.h"
#include "tests/redist/mesh_shapes.h"
#include "tests/redist/oracle.h"
#include "tests/support/rand.h"
#include "tests/support/ranks.h"

#include <stdbool.h>
#include <sys/mman.h>

/* ------------------------------------------------------------- counting --- */

/* What both processes did: of each kind of case how many, and how many pairs of
 * placements of how many.
 */
enum kind { PLAIN, FOUR, EVERY, CROSS, NKINDS };

static struct tally {
    uint64_t done[2][NKINDS];
    uint64_t pairs[2][NKINDS];
    uint64_t of[2][NKINDS];
    uint64_t moved[2], bound[2];       /* elements                            */
} *tally;
static int process;                    /* 0 or 1                              */

/* As many cases of a block as the machine is thought to have time for. */
static uint64_t quota(uint64_t usual)
{
    if (sanitized())
        usual = (usual + 9) / 10;
    return usual ? (uint64_t)rounds_of((int)usual) : 0;
}

/* --------------------------------------------------------------- shapes --- */

static struct dtensor_ctx *ctx;                /* of a context that plans     */

static void all_meshes(void)
{
    int sizes[DTENSOR_MAX_DIMS] = { 1 };

    if (dtensor_init_offline(NULL, ORACLE_RANKS, 0, &ctx, NULL) != 0)
        abort();
    mesh_add(ctx, 1, sizes);
    mesh_grow(ctx, 0, sizes, ORACLE_RANKS);
}

enum { NSIZES = 8 };

/* Size number `code` of tensor dimension d on a mesh. */
static int64_t size_at(const struct dtensor_mesh *mesh, int ndim, int d,
                       int code)
{
    int64_t p = ndim == 1 ? mesh->group.n : mesh->size[d % mesh->ndim];
    static const int64_t large[] = { 0, 301, 29, 11 };

    switch (code) {
    case 0: case 1: return code;
    case 2: case 3: case 4: return p - 3 + code;
    case 5: return 7;
    case 6: return p + p / 2 + 1;
    default: return large[ndim];
    }
}

/* ----------------------------------------------------------- placements --- */

static const enum dtensor_redop ops[] = { DTENSOR_SUM, DTENSOR_SUM,
    DTENSOR_AVG, DTENSOR_MAX, DTENSOR_SUM, DTENSOR_PROD, DTENSOR_MIN };

/* How many placements a mesh dimension may have: R, P, and S of each tensor
 * dimension, and in `every` SS, C and chosen lengths of each too.
 */
static int nplacements(int ndim, bool every)
{
    return 2 + ndim * (every ? 6 : 1);
}

/* Lengths that add up to N in a lopsided way, in the context's memory. */
static const int64_t *lengths(int64_t N, int n)
{
    const int64_t *kept = NULL;
    int64_t list[ORACLE_RANKS];

    for (int r = 0; r < n; r++) {
        list[r] = r == n - 1 ? N : r % 3 == 1 ? 0 : (N + 1) / 2;
        N -= list[r];
    }
    if (dtn_lengths_keep(ctx, list, n, &kept, NULL) != 0)
        abort();
    return kept;
}

static struct dtensor_placement placement(int code, int ndim, int64_t N, int n,
                                          enum dtensor_redop op)
{
    int dim = code < 2 ? 0 : (code - 2) % ndim, way = (code - 2) / ndim;

    if (code == 0)
        return (struct dtensor_placement){ .kind = DTENSOR_REPLICATE };
    if (code == 1)
        return (struct dtensor_placement){ .kind = DTENSOR_PARTIAL, .op = op };
    switch (way) {
    case 1: case 2:
        return (struct dtensor_placement){ .kind = DTENSOR_STRIDED, .dim = dim,
                                           .block = way + 1 };
    case 3:
        return (struct dtensor_placement){ .kind = DTENSOR_CYCLIC, .dim = dim,
                                           .block = 1 + N % 2 };
    case 4:
        return (struct dtensor_placement){ .kind = DTENSOR_HEADTAIL,
                                           .dim = dim };
    case 5:
        return (struct dtensor_placement){ .kind = DTENSOR_SHARD, .dim = dim,
                                           .sizes = lengths(N, n) };
    default:
        return (struct dtensor_placement){ .kind = DTENSOR_SHARD, .dim = dim };
    }
}

/* Placements number `code` of the spec.  Chosen lengths need parts of one
 * length: only for the first to cut their dimension, else a plain shard.
 */
static void place(struct dtensor_spec *spec, uint64_t code, bool every,
                  enum dtensor_redop op)
{
    const int n = nplacements(spec->ndim, every);
    unsigned cut = 0;

    for (int m = 0; m < spec->mesh->ndim; m++, code /= (unsigned)n) {
        int one = (int)(code % (unsigned)n);
        int dim = one < 2 ? 0 : (one - 2) % spec->ndim;

        if (one >= 2 + 5 * spec->ndim && cut >> dim & 1)
            one = 2 + dim;
        if (one >= 2)
            cut |= 1u << dim;
        spec->placement[m] = placement(one, spec->ndim, spec->shape[dim],
                                       spec->mesh->size[m], op);
    }
}

/* --------------------------------------------------------------- blocks --- */

static uint64_t power(uint64_t base, int n)
{
    uint64_t p = 1;

    while (n-- > 0)
        p *= base;
    return p;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* One block: tensors of ndim dimensions between two meshes. */
struct block {
    enum kind kind;
    const struct dtensor_mesh *from, *to;
    int ndim;
    uint64_t sizes, sources, targets;          /* how many of each            */
};

/* Not more elements than the oracle has room and time for: while there are, the
 * largest dimension but one is halved, so 25 x 11 x 11 ends as 25 x 2 x 2.  It
 * does end: alone, no dimension is too large.
 */
static void shrink(struct dtensor_spec *spec)
{
    const int64_t most = spec->ndim > 1 ? ORACLE_USUAL / 2 : ORACLE_USUAL;

    while (dtn_numel(spec->ndim, spec->shape) > most) {
        int longest = 0, next = 1;

        for (int d = 1; d < spec->ndim; d++)
            if (spec->shape[d] > spec->shape[longest])
                longest = d;
        next = longest == 0;
        for (int d = 0; d < spec->ndim; d++)
            if (d != longest && spec->shape[d] > spec->shape[next])
                next = d;
        spec->shape[next] /= 2;
    }
}

/* Number `turn` of a block: a pair of placements and sizes. */
static void run_case(const struct block *block, uint64_t turn, uint64_t pair,
                     uint64_t code)
{
    const bool every = block->kind >= EVERY;
    struct dtensor_spec src = { .mesh = block->from, .dtype = DTENSOR_F64,
                                .ndim = block->ndim }, dst;
    static const enum dtensor_route routes[] = {
        DTENSOR_ROUTE_DIRECT, DTENSOR_ROUTE_AUTO, DTENSOR_ROUTE_MERGED,
        DTENSOR_ROUTE_DIRECT, DTENSOR_ROUTE_DIRECT, DTENSOR_ROUTE_MIN_COST,
        DTENSOR_ROUTE_DIRECT, DTENSOR_ROUTE_AUTO, DTENSOR_ROUTE_GREEDY
    };
    for (int d = 0; d < block->ndim; d++, code /= NSIZES)
        src.shape[d] = size_at(block->from, block->ndim, d,
                               (int)(code % NSIZES));
    shrink(&src);
    dst = src;
    dst.mesh = block->to;
    place(&src, pair % block->sources, every, ops[turn % DTN_COUNT(ops)]);
    place(&dst, pair / block->sources, every,
          ops[(turn % 5 ? turn : turn / 5) % DTN_COUNT(ops)]);
    need(oracle_case(&src, &dst, routes[turn % DTN_COUNT(routes)],
                     &tally->moved[process], &tally->bound[process]), "%s",
         oracle_complaint);
}

/* All pairs of placements, an eighth, or as many as `usual`, if the time is
 * thought to be enough; each with the next sizes.  Of n processes this one does
 * every n-th.
 */
static void run_block(const struct block *block, uint64_t usual, unsigned n)
{
    const uint64_t pairs = block->sources * block->targets;
    const unsigned me = (unsigned)process;
    uint64_t want = quota(block->kind == PLAIN && pairs > usual ? pairs
                          : block->kind == FOUR ? pairs / 8 + 1 : usual);
    uint64_t step = (uint64_t)((double)pairs * 0.6180339887), pair;

    if (want > pairs * block->sizes)
        want = pairs * block->sizes;
    while (step > 1 && gcd(step, pairs) != 1)
        step--;
    if (step == 0)
        step = 1;
    pair = (rand_seed(0) % pairs + me * step) % pairs;
    for (uint64_t i = me; i < want; i += n, pair = (pair + n * step) % pairs) {
        run_case(block, i, pair, (i / pairs + 5 * pair) % block->sizes);
        tally->done[process][block->kind]++;
        tally->pairs[process][block->kind] += i < pairs;
    }
    tally->of[process][block->kind] += me == 0 ? pairs : 0;
}

static struct block block_of(enum kind kind, const struct dtensor_mesh *from,
                             const struct dtensor_mesh *to, int ndim)
{
    uint64_t n = (uint64_t)nplacements(ndim, kind >= EVERY);

    if (kind == PLAIN && from->ndim > 3)
        kind = FOUR;
    return (struct block){ kind, from, to, ndim, power(NSIZES, ndim),
                           power(n, from->ndim), power(n, to->ndim) };
}

/* Every other case: one block has a third of all, so blocks are not shared out.
 */
static void half(int rank, int n, void *arg)
{
    const uint64_t *usual = arg;

    process = rank;
    for (int a = 0; a < nmeshes; a++)
        for (int ndim = 1; ndim <= 3; ndim++)
            for (int k = 0; k < 2; k++) {
                struct block block = block_of(k ? EVERY : PLAIN, meshes[a],
                                              meshes[a], ndim);

                run_block(&block, usual[block.kind], (unsigned)n);
            }
    for (int a = 0; a < nmeshes; a++)
        for (int b = 0; b < nmeshes; b++)
            for (int ndim = 1; a != b && ndim <= 3; ndim++) {
                struct block block = block_of(CROSS, meshes[a], meshes[b],
                                              ndim);

                run_block(&block, usual[CROSS], (unsigned)n);
            }
}

static void claim(enum kind kind, const char *what)
{
    const uint64_t done = tally->done[0][kind] + tally->done[1][kind];
    const uint64_t pairs = tally->pairs[0][kind] + tally->pairs[1][kind];
    const uint64_t of = tally->of[0][kind] + tally->of[1][kind];

    ok(done > 0 && (kind != PLAIN || timeless() || pairs == of),
       "%s: %llu cases are right on every rank, with %llu of %.6g pairs of "
       "placements", what, (unsigned long long)done, (unsigned long long)pairs,
       (double)of);
}

int main(void)
{
    static const uint64_t usual[NKINDS] = { 1000, 0, 300, 5 };
    uint64_t all = 0;
    int bad;

    all_meshes();
    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tally == MAP_FAILED)
        return skip_all("no shared memory");
    ok(nmeshes == 43, "there are %d shapes of a mesh of up to %d ranks",
       nmeshes, ORACLE_RANKS);
    bad = ranks_run(2, 280, half, (void *)(uintptr_t)usual, NULL);
    ok(bad == 0, "no case is wrong, and no rank is sent more than it lacks");
    claim(PLAIN, "R, P and S on one mesh");
    claim(FOUR, "the same over four mesh dimensions");
    claim(EVERY, "strided, block-cyclic and chosen lengths among them");
    claim(CROSS, "between any two meshes");
    for (int k = 0; k < NKINDS; k++)
        all += tally->done[0][k] + tally->done[1][k];
    ok(all >= (sanitized() ? 30000 : 300000) || getenv("DTN_TEST_ROUNDS"),
       "%llu cases in all", (unsigned long long)all);
    ok(tally->moved[0] + tally->moved[1] == tally->bound[0] + tally->bound[1],
       "%llu elements crossed, the fewest possible",
       (unsigned long long)(tally->moved[0] + tally->moved[1]));
    dtensor_fini(ctx);
    return done();
}

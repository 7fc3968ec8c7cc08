/* test_offset_overlap.c - tracker offset: no number is used twice
 *
 * A number is a counter and a stream under a seed.  First the test notes which
 * counters each fill takes, for every distribution, type and fill:
 * dtn_philox() is replaced here.  Then every layout is played on every mesh of
 * up to 12 ranks, two operations after each other; no two parts and no two
 * operations may share a counter.
 *
 * Without this test, two ranks could initialise their shards with the same
 * random numbers.
 */
#include "base/compiler.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "random/dist.h"
#include "random/fill.h"
#include "random/generator.h"
#include "random/philox.h"
#include "random/tracker.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <stdbool.h>
#include <string.h>

/* ---------------------------------------------------------------- fills --- */

static uint64_t noted_first, noted_last;      /* counters; first > last: none */

void __wrap_dtn_philox(int width, uint64_t seed, const struct dtn_counter *at,
                       size_t nblocks, uint32_t *out);
void __wrap_dtn_philox(int width, uint64_t seed, const struct dtn_counter *at,
                       size_t nblocks, uint32_t *out)
{
    const uint64_t last = at->counter + (at->along_stream ? 0 : nblocks - 1);

    (void)width;
    (void)seed;
    memset(out, 0x40, 16 * nblocks);
    noted_first = at->counter < noted_first ? at->counter : noted_first;
    noted_last = last > noted_last ? last : noted_last;
}

enum { NRULES = 3, NDISTS = 9 };

static struct dtensor_random_rule rule_of(int i)
{
    static const int threads[NRULES] = { 256, 256, 512 };

    return (struct dtensor_random_rule){
        .tracker = DTENSOR_TRACKER_OFFSET, .sms = 1,
        .fill = i == 0 ? DTENSOR_FILL_SEQUENTIAL : DTENSOR_FILL_CUDA,
        .threads_per_sm = threads[i], .parallel_dims = "tp"
    };
}

/* false: the type has no such distribution. */
static bool dist_of(int i, enum dtensor_dtype dtype,
                    const struct dtensor_random_rule *rule,
                    struct dtn_dist *dist)
{
    const double cut[] = { 0, 1, -1, 2 };
    int rc = DTENSOR_EINVAL;

    switch (i) {
    case 0: rc = dtn_dist_uniform(dist, dtype, 0, 1, NULL); break;
    case 1: rc = dtn_dist_normal(dist, DTN_NORMAL, dtype, 0, 1, NULL); break;
    case 2: rc = dtn_dist_normal(dist, DTN_LOG_NORMAL, dtype, 0, 1, NULL);
            break;
    case 3: rc = dtn_dist_exponential(dist, dtype, 1, NULL); break;
    case 4: rc = dtn_dist_bernoulli(dist, dtype, 0.5, NULL); break;
    case 5: rc = dtn_dist_trunc_normal(dist, dtype, cut, NULL); break;
    case 6: rc = dtn_dist_integers(dist, dtype, 0, 2, NULL); break;
    case 7: rc = dtn_dist_bits(dist, dtype, NULL); break;
    case 8: rc = dtn_dist_keep(dist, dtype, 0.5, NULL); break;
    }
    if (rc == 0)
        dtn_fill_adapt(rule, dist);
    return rc == 0;
}

/* How many counters n elements take.  CUDA's dropout takes several elements at
 * a time where it can, and up to a block for every four.
 */
static int64_t taken_by(const struct dtensor_random_rule *rule,
                        const struct dtn_dist *dist, int64_t n)
{
    const int64_t need = dtn_fill_need(rule, dist, n) / 4, fours = (n + 3) / 4;

    if (rule->fill == DTENSOR_FILL_CUDA && dist->vector > 1 && fours > need)
        return fours;
    return need;
}

/* What was noted is [block, block + taken), all of it but for dropout. */
static bool fill_keeps_to(const struct dtensor_random_rule *rule,
                          const struct dtn_dist *dist, int64_t n)
{
    static unsigned char out[8 * 2100];
    const uint64_t block = UINT64_C(0x123456789);
    const struct dtn_random_stream stream =
        dtn_random_stream_of(rule, 1, (int64_t)(4 * block), n);
    const uint64_t end = block + (uint64_t)taken_by(rule, dist, n);

    noted_first = UINT64_MAX;
    noted_last = 0;
    dtn_fill(&stream, dist, 0, n, out);
    if (n == 0)
        return noted_first == UINT64_MAX && end == block;
    return noted_first == block && noted_last < end &&
           (noted_last == end - 1 ||
            (rule->fill == DTENSOR_FILL_CUDA && dist->vector > 1));
}

static void test_fills(void)
{
    int bad = 0, cases = 0;
    struct dtn_dist dist;

    for (int r = 0; r < NRULES; r++) {
        const struct dtensor_random_rule rule = rule_of(r);

        for (int i = 0; i < NDISTS; i++)
            for (int d = 0; d < DTENSOR_NDTYPES; d++)
                for (int64_t n = 0; n <= 2100; n += n < 20 || n % 256 == 255 ||
                                                   n % 256 == 0 ? 1 : 17) {
                    if (!dist_of(i, (enum dtensor_dtype)d, &rule, &dist) ||
                        !rounds_pick())
                        continue;
                    cases++;
                    if (!fill_keeps_to(&rule, &dist, n) && bad++ == 0)
                        note("rule %d, distribution %d of %s, %d elements", r,
                             i, dtensor_dtype_name((enum dtensor_dtype)d),
                             (int)n);
                }
    }
    ok(bad == 0, "%d fills take the counters that they are said to", cases);
}

/* -------------------------------------------------------------- layouts --- */

enum { KINDS = 6, RANKS = 12 };              /* ways to cut a dimension       */

struct case_of_two {
    struct dtensor_random_rule rule;
    struct dtn_dist dist[2];
};

/* Every distribution, type and fill has its turn, first and second. */
static void next_case(struct case_of_two *two)
{
    static unsigned turn;
    unsigned at;

    two->rule = rule_of((int)(turn % NRULES));
    for (int k = 0; k < 2; k++)
        do
            at = turn++ / NRULES * 7 + (unsigned)k * 31;
        while (!dist_of((int)(at % NDISTS),
                        (enum dtensor_dtype)(at / NDISTS % DTENSOR_NDTYPES),
                        &two->rule, &two->dist[k]));
}

/* Equal for positions that hold the same. */
static int part_of(const struct dtensor_spec *spec, int index)
{
    int coord[DTENSOR_MAX_DIMS], part = 0;

    dtn_mesh_coord_of(spec->mesh, index, coord);
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (spec->placement[m].kind != DTENSOR_REPLICATE)
            part = part * spec->mesh->size[m] + coord[m];
    return part;
}

struct taken {
    int64_t first, last;                     /* counters, [first, last)       */
    int owner;
};

/* Those with one owner take the same, others nothing that another one takes. */
static bool apart(const struct taken *taken, int n)
{
    for (int a = 0; a < n; a++)
        for (int b = 0; b < a; b++) {
            const struct taken *x = &taken[a], *y = &taken[b];

            if (x->owner == y->owner
                ? x->first != y->first || x->last != y->last
                : x->first < y->last && y->first < x->last)
                return false;
        }
    return true;
}

/* Two operations in turn, on all positions. */
static bool shares_nothing(const struct dtensor_spec *spec,
                           const struct case_of_two *two)
{
    struct dtensor_generator gen = { .offset = 4000, .rule = two->rule };
    const int n = spec->mesh->group.n;
    struct taken taken[2 * RANKS];
    int64_t after = 0;

    for (int k = 0; k < 2; k++) {
        for (int r = 0; r < n; r++) {
            struct taken *at = &taken[k * n + r];
            struct dtn_stream_part draw;

            if (dtn_stream_part_of(&gen, &two->dist[k], spec, r, &draw, NULL)
                    != 0
                || draw.offset < gen.offset || draw.offset % 4 != 0
                || (r > 0 && draw.after != after))
                return false;
            after = draw.after;
            at->first = draw.offset / 4;
            at->last = at->first + taken_by(&gen.rule, &two->dist[k],
                                            draw.numel);
            at->owner = k * RANKS + part_of(spec, r);
            if (at->first < at->last && at->last > after / 4)
                return false;
        }
        gen.offset = after;
    }
    return apart(taken, 2 * n);
}

/* Lengths that add up to what the cuts to the left leave of `dim`, the first
 * not the longest and one of them 0.
 */
static void choose_lengths(const struct dtensor_spec *spec, int m, int dim,
                           int64_t lengths[])
{
    const int n = spec->mesh->size[m];
    int64_t left = spec->shape[dim];
    struct dtn_shard shard;

    for (int k = 0; k < m; k++)
        if (spec->placement[k].kind != DTENSOR_REPLICATE &&
            spec->placement[k].dim == dim) {
            dtn_shard_of(&spec->placement[k], left, spec->mesh->size[k], 0,
                         &shard);
            left = dtn_shard_count(&shard);
        }
    for (int r = 0; r < n - 1; r++) {
        lengths[r] = r % 2 || left == 0 ? 0 : 1;
        left -= lengths[r];
    }
    lengths[n - 1] = left;
}

/* Placement `which` of 1 + KINDS * ndim on mesh dimension m. */
static void place(struct dtensor_spec *spec, int m, int which,
                  int64_t lengths[RANKS])
{
    struct dtensor_placement *p = &spec->placement[m];

    *p = (struct dtensor_placement){ .kind = DTENSOR_REPLICATE };
    if (which-- == 0)
        return;
    *p = (struct dtensor_placement){ .kind = DTENSOR_SHARD,
                                     .dim = which / KINDS };
    switch (which % KINDS) {
    case 1: p->kind = DTENSOR_STRIDED; p->block = 2; break;
    case 2: p->kind = DTENSOR_STRIDED; p->block = 3; break;
    case 3: p->kind = DTENSOR_HEADTAIL; break;
    case 4: p->kind = DTENSOR_CYCLIC; p->block = 3; break;
    case 5:
        choose_lengths(spec, m, p->dim, lengths);
        p->sizes = lengths;
        break;
    }
}

/* The largest part is what some position has. */
static bool most_is_exact(const struct dtensor_spec *spec)
{
    int64_t most = 0, numel;

    for (int r = 0; r < spec->mesh->group.n; r++) {
        numel = dtn_local_numel(spec, r);
        most = numel > most ? numel : most;
    }
    return most == dtn_max_numel(spec);
}

struct tally {
    int64_t layouts;
    int bad, inexact;
};

static void try_layout(const struct dtensor_spec *spec, struct tally *tally)
{
    struct case_of_two two;
    char text[400];

    if (!rounds_pick() || !dtn_spec_lengths_fit(spec))
        return;
    next_case(&two);
    tally->layouts++;
    if (!most_is_exact(spec) && tally->inexact++ == 0)
        note("largest part of %s", dtn_spec_format(spec, text, sizeof text));
    if (!shares_nothing(spec, &two) && tally->bad++ == 0)
        note("%s, fill %d", dtn_spec_format(spec, text, sizeof text),
             (int)two.rule.fill);
}

/* Every combination of placements from mesh dimension m on. */
static void try_placements(struct dtensor_spec *spec, int m,
                           struct tally *tally)
{
    int64_t lengths[RANKS];

    if (m == spec->mesh->ndim) {
        try_layout(spec, tally);
        return;
    }
    for (int which = 0; which <= KINDS * spec->ndim; which++) {
        place(spec, m, which, lengths);
        try_placements(spec, m + 1, tally);
    }
}

static const struct {
    int ndim;
    int64_t shape[3];
} shapes[] = {
    { 0, { 0 } }, { 1, { 0 } }, { 1, { 1 } }, { 1, { 3 } }, { 1, { 8 } },
    { 1, { 61 } }, { 2, { 1, 2 } }, { 2, { 8, 16 } }, { 2, { 13, 0 } },
    { 2, { 5, 33 } }, { 3, { 1, 3, 1 } }, { 3, { 7, 2, 5 } },
};

static void try_mesh(const struct dtensor_mesh *mesh, struct tally *tally)
{
    for (size_t i = 0; i < DTN_COUNT(shapes); i++) {
        struct dtensor_spec spec = { .mesh = mesh, .dtype = DTENSOR_F32,
                                     .ndim = shapes[i].ndim };

        memcpy(spec.shape, shapes[i].shape, sizeof shapes[i].shape);
        try_placements(&spec, 0, tally);
    }
}

/* Every mesh that begins as this one does, of up to 12 ranks. */
static int try_meshes(struct dtensor_mesh *mesh, struct tally *tally)
{
    int meshes = 0;

    if (mesh->ndim > 0) {
        try_mesh(mesh, tally);
        meshes++;
    }
    for (int size = 2; mesh->group.n * size <= RANKS; size++) {
        struct dtensor_mesh longer = *mesh;

        longer.size[longer.ndim++] = size;
        longer.group.n *= size;
        meshes += try_meshes(&longer, tally);
    }
    return meshes;
}

static void test_layouts(void)
{
    struct dtensor_mesh mesh = { .group = { .n = 1 } };
    struct tally tally = { 0 };
    int meshes = try_meshes(&mesh, &tally);

    ok(tally.bad == 0 && meshes == 27, "%lld layouts on all %d meshes of 2 to "
       "12 ranks: no two parts and no two operations share a counter",
       (long long)tally.layouts, meshes);
    ok(tally.inexact == 0, "and none is larger than the largest is said to be");
}

/* -------------------------------------------------------------- defects --- */

/* What PyTorch's offsets share is found, and is as they say. */
static void test_defect(const char *what, int mesh_ndim, const int size[],
                        const struct dtensor_spec *like,
                        const int64_t start[], int64_t end)
{
    struct dtensor_mesh mesh = { .ndim = mesh_ndim, .group = { .n = 1 } };
    struct dtensor_spec spec = *like;
    struct case_of_two two = { .rule = rule_of(0) };
    int64_t from, to;
    int bad = 0;

    for (int m = 0; m < mesh_ndim; m++) {
        mesh.size[m] = size[m];
        mesh.group.n *= size[m];
    }
    spec.mesh = &mesh;
    for (int k = 0; k < 2; k++)
        dist_of(0, DTENSOR_F32, &two.rule, &two.dist[k]);
    ok(shares_nothing(&spec, &two), "%s: nothing is shared", what);
    two.rule.pytorch = 1;
    ok(!shares_nothing(&spec, &two), "%s: but with compat = pytorch", what);
    for (int r = 0; r < mesh.group.n; r++) {
        dtn_stream_offsets(&two.rule, &two.dist[0], &spec, r, &from, &to);
        bad += from != start[r] || to != end;
    }
    ok(bad == 0, "%s: there parts begin at 0, %d, %d, %d ..., and the next "
       "operation at %d", what, (int)start[1], (int)start[2], (int)start[3],
       (int)end);
}

static void test_defects(void)
{
    const struct dtensor_spec twice = {
        .ndim = 2, .shape = { 8, 16 },
        .placement = { { .kind = DTENSOR_SHARD }, { .kind = DTENSOR_SHARD } }
    };
    const struct dtensor_spec tiny = {
        .ndim = 1, .shape = { 8 }, .placement = { { .kind = DTENSOR_SHARD } }
    };

    test_defect("a dimension cut twice", 2, (int[]){ 2, 2 }, &twice,
                (const int64_t[]){ 0, 64, 128, 192 }, 128);
    test_defect("shards of one element", 1, (int[]){ 8 }, &tiny,
                (const int64_t[]){ 0, 4, 4, 4, 4, 8, 8, 8 }, 8);
}

int main(void)
{
    test_fills();
    test_layouts();
    test_defects();
    return done();
}

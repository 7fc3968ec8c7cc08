/* test_tracker.c - which random numbers the part of each rank gets
 *
 * Meshes are made by hand, so one process plays every rank of up to 16.
 * Layouts are drawn at random, with all kinds of placements; what the trackers
 * promise is checked on the counters, not on the values.
 *
 * Without this test, the offsets of a rank could differ from PyTorch's, and a
 * model could not be initialised as there.
 */
#include "job/ctx.h"
#include "job/group.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "random/dist.h"
#include "random/fill.h"
#include "random/generator.h"
#include "random/rows.h"
#include "random/tracker.h"
#include "dtensor.h"
#include "tests/support/golden.h"
#include "tests/support/rand.h"
#include "tests/support/ranks.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static uint64_t state;

/* A mesh of these sizes in no context but the one given. */
static struct dtensor_mesh *mesh_of(struct dtensor_ctx *ctx, int ndim,
                                    const int size[])
{
    struct dtensor_mesh *mesh = calloc(1, sizeof *mesh);
    int n = 1;

    if (!mesh)
        exit(99);
    for (int m = 0; m < ndim; m++)
        n *= size[m];
    mesh->ctx = ctx;
    mesh->ndim = ndim;
    memcpy(mesh->size, size, (size_t)ndim * sizeof size[0]);
    mesh->group = (struct dtn_group){ .ctx = ctx, .n = n };
    return mesh;
}

/* Lengths of the shards of placement m, any that the cuts to its left allow:
 * the next layout overwrites them.
 */
static void random_lengths(struct dtensor_spec *spec, int m)
{
    static int64_t lengths[DTENSOR_MAX_DIMS][16];
    struct dtensor_placement *p = &spec->placement[m];
    const int n = spec->mesh->size[m];
    int64_t left = spec->shape[p->dim];
    struct dtn_shard shard;

    for (int k = 0; k < m; k++)
        if (spec->placement[k].kind != DTENSOR_REPLICATE &&
            spec->placement[k].dim == p->dim) {
            dtn_shard_of(&spec->placement[k], left, spec->mesh->size[k], 0,
                         &shard);
            left = dtn_shard_count(&shard);
        }
    for (int r = 0; r < n; r++) {
        lengths[m][r] = r == n - 1 ? left : rand_below(&state, (int)left + 1);
        left -= lengths[m][r];
    }
    p->sizes = lengths[m];
    if (!dtn_spec_lengths_fit(spec))
        p->sizes = NULL;                   /* parts that differ, to the left  */
}

/* Placements of every kind that a text can name. */
static void random_placement(struct dtensor_spec *spec, int m, bool plain)
{
    struct dtensor_placement *p = &spec->placement[m];
    const int kind = rand_below(&state, plain ? 3 : 7);

    *p = (struct dtensor_placement){ .kind = DTENSOR_REPLICATE };
    if (kind == 0 || spec->ndim == 0)
        return;
    p->kind = kind == 3 ? DTENSOR_STRIDED : kind == 4 ? DTENSOR_CYCLIC
            : kind == 6 ? DTENSOR_HEADTAIL : DTENSOR_SHARD;
    p->dim = rand_below(&state, spec->ndim);
    if (kind == 3 || kind == 4)
        p->block = 1 + rand_below(&state, 4);
    if (kind == 5)
        random_lengths(spec, m);
}

static struct dtensor_mesh *random_layout(struct dtensor_ctx *ctx,
                                          struct dtensor_spec *spec,
                                          bool plain)
{
    int size[3], ndim = 1 + rand_below(&state, 3), n = 16;
    struct dtensor_mesh *mesh;

    for (int m = 0; m < ndim; m++) {
        size[m] = 1 + rand_below(&state, n < 4 ? n : 4);
        n /= size[m];
    }
    mesh = mesh_of(ctx, ndim, size);
    *spec = (struct dtensor_spec){ .mesh = mesh, .dtype = DTENSOR_F32,
                                   .ndim = rand_below(&state, 4) };
    for (int d = 0; d < spec->ndim; d++)
        spec->shape[d] = rand_below(&state, 20) == 0 ? 0 :
                         1 + rand_below(&state, 13);
    for (int m = 0; m < ndim; m++)
        random_placement(spec, m, plain);
    return mesh;
}

static const char *layout_text(const struct dtensor_spec *spec)
{
    static char text[400];

    return dtn_spec_format(spec, text, sizeof text);
}

/* ----------------------------------------------------------------- rows --- */

/* The rows of all positions cover the whole: each element as often as the
 * replicas are many; and a row's local indices follow each other.
 */
static bool rows_cover(const struct dtensor_spec *spec)
{
    const int n = spec->mesh->group.n;
    int64_t numel = dtn_numel(spec->ndim, spec->shape), replicas = 1;
    int *seen = calloc((size_t)numel + 1, sizeof *seen);
    bool good = true;

    for (int m = 0; m < spec->mesh->ndim; m++)
        if (spec->placement[m].kind == DTENSOR_REPLICATE)
            replicas *= spec->mesh->size[m];
    for (int index = 0; index < n; index++) {
        struct dtn_rows rows;
        struct dtn_row row;
        int64_t next = 0;

        dtn_rows_init(&rows, spec, index);
        while (dtn_rows_next(&rows, &row)) {
            good = good && row.local == next && row.count > 0 &&
                   row.global + row.count <= numel;
            next += row.count;
            for (int64_t i = 0; good && i < row.count; i++)
                seen[row.global + i]++;
        }
        good = good && next == dtn_local_numel(spec, index);
    }
    for (int64_t i = 0; i < numel; i++)
        good = good && seen[i] == replicas;
    free(seen);
    return good;
}

/* In a plain layout a part is a box: its rows in order are its elements. */
static bool rows_in_order(const struct dtensor_spec *spec, int index)
{
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];
    int64_t stride[DTENSOR_MAX_DIMS];
    struct dtn_rows rows;
    struct dtn_row row;

    dtn_layout(spec, index, shape, offset);
    dtn_strides(spec->ndim, spec->shape, stride);
    dtn_rows_init(&rows, spec, index);
    while (dtn_rows_next(&rows, &row))
        for (int64_t i = 0; i < row.count; i++) {
            int64_t left = row.local + i, global = 0;

            for (int d = spec->ndim - 1; d >= 0; d--) {
                global += (offset[d] + left % shape[d]) * stride[d];
                left /= shape[d];
            }
            if (global != row.global + i)
                return false;
        }
    return true;
}

static void test_rows(struct dtensor_ctx *ctx)
{
    struct dtensor_spec spec;
    int bad = 0, cases = rounds_of(20000);

    for (int i = 0; i < cases; i++) {
        struct dtensor_mesh *mesh = random_layout(ctx, &spec, i % 2);

        if (!rows_cover(&spec) && bad++ == 0)
            note("%s", layout_text(&spec));
        for (int r = 0; i % 2 && r < mesh->group.n; r++)
            if (!rows_in_order(&spec, r) && bad++ == 0)
                note("order of %s, position %d", layout_text(&spec), r);
        free(mesh);
    }
    ok(bad == 0, "%d layouts: rows cover the whole, each part in its order",
       cases);
}

/* --------------------------------------------------------------- global --- */

/* What all positions fill, row by row, laid in its place is the whole that is
 * filled at once.
 */
static bool parts_are_whole(const struct dtensor_spec *spec,
                            const struct dtn_random_stream *stream,
                            const struct dtn_dist *dist,
                            const unsigned char *whole)
{
    const size_t bytes = dtensor_dtype_size(dist->dtype);
    const size_t all = (size_t)dtn_numel(spec->ndim, spec->shape) * bytes;
    static unsigned char gathered[8 * 13 * 13 * 13];
    struct dtn_rows rows;
    struct dtn_row row;

    memset(gathered, 0x5a, all);
    for (int index = 0; index < spec->mesh->group.n; index++) {
        dtn_rows_init(&rows, spec, index);
        while (dtn_rows_next(&rows, &row)) {
            const size_t at = (size_t)row.global * bytes;

            dtn_fill(stream, dist, row.global, row.count, gathered + at);
            if (memcmp(gathered + at, whole + at,
                       (size_t)row.count * bytes) != 0)
                return false;
        }
    }
    return memcmp(gathered, whole, all) == 0;
}

static void random_dist(struct dtn_dist *dist)
{
    static const enum dtensor_dtype dtypes[] = { DTENSOR_F32, DTENSOR_F64,
                                                 DTENSOR_BF16, DTENSOR_F16 };
    const enum dtensor_dtype dtype = dtypes[rand_below(&state, 4)];

    switch (rand_below(&state, 4)) {
    case 0:  dtn_dist_uniform(dist, dtype, -1, 1, NULL); break;
    case 1:  dtn_dist_normal(dist, DTN_NORMAL, dtype, 0, 1, NULL); break;
    case 2:  dtn_dist_integers(dist, DTENSOR_I64, 0, 1000, NULL); break;
    default: dtn_dist_keep(dist, dtype, 0.5, NULL);
    }
}

static struct dtensor_random_rule random_rule(enum dtensor_tracker tracker)
{
    return (struct dtensor_random_rule){
        .tracker = tracker, .parallel_dims = "tp",
        .fill = rand_below(&state, 2) ? DTENSOR_FILL_CUDA
                                      : DTENSOR_FILL_SEQUENTIAL,
        .sms = 1 + rand_below(&state, 2), .threads_per_sm = 256
    };
}

static void test_global(struct dtensor_ctx *ctx)
{
    static unsigned char whole[8 * 13 * 13 * 13];
    struct dtensor_spec spec;
    struct dtn_dist dist;
    int bad = 0, cases = rounds_of(100000);

    for (int i = 0; i < cases; i++) {
        struct dtensor_mesh *mesh = random_layout(ctx, &spec, i % 3 == 0);
        const struct dtensor_random_rule rule =
            random_rule(DTENSOR_TRACKER_GLOBAL);
        const int64_t numel = dtn_numel(spec.ndim, spec.shape);
        const struct dtn_random_stream stream =
            dtn_random_stream_of(&rule, rand_next(&state),
                                 (int64_t)(rand_next(&state) >> 3 << 2), numel);

        random_dist(&dist);
        dtn_fill_adapt(&rule, &dist);
        dtn_fill(&stream, &dist, 0, numel, whole);
        if (!parts_are_whole(&spec, &stream, &dist, whole) && bad++ == 0)
            note("%s", layout_text(&spec));
        free(mesh);
    }
    ok(bad == 0, "global: %d layouts, all parts gathered are what one rank "
       "makes, bit for bit", cases);
}

/* --------------------------------------------------------------- offset --- */

/* The blocks that one part uses: [first, last) of its streams. */
struct used {
    int64_t first, last;
};

static struct used used_by(const struct dtensor_generator *gen,
                           const struct dtn_dist *dist,
                           const struct dtensor_spec *spec, int index)
{
    struct dtn_stream_part draw;
    int64_t need;

    dtn_stream_part_of(gen, dist, spec, index, &draw, NULL);
    need = dtn_fill_need(&gen->rule, dist, draw.numel);
    return (struct used){ draw.offset / 4, (draw.offset + need) / 4 };
}

/* Do positions a and b hold the same part? */
static bool same_part(const struct dtensor_spec *spec, int a, int b)
{
    int x[DTENSOR_MAX_DIMS], y[DTENSOR_MAX_DIMS];

    dtn_mesh_coord_of(spec->mesh, a, x);
    dtn_mesh_coord_of(spec->mesh, b, y);
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (spec->placement[m].kind != DTENSOR_REPLICATE && x[m] != y[m])
            return false;
    return true;
}

/* Replicas use the same blocks, different parts none in common, and all end
 * before the next operation begins.
 */
static bool offsets_apart(const struct dtensor_generator *gen,
                          const struct dtn_dist *dist,
                          const struct dtensor_spec *spec)
{
    struct dtn_stream_part draw;
    bool good = true;

    dtn_stream_part_of(gen, dist, spec, 0, &draw, NULL);
    for (int a = 0; a < spec->mesh->group.n; a++) {
        const struct used x = used_by(gen, dist, spec, a);

        good = good && x.first >= gen->offset / 4 && x.last <= draw.after / 4;
        for (int b = 0; b < a; b++) {
            const struct used y = used_by(gen, dist, spec, b);

            good = good && (same_part(spec, a, b)
                            ? x.first == y.first && x.last == y.last
                            : x.last <= y.first || y.last <= x.first ||
                              x.first == x.last || y.first == y.last);
        }
    }
    return good && draw.after % 4 == 0;
}

static void test_offset(struct dtensor_ctx *ctx)
{
    struct dtensor_generator gen = { 0 };
    struct dtensor_spec spec;
    struct dtn_dist dist;
    int bad = 0, defective = 0, cases = rounds_of(40000);

    for (int i = 0; i < cases; i++) {
        struct dtensor_mesh *mesh = random_layout(ctx, &spec, i % 2);

        gen.offset = (int64_t)(rand_next(&state) >> 8 << 2);
        gen.rule = random_rule(DTENSOR_TRACKER_OFFSET);
        random_dist(&dist);
        dtn_fill_adapt(&gen.rule, &dist);
        if (!offsets_apart(&gen, &dist, &spec) && bad++ == 0)
            note("%s", layout_text(&spec));
        gen.rule.pytorch = 1;
        defective += !offsets_apart(&gen, &dist, &spec);
        free(mesh);
    }
    ok(bad == 0, "offset: in %d layouts no two shards, and no two operations, "
       "use a block in common", cases);
    ok(defective > 0, "PyTorch's offsets share blocks in %d of them",
       defective);
}

/* Equal parts of a multiple of four elements, no dimension cut twice, CUDA's
 * fill: then the offsets are PyTorch's.
 */
static void test_same(struct dtensor_ctx *ctx)
{
    struct dtensor_random_rule rule = { .fill = DTENSOR_FILL_CUDA, .sms = 132,
                                        .threads_per_sm = 2048 };
    int bad = 0, cases = 0;
    int64_t start[2], end[2];
    struct dtn_dist dist;

    dtn_dist_uniform(&dist, DTENSOR_F32, 0, 1, NULL);
    for (int a = 1; a <= 4; a++)
        for (int b = 1; b <= 4; b++)
            for (int code = 0; code < 7; code++) {
                struct dtensor_mesh *mesh = mesh_of(ctx, 2, (int[]){ a, b });
                struct dtensor_spec spec = { mesh, DTENSOR_F32, 2,
                                             { 4 * a * b, a * b },
                                             { { 0 } } };
                const int first = code % 3, second = code / 3;

                if (first > 0)
                    spec.placement[0] = (struct dtensor_placement){
                        .kind = DTENSOR_SHARD, .dim = first - 1 };
                if (second > 0 && second != first)
                    spec.placement[1] = (struct dtensor_placement){
                        .kind = DTENSOR_SHARD, .dim = second - 1 };
                for (int r = 0; r < a * b; r++)
                    for (rule.pytorch = 0; rule.pytorch < 2; rule.pytorch++)
                        dtn_stream_offsets(&rule, &dist, &spec, r,
                                           &start[rule.pytorch],
                                           &end[rule.pytorch]);
                bad += start[0] != start[1] || end[0] != end[1];
                cases++;
                free(mesh);
            }
    ok(bad == 0, "offset: in %d even layouts it is PyTorch's", cases);
}

/* --------------------------------------------------------------- golden --- */

/* Are start and end those of this line of the table? */
static bool offsets_right(struct dtensor_ctx *ctx, struct golden *table,
                          int *layoutsp)
{
    const struct dtensor_random_rule rule = { .pytorch = 1 };
    struct dtensor_spec spec = { .dtype = DTENSOR_F32 };
    int64_t sizes[DTENSOR_MAX_DIMS], start, end;
    int rank, ndim, size[DTENSOR_MAX_DIMS];
    struct dtensor_mesh *mesh;
    struct dtn_dist dist;

    spec.ndim = golden_sizes(golden_word(table), spec.shape);
    ndim = golden_sizes(golden_word(table), sizes);
    for (int d = 0; d < ndim; d++)
        size[d] = (int)sizes[d];
    spec.mesh = mesh = mesh_of(ctx, ndim, size);
    if (dtensor_placements_parse(mesh, golden_word(table), spec.ndim,
                                 spec.placement, NULL) != 0)
        return false;
    rank = atoi(golden_word(table));
    *layoutsp += rank == 0;
    dtn_dist_uniform(&dist, DTENSOR_F32, 0, 1, NULL);
    dtn_stream_offsets(&rule, &dist, &spec, rank, &start, &end);
    free(mesh);
    return start == atoll(golden_word(table)) &&
           end == atoll(golden_word(table));
}

static void test_golden(struct dtensor_ctx *ctx)
{
    int lines = 0, layouts = 0, bad = 0;
    struct golden table;

    if (!ok(golden_open(&table, "random_offsets.txt"), "the table is there"))
        return;
    for (; golden_next(&table); lines++)
        if (!offsets_right(ctx, &table, &layouts) && bad++ == 0)
            note("%s", table.line);
    golden_close(&table);
    ok(bad == 0 && layouts >= 300, "start and end are those of PyTorch's "
       "tracker for %d ranks of %d layouts", lines, layouts);
}

/* ------------------------------------------------------------- megatron --- */

static void test_megatron(struct dtensor_ctx *ctx)
{
    struct dtensor_mesh *mesh = mesh_of(ctx, 2, (int[]){ 2, 3 });
    struct dtensor_spec spec = { mesh, DTENSOR_F32, 1, { 12 }, { { 0 } } };
    struct dtensor_generator gen = { .seed = 100, .rule = {
        .tracker = DTENSOR_TRACKER_MEGATRON, .parallel_dims = "cp,tp" } };
    struct dtn_stream_part draw;
    struct dtn_dist dist;
    int bad = 0;

    strcpy(mesh->dim_name[0], "dp");
    strcpy(mesh->dim_name[1], "tp");
    dtn_dist_uniform(&dist, DTENSOR_F32, 0, 1, NULL);
    for (int dim = 0; dim < 2; dim++)
        for (int r = 0; r < 6; r++) {
            memset(spec.placement, 0, sizeof spec.placement);
            spec.placement[dim].kind = DTENSOR_SHARD;
            dtn_stream_part_of(&gen, &dist, &spec, r, &draw, NULL);
            bad += draw.seed != (dim == 1 ? 100 + 2718 + (uint64_t)(r % 3)
                                          : 100);
            bad += draw.offset != 0 || draw.after != (dim == 1 ? 4 : 8);
        }
    ok(bad == 0, "megatron: sharded along tp, seed + 2718 + coordinate; else "
       "the seed");
    free(mesh);
}

int main(void)
{
    struct dtensor_ctx *ctx = NULL;

    state = rand_seed(77);
    note("TEST_SEED=%" PRIu64, state);
    if (dtensor_init(NULL, &ctx, NULL) != 0)
        return skip_all("no context");
    test_rows(ctx);
    test_global(ctx);
    test_offset(ctx);
    test_same(ctx);
    test_golden(ctx);
    test_megatron(ctx);
    dtensor_fini(ctx);
    return done();
}

/* test_invalid_specs.c - invalid specs and plans, and what is allowed
 *
 * Every error of PyTorch's DTensor has a row here, with our words.  Where we
 * allow what PyTorch refuses, a row shows that it works.  Without this test a
 * wrong argument could be accepted, or refused in words that help nobody.
 *
 * The rows are in numbered groups, and a claim begins with the number of its
 * group.  The groups 2.3 (what reductions give), 2.4 (parts that do not fit),
 * 4.4, 4.6, 5, 9, 12 and 13 need tensors, and so ranks: they go on in
 * test_invalid_tensors.c.
 *
 *   1    meshes: in test_invalid_meshes.c
 *   2.1  shards            2.2  strided shards        placements, specs
 *   2.3  reductions                                   placements, specs
 *   2.4  shapes and strides                           metas
 *   3    orders, dim_map                              orders
 *   4.1, 4.3 routes        4.4  pairs                 plans
 *   4.6  placements, gradients                        plans
 *   5    factories                                    specs
 *   12   uneven, overflowing, mixed, cross-mesh       specs, plans
 *
 * Errors that cannot be made here: of autograd (5: leaves, grads), of two kinds
 * of tensor (5: a DTensor or an operand where the other is expected), of
 * strides without a shape (5), and of operators and modules (2.3 MaskPartial,
 * 2.4 ExplicitRedistributionContext, 5 distribute_module, checkpoints, 7, 8,
 * 10), which have no part in this room.
 */
#include "redist/plan.h"
#include "dtensor.h"
#include "tests/redist/plan_of.h"
#include "tests/redist/refused.h"
#include "tests/redist/rows.h"
#include "tests/support/tap.h"

#include <stdio.h>
#include <string.h>

static const int two_four[] = { 2, 4 }, two_two_two[] = { 2, 2, 2 };
static const int64_t square[] = { 8, 8 };

/* -------------------------------------------------------------- placements */

static const struct { const char *section, *text, *words; int ndim; }
bad[] = {
    { "2.1", "S(2),R", "placements: word 1 of \"S(2),R\" is \"S(2)\", but "
      "the tensor has 2 dimensions", 2 },
    { "2.1", "R,S(-3)", "placements: word 2 of \"R,S(-3)\" is \"S(-3)\", "
      "but the tensor has 2 dimensions", 2 },
    { "2.1", "S(0),R", "placements: word 1 of \"S(0),R\" is \"S(0)\", but "
      "the tensor has 0 dimensions (a scalar cannot be sharded)", 0 },
    { "2.1", "S(99999999999999999999),R", "placements: word 1 of "
      "\"S(99999999999999999999),R\" is \"S(99999999999999999999)\"; "
      "expected S(dimension), such as S(0)", 2 },
    { "2.2", "SS(0,0),R", "placements: word 1 of \"SS(0,0),R\" is "
      "\"SS(0,0)\"; a factor of 1 or more is expected", 2 },
    { "2.2", "SS(2,2),R", "placements: word 1 of \"SS(2,2),R\" is "
      "\"SS(2,2)\", but the tensor has 2 dimensions", 2 },
    { "2.2", "C(0,0),R", "placements: word 1 of \"C(0,0),R\" is "
      "\"C(0,0)\"; a block of 1 or more is expected", 2 },
    { "2.3", "P(mean),R", "placements: word 1 of \"P(mean),R\" has the "
      "unknown reduction \"mean\"; mean is avg here", 2 },
    { "2.3", "P(concat),R", "placements: word 1 of \"P(concat),R\" has the "
      "unknown reduction \"concat\"; expected sum, avg, prod, min, max, "
      "band, bor or bxor", 2 },
    { "5", "R", "placements: \"R\" has 1, but the mesh has 2 dimensions "
      "(give one for each)", 2 },
    { "5", "R,R,R", "placements: \"R,R,R\" has 3, but the mesh has 2 "
      "dimensions (give one for each)", 2 },
    { "5", "R,Shard(0)", "placements: word 2 of \"R,Shard(0)\" is "
      "\"Shard(0)\"; expected R, S(dimension), SS(dimension,factor), "
      "C(dimension,block), HT(dimension) or P(reduction) (did you mean "
      "S(0)?)", 2 },
    { "4.6", NULL, "placements: there are none; expected one for each of "
      "the 2 mesh dimensions, such as \"S(0)\" or \"R\"", 2 },
    { "3", "S(0)[1]S(0)[1]", "spec: the order of the mesh dimensions that "
      "shard tensor dimension 0 is none (give them 0, 1, ... once each)", 2 },
    { "3", "SS(0,2)[0],S(0)[1]", "spec: placement 0 is not S(dimension), "
      "and only these can be put in another order", 2 },
    { "12", "S(0:1,2,3),R", "placements: word 1 of \"S(0:1,2,3),R\" is "
      "\"S(0:1,2,3)\" with 3 lengths, but mesh dimension 0 has 2 ranks "
      "(give one for each)", 2 },
    { "12", "S(0:-1,9),R", "placements: word 1 of \"S(0:-1,9),R\" is "
      "\"S(0:-1,9)\"; expected S(dimension:length,...), such as "
      "S(0:3,5,2)", 2 },
};

static void placements(struct dtensor_ctx *ctx)
{
    const struct dtensor_mesh *mesh = mesh_of(ctx, 2, two_four);

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        row(bad[i].section, dtensor_placements_parse(mesh, bad[i].text,
                                                     bad[i].ndim,
                                                     out.placement, &why),
            bad[i].words);
    row("5", dtensor_placements_parse(mesh, "R,R", 9, out.placement, &why),
        "placements: for 9 tensor dimensions; expected 0 to 8");
}

/* ------------------------------------------------------------------- specs */

/* What is wrong with a spec filled in by hand: [8,8] of f32 on 2 x 4. */
static const struct spec_row {
    const char *section;
    struct dtensor_spec change;        /* dtype, ndim, shape, placements      */
    const char *words;
} spec_rows[] = {
#define F32 .dtype = DTENSOR_F32, .ndim = 2, .shape = { 8, 8 }
#define CUT(k, d, b) { .kind = DTENSOR_##k, .dim = d, .block = b }
#define HUGE ((int64_t)1 << 31)
#define TERM(o) { .kind = DTENSOR_PARTIAL, .op = o }
    { "2.1", { F32, .placement = { CUT(SHARD, 2, 0) } }, "spec: placement 0 is "
      "of dimension 2, but the tensor has 2 dimensions" },
    { "2.1", { F32, .placement = { CUT(SHARD, -1, 0) } }, "spec: placement 0 "
      "is of dimension -1, but the tensor has 2 dimensions (see "
      "dtensor_spec_normalize)" },
    { "2.1", { .placement = { CUT(SHARD, 0, 0) } }, "spec: placement 0 is of "
      "dimension 0, but the tensor has 0 dimensions" },
    { "2.2", { F32, .placement = { CUT(STRIDED, 0, 0) } }, "spec: placement 0 "
      "has the split factor 0; expected 1 or more" },
    { "2.2", { F32, .placement = { CUT(CYCLIC, 0, -2) } }, "spec: placement 0 "
      "has blocks of -2 elements; expected 1 or more" },
    { "2.3", { F32, .placement = { TERM(DTENSOR_MAX), TERM(DTENSOR_SUM) } },
      "spec: P(max) and P(sum) in one tensor (reduce one of them first; only "
      "sum and avg go together)" },
    { "2.3", { F32, .placement = { TERM(DTENSOR_BAND) } }, "spec: placement 0 "
      "is P(band), which f32 elements do not have" },
    { "2.3", { .dtype = DTENSOR_BOOL, .placement = { TERM(DTENSOR_AVG) } },
      "spec: placement 0 is P(avg), which bool elements do not have" },
    { "2.3", { F32, .placement = { TERM((enum dtensor_redop)99) } }, "spec: "
      "placement 0 is P(?), which f32 elements do not have" },
    { "5", { F32, .placement = { { .kind = (enum dtensor_placement_kind)7 } } },
      "spec: placement 0 is of the unknown kind 7" },
    { "5", { .dtype = (enum dtensor_dtype)99 }, "spec: dtype 99 is none" },
    { "5", { .dtype = DTENSOR_F32, .ndim = 9 }, "spec: 9 tensor dimensions; "
      "expected 0 to 8" },
    { "5", { .dtype = DTENSOR_F32, .ndim = -1 }, "spec: -1 tensor dimensions; "
      "expected 0 to 8" },
    { "12", { .dtype = DTENSOR_F32, .ndim = 2, .shape = { 8, -1 } }, "spec: "
      "size -1 of tensor dimension 1; expected 0 or more" },
    { "12", { .dtype = DTENSOR_F32, .ndim = 2, .shape = { 0, INT64_MAX } },
      "spec: f32[0,9223372036854775807] has over 2^63 bytes (a size of 0 counts "
      "as 1)" },
    { "12", { .dtype = DTENSOR_I8, .ndim = 3, .shape = { HUGE, HUGE, 2 } },
      "spec: i8[2147483648,2147483648,2] has over 2^63 bytes (a size of 0 "
      "counts as 1)" },
    { "12", { F32, .placement = { { .kind = DTENSOR_SHARD,
                                    .sizes = (const int64_t[]){ 3, 4 } } } },
      "spec: the lengths of placement 0 add up to 7, but there are 8 elements "
      "to shard (they must be the same)" },
    { "12", { F32, .placement = { { .kind = DTENSOR_SHARD,
                                    .sizes = (const int64_t[]){ -1, 9 } } } },
      "spec: length 0 of placement 0 is -1; expected 0 or more" },
    { "12", { .dtype = DTENSOR_F32, .ndim = 1, .shape = { 5 }, .placement = {
              CUT(SHARD, 0, 0),
              { .kind = DTENSOR_SHARD,
                .sizes = (const int64_t[]){ 1, 1, 1, 0 } } } },
      "spec: placement 1 has lengths, but placement 0 leaves 3 elements to "
      "some and 2 to others (lengths can be chosen for equal parts only)" },
};

static void specs(struct dtensor_ctx *ctx)
{
    const struct dtensor_mesh *mesh = mesh_of(ctx, 2, two_four);
    static const struct dtensor_spec no_mesh = { F32 };
    struct dtensor_spec spec, was;

    for (size_t i = 0; i < sizeof spec_rows / sizeof spec_rows[0]; i++) {
        const struct spec_row *r = &spec_rows[i];

        spec = r->change;
        spec.mesh = mesh;
        was = spec;
        row(r->section, dtensor_spec_check(&spec, &why), r->words);
        if (strstr(r->words, "normalize"))
            continue;
        row(r->section, dtensor_spec_normalize(&spec, &why), r->words);
        row(r->section, dtensor_zeros(&spec, &out.t, &why), r->words);
        row(r->section, dtensor_plan_create(&spec, &was, NULL, &out.plan, &why),
            r->words);
        ok(memcmp(&spec, &was, sizeof spec) == 0, "and the spec is untouched");
    }
    row("1.2", dtensor_spec_check(&no_mesh, &why), "spec: it has no mesh");
    row("1.2", dtensor_zeros(&no_mesh, &out.t, &why), "spec: it has no mesh");
    row("5", dtensor_spec_init(&out.spec, ctx, "world", "R", DTENSOR_F32, 2,
                               NULL, &why),
        "spec: shape is NULL, but there are 2 tensor dimensions");
    row("2.1", dtensor_spec_init(&out.spec, ctx, "world", "S(2)", DTENSOR_F32,
                                 2, square, &why), "placements: word 1 of "
        "\"S(2)\" is \"S(2)\", but the tensor has 2 dimensions");
    spec = spec_at(mesh, 2, square, "R,S(-1)");
    allowed("2.1", spec.placement[1].dim == 1, "S(-1) where a tensor is known");
    spec = spec_at(mesh, 2, square, "P(sum),P(avg)");
    allowed("2.3", dtensor_spec_check(&spec, &why) == 0, "sums and averages");
}

static struct dtensor_meta meta_of(int64_t rows, int64_t stride)
{
    return (struct dtensor_meta){ DTENSOR_F32, 2, { rows, 4 }, { stride, 1 } };
}

static void metas(struct dtensor_ctx *ctx)
{
    static const int four[] = { 4 };
    const struct dtensor_mesh *mesh = mesh_of(ctx, 1, four);
    const struct dtensor_placement cut[] = { CUT(SHARD, 0, 0) };
    const struct dtensor_placement strided[] = { CUT(STRIDED, 0, 2) };
    const struct dtensor_placement beyond[] = { CUT(SHARD, 2, 0) };
    const struct dtensor_meta odd = meta_of(7, 4), minus = meta_of(7, -4);
    const struct dtensor_meta large = meta_of(INT64_MAX / 16, 4);

    row("2.4", dtensor_meta_local(mesh, cut, &odd, &out.meta, &why),
        "meta: 7 elements of dimension 0 do not divide by the 4 ranks of mesh "
        "dimension 0 (see dtensor_spec_meta)");
    row("2.4", dtensor_meta_global(mesh, strided, &odd, &out.meta, &why),
        "meta: placement 0 is not S(dimension), the only kind with equal parts "
        "(see dtensor_spec_meta)");
    row("2.4", dtensor_meta_global(mesh, beyond, &odd, &out.meta, &why),
        "meta: placement 0 is of dimension 2, but the tensor has 2 dimensions");
    row("12", dtensor_meta_global(mesh, cut, &minus, &out.meta, &why),
        "meta: dimension 0 has stride -4; expected 0 or more");
    row("12", dtensor_meta_global(mesh, cut, &large, &out.meta, &why),
        "meta: f32[2305843009213693948,4] has over 2^63 bytes (a size of 0 "
        "counts as 1)");
}

static void orders(struct dtensor_ctx *ctx)
{
    const struct dtensor_mesh *mesh = mesh_of(ctx, 3, two_two_two);
    struct dtensor_spec spec = spec_at(mesh, 2, square, "S(0),S(0),R");
    struct dtensor_spec strided = spec_at(mesh, 2, square, "SS(0,3),S(0),R");
    struct dtensor_spec beyond = spec, was = spec;
    struct dtensor_plan *plan;
    int shards[2];

    row("3", dtensor_spec_set_order(&spec, (const int[]){ 1, 1, -1 }, &why),
        "spec: the order of the mesh dimensions that shard tensor dimension 0 "
        "is none (give them 0, 1, ... once each)");
    row("3", dtensor_spec_set_order(&spec, (const int[]){ 0, 2, -1 }, &why),
        "spec: the order of the mesh dimensions that shard tensor dimension 0 "
        "is none (give them 0, 1, ... once each)");
    row("3", dtensor_spec_set_order(&strided, (const int[]){ 0, 1, -1 }, &why),
        "spec: placement 0 is not S(dimension), and only these can be put in "
        "another order");
    row("3", dtensor_spec_order(&strided, out.number, &why),
        "spec: placement 0 is in no shard order: of the mesh dimensions to its "
        "right, none that shard tensor dimension 0 make its factor");
    row("3", dtensor_spec_dim_map(&spec, out.number, &why),
        "spec: tensor dimension 0 is sharded by mesh dimensions 0 and 1, "
        "which no dim_map can say (see dtensor_spec_num_shards)");
    beyond.placement[1].dim = 2;
    row("2.1", dtensor_spec_set_order(&beyond, (const int[]){ 0, 0, -1 }, &why),
        "spec: placement 1 is of dimension 2, but the tensor has 2 dimensions");
    row("2.1", dtensor_spec_order(&beyond, out.number, &why),
        "spec: placement 1 is of dimension 2, but the tensor has 2 dimensions");
    beyond.placement[1].dim = -1;
    row("2.1", dtensor_spec_dim_map(&beyond, out.number, &why),
        "spec: placement 1 is of dimension -1, but the tensor has 2 dimensions "
        "(see dtensor_spec_normalize)");
    dtensor_spec_num_shards(&spec, shards);
    allowed("3", memcmp(&spec, &was, sizeof spec) == 0 && shards[0] == 4,
            "a dimension cut twice has its number of shards");
    plan = plan_of(&strided, &spec, DTENSOR_ROUTE_DIRECT);
    allowed("4.1", plan, "a plan from a strided shard that is in no order");
    dtensor_plan_destroy(plan);
}

/* ------------------------------------------------------------------- plans */

/* PyTorch refuses these, or goes through R; here each is one plan, of so many
 * steps.
 */
static const struct { const char *section, *from, *to; int steps; } pairs[] = {
    { "4.3", "SS(0,2),S(0)", "S(0),S(0)", 1 },
    { "4.3", "S(0),S(0)", "SS(0,2),S(0)", 1 },
    { "4.3", "P,R", "SS(0,2),R", 1 },
    { "4.4", "SS(0,2),R", "SS(0,3),R", 1 },
    { "4.4", "S(0),R", "P(sum),R", 1 }, { "4.4", "S(0),R", "P(max),R", 1 },
    { "4.4", "P(sum),R", "P(max),R", 2 }, { "4.4", "P(sum),R", "P(avg),R", 2 },
    { "2.3", "R,R", "P(prod),R", 1 }, { "4.6", "R,S(0)", "P,S(0)", 1 },
};

static void plans_allowed(struct dtensor_ctx *ctx)
{
    const struct dtensor_mesh *mesh = mesh_of(ctx, 2, two_four);
    struct dtensor_plan_info info;
    char text[100];

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const struct dtensor_spec src = spec_at(mesh, 2, square, pairs[i].from);
        const struct dtensor_spec dst = spec_at(mesh, 2, square, pairs[i].to);
        struct dtensor_plan *plan = plan_of(&src, &dst, DTENSOR_ROUTE_DIRECT);

        info.nsteps = 0;
        if (plan)
            dtensor_plan_info(plan, &info);
        snprintf(text, sizeof text, "%s to %s in %d", pairs[i].from,
                 pairs[i].to, pairs[i].steps);
        allowed(pairs[i].section, info.nsteps == pairs[i].steps, text);
        dtensor_plan_destroy(plan);
    }
}

static void plans_refused(struct dtensor_ctx *ctx, struct dtensor_ctx *foreign)
{
    const struct dtensor_mesh *mesh = mesh_of(ctx, 2, two_four);
    const struct dtensor_mesh *cube = mesh_of(ctx, 3, two_two_two);
    const struct dtensor_plan_options none = { .route = DTENSOR_NROUTES };
    const struct dtensor_plan_options greedy = {
        .route = DTENSOR_ROUTE_GREEDY };
    struct dtensor_spec rows = spec_at(mesh, 2, square, "S(0),R");
    struct dtensor_spec max = spec_at(mesh, 2, square, "P(max),R");
    struct dtensor_spec sum = spec_at(mesh, 2, square, "P(sum),R");
    struct dtensor_spec other = spec_at(mesh_of(foreign, 2, two_four), 2,
                                        square, "S(0),R");
    struct dtensor_spec wide = rows, halves = rows, three;
    struct dtensor_plan *plan;

#define NOT_ALIKE(shape) "plan: f32[8,8]  S(0),R  on mesh(2,4) cannot become " \
    shape "  S(0),R  on mesh(2,4) (context, dtype and shape must be the same)"
    wide.shape[1] = 9;
    row("4.4", dtensor_plan_create(&rows, &wide, NULL, &out.plan, &why),
        NOT_ALIKE("f32[8,9]"));
    halves.dtype = DTENSOR_F16;
    row("4.4", dtensor_plan_create(&rows, &halves, NULL, &out.plan, &why),
        NOT_ALIKE("f16[8,8]"));
    row("4.4", dtensor_plan_create(&rows, &other, NULL, &out.plan, &why),
        NOT_ALIKE("f32[8,8]"));
    row("4.1", dtensor_plan_create(&rows, &rows, &none, &out.plan, &why),
        "plan: there is no route 5 (see enum dtensor_route)");
    row("4.3", dtensor_plan_create(&max, &sum, &greedy, &out.plan, &why),
        "plan: no greedy route: PyTorch has no step from one reduction to "
        "another (take another, or auto)");
    row("4.6", dtensor_grad_spec(&rows, &other, &out.spec, &why),
        "gradient: it is on another mesh or has 2 dimensions, the tensor 2 "
        "(both need the same mesh)");
    row("4.6", dtensor_plan_pair(&rows, &rows, &other, NULL, out.pair, &why),
        "gradient: it is on another mesh or has 2 dimensions, the tensor 2 "
        "(both need the same mesh)");
    plan = plan_of(&rows, &rows, DTENSOR_ROUTE_AUTO);
    row("4.1", dtensor_plan_choice(plan, DTENSOR_ROUTE_AUTO, &out.choice, &why),
        "plan: there is no route 0; expected direct, merged, min-cost or "
        "greedy");
    row("4.1", dtensor_plan_step(plan, 3, &out.step, &why),
        "plan: no step 3 (it has 0)");
    dtensor_plan_destroy(plan);
    three = spec_at(cube, 2, square, "R,S(0),S(1)");
    plan = plan_of(&rows, &three, DTENSOR_ROUTE_AUTO);
    allowed("12", plan, "from one mesh to another");
    dtensor_plan_destroy(plan);
}

int main(void)
{
    struct dtensor_ctx *ctx = NULL, *large = NULL;

    if (dtensor_init_offline(NULL, 8, 0, &ctx, &why) != 0 ||
        dtensor_init_offline(NULL, 36, 0, &large, &why) != 0)
        return skip_all(why.text);
    placements(ctx);
    specs(ctx);
    metas(ctx);
    orders(ctx);
    plans_allowed(ctx);
    plans_refused(ctx, large);
    dtensor_fini(large);
    dtensor_fini(ctx);
    return done();
}

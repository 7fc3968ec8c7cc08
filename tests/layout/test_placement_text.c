/* test_placement_text.c - placements and specs: their text, and what is refused
 *
 * Placements are read from text and written again; wrong texts and wrong specs
 * are refused in words; two specs are compared.
 *
 * Without this test, "S(-1)" could be read as another placement than it says,
 * or a spec that nobody can hold be accepted.
 */
#include "base/compiler.h"
#include "job/ctx.h"
#include "job/slot.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "dtensor.h"
#include "tests/support/mesh_job.h"
#include "tests/support/tap.h"

#include <stdint.h>
#include <string.h>

static void test_text(void)
{
    static const struct { const char *text, *want; } t[] = {
        { "S(0),R", "S(0),R" },
        { " S(-1) , P ", "S(1),P(sum)" },
        { "P(avg),P(avg)", "P(avg),P(avg)" },
        { "S(-2),S(1)", "S(0),S(1)" },
        { "P(bxor),R", "P(bxor),R" },
        { "SS(-1, 2),S( 1 )", "SS(1,2),S(1)" },
        { "C(0,64),SS(0,1)", "C(0,64),SS(0,1)" },
        { "HT(-1),HT( 0 )", "HT(1),HT(0)" },
        { "S(0:3,5),S(-1:1, 0,2)", "S(0:3,5),S(1:1,0,2)" },
    };
    const struct dtensor_mesh *mesh = GRID(NULL, 2, 3);
    struct dtensor_placement p[2];
    char text[40], tiny[6];

    for (size_t i = 0; i < DTN_COUNT(t); i++) {
        strcpy(text, "refused");
        if (dtensor_placements_parse(mesh, t[i].text, 2, p, NULL) == 0)
            dtensor_placements_format(mesh, p, text, sizeof text);
        is(text, t[i].want, "read and written");
    }
    dtensor_placements_parse(mesh, "S(0),P(sum)", 2, p, NULL);
    ok(dtensor_placements_format(mesh, p, tiny, sizeof tiny) == 11 &&
       strcmp(tiny, "S(0),") == 0 &&
       dtensor_placements_format(mesh, p, NULL, 0) == 11,
       "cut as snprintf does, and the whole length returned");
}

#define EXPECTED "expected R, S(dimension), SS(dimension,factor), " \
                 "C(dimension,block), HT(dimension) or P(reduction)"

/* Texts that are no placements of 2 dimensions, and what is said of them. */
static const struct { const char *text, *want; } bad_texts[] = {
    { "S(0)", "placements: \"S(0)\" has 1, but the mesh has 2 dimensions "
      "(give one for each)" },
    { "S(0),R,R", "placements: \"S(0),R,R\" has 3, but the mesh has 2 "
      "dimensions (give one for each)" },
    { "S(0),S(2)", "placements: word 2 of \"S(0),S(2)\" is \"S(2)\", but "
      "the tensor has 2 dimensions" },
    { "S(-3),R", "placements: word 1 of \"S(-3),R\" is \"S(-3)\", but the "
      "tensor has 2 dimensions" },
    { "S(x),R", "placements: word 1 of \"S(x),R\" is \"S(x)\"; expected "
      "S(dimension), such as S(0)" },
    { "S(99999999999),R", "placements: word 1 of \"S(99999999999),R\" is "
      "\"S(99999999999)\", but the tensor has 2 dimensions" },
    { "Shard(1),R", "placements: word 1 of \"Shard(1),R\" is \"Shard(1)\"; "
      EXPECTED " (did you mean S(1)?)" },
    { "R,s0", "placements: word 2 of \"R,s0\" is \"s0\"; " EXPECTED
      " (did you mean S(0)?)" },
    { "Replicate,R", "placements: word 1 of \"Replicate,R\" is "
      "\"Replicate\"; " EXPECTED " (did you mean R?)" },
    { "R,Partial()", "placements: word 2 of \"R,Partial()\" is "
      "\"Partial()\"; " EXPECTED " (did you mean P(sum)?)" },
    { "_Shard(0),R", "placements: word 1 of \"_Shard(0),R\" is "
      "\"_Shard(0)\"; " EXPECTED " (did you mean SS(0,factor)?)" },
    { "R,_StridedShard(1)", "placements: word 2 of \"R,_StridedShard(1)\" "
      "is \"_StridedShard(1)\"; " EXPECTED
      " (did you mean SS(1,factor)?)" },
    { "cyclic(1),R", "placements: word 1 of \"cyclic(1),R\" is "
      "\"cyclic(1)\"; " EXPECTED " (did you mean C(1,block)?)" },
    { "HT(0:1,2),R", "placements: word 1 of \"HT(0:1,2),R\" is \"HT(0:1,2)\"; "
      "expected HT(dimension), such as HT(0)" },
    { "R,HT(2)", "placements: word 2 of \"R,HT(2)\" is \"HT(2)\", but the "
      "tensor has 2 dimensions" },
    { "SS(0),R", "placements: word 1 of \"SS(0),R\" is \"SS(0)\"; expected "
      "SS(dimension,factor), such as SS(0,2)" },
    { "SS(0,2,2),R", "placements: word 1 of \"SS(0,2,2),R\" is "
      "\"SS(0,2,2)\"; expected SS(dimension,factor), such as SS(0,2)" },
    { "SS(0,0),R", "placements: word 1 of \"SS(0,0),R\" is \"SS(0,0)\"; a "
      "factor of 1 or more is expected" },
    { "R,C(0,-3)", "placements: word 2 of \"R,C(0,-3)\" is \"C(0,-3)\"; a "
      "block of 1 or more is expected" },
    { "R,C(2,3)", "placements: word 2 of \"R,C(2,3)\" is \"C(2,3)\", but "
      "the tensor has 2 dimensions" },
    { "R,C(0,9223372036854775808)", "placements: word 2 of "
      "\"R,C(0,9223372036854775808)\" is \"C(0,9223372036854775808)\"; "
      "expected C(dimension,block), such as C(0,64)" },
    { "S(0:1,2,3),R", "placements: word 1 of \"S(0:1,2,3),R\" is "
      "\"S(0:1,2,3)\" with 3 lengths, but mesh dimension 0 has 2 ranks "
      "(give one for each)" },
    { "S(0:1),R", "placements: word 1 of \"S(0:1),R\" is \"S(0:1)\" with 1 "
      "lengths, but mesh dimension 0 has 2 ranks (give one for each)" },
    { "S(0:1,-2),R", "placements: word 1 of \"S(0:1,-2),R\" is "
      "\"S(0:1,-2)\"; expected S(dimension:length,...), such as "
      "S(0:3,5,2)" },
    { "S(0:1,),R", "placements: word 1 of \"S(0:1,),R\" is \"S(0:1,)\"; "
      "expected S(dimension:length,...), such as S(0:3,5,2)" },
    { "S(0:),R", "placements: word 1 of \"S(0:),R\" is \"S(0:)\"; "
      "expected S(dimension:length,...), such as S(0:3,5,2)" },
    { "S(0,1),R", "placements: word 1 of \"S(0,1),R\" is \"S(0,1)\"; "
      "expected S(dimension), such as S(0)" },
    { "S(0,R", "placements: word 1 of \"S(0,R\" is \"S(0,R\"; " EXPECTED
      " (did you mean S(0)?)" },
    { "P(sun),R", "placements: word 1 of \"P(sun),R\" has the unknown "
      "reduction \"sun\"; did you mean \"sum\"?" },
    { "P(median),R", "placements: word 1 of \"P(median),R\" has the "
      "unknown reduction \"median\"; expected sum, avg, prod, min, max, "
      "band, bor or bxor" },
    { "P(mean),R", "placements: word 1 of \"P(mean),R\" has the unknown "
      "reduction \"mean\"; mean is avg here" },
    { "Partial(mean),R", "placements: word 1 of \"Partial(mean),R\" has "
      "the unknown reduction \"mean\"; mean is avg here" },
    { "Split(1),R", "placements: word 1 of \"Split(1),R\" is \"Split(1)\"; "
      EXPECTED " (did you mean S(1)?)" },
    { "R,duplicate", "placements: word 2 of \"R,duplicate\" is "
      "\"duplicate\"; " EXPECTED " (did you mean R?)" },
    { "R,", "placements: word 2 of \"R,\" is \"\"; " EXPECTED },
    { "", "placements: word 1 of \"\" is \"\"; " EXPECTED },
};

static void test_bad_text(void)
{
    const struct dtensor_mesh *mesh = GRID(NULL, 2, 3);
    struct dtensor_placement p[2];
    struct dtensor_error err;

    for (size_t i = 0; i < DTN_COUNT(bad_texts); i++) {
        err.text[0] = '\0';
        dtensor_placements_parse(mesh, bad_texts[i].text, 2, p, &err);
        is(err.text, bad_texts[i].want, "refused");
    }
}

/* ---------------------------------------------------------------- specs --- */

static void test_bad_specs(void)
{
    const struct dtensor_mesh *mesh = GRID(NULL, 2, 2);
    struct dtensor_spec good, spec;
    struct dtensor_error err = { 0 };

    dtensor_spec_on(&good, mesh, "S(0),P(sum)", DTENSOR_F32, 2,
                    (const int64_t[]){ 4, 5 }, NULL);
    ok(dtensor_spec_check(&good, NULL) == 0, "a good spec is good");
    spec = good;
    spec.placement[0] = (struct dtensor_placement){ .kind = DTENSOR_PARTIAL,
                                                    .op = DTENSOR_MAX };
    dtensor_spec_check(&spec, &err);
    is(err.text, "spec: P(max) and P(sum) in one tensor (reduce one of them "
       "first; only sum and avg go together)", "two reductions");
    spec = good;
    spec.placement[1].op = DTENSOR_BOR;
    dtensor_spec_check(&spec, &err);
    is(err.text, "spec: placement 1 is P(bor), which f32 elements do not have",
       "bits of floats");
    spec = good;
    spec.placement[0].dim = 2;
    dtensor_spec_check(&spec, &err);
    is(err.text, "spec: placement 0 is of dimension 2, but the tensor has 2 "
       "dimensions",
       "no such dimension");
    spec = good;
    spec.shape[1] = -1;
    dtensor_spec_check(&spec, &err);
    is(err.text, "spec: size -1 of tensor dimension 1; expected 0 or more",
       "a negative size");
    spec = good;
    spec.shape[0] = 0;
    spec.shape[1] = (int64_t)1 << 61;
    dtensor_spec_check(&spec, &err);
    is(err.text, "spec: f32[0,2305843009213693952] has over 2^63 bytes (a size "
       "of 0 counts as 1)",
       "bytes that overflow, even when there are none");
    spec = good;
    spec.dtype = DTENSOR_NDTYPES;
    ok(dtensor_spec_check(&spec, NULL) == DTENSOR_EINVAL, "no such dtype");
    spec = good;
    spec.ndim = 9;
    ok(dtensor_spec_check(&spec, NULL) == DTENSOR_EINVAL, "9 dimensions");
    spec = good;
    spec.placement[0].kind = (enum dtensor_placement_kind)6;
    ok(dtensor_spec_check(&spec, NULL) == DTENSOR_EINVAL, "no such kind");
    spec = good;
    spec.mesh = NULL;
    ok(dtensor_spec_check(&spec, NULL) == DTENSOR_EINVAL, "no mesh");
}

static void test_spec_init(void)
{
    struct dtensor_spec spec = { .ndim = 7 };
    struct dtensor_error err;
    char text[100];

    ok(dtensor_spec_init(&spec, &ctx, "world", "R", DTENSOR_I8, 9, NULL, &err)
       == DTENSOR_EINVAL && spec.ndim == 7,
       "a spec of 9 dimensions is refused, the result untouched");
    ok(dtensor_spec_init(&spec, &ctx, "world", "S(-1)", DTENSOR_BF16, 2,
                         (const int64_t[]){ 10, 5 }, &err) == 0, "a spec is "
       "filled from text");
    is(dtn_spec_format(&spec, text, sizeof text),
       "bf16[10,5]  S(1)  on world(world=256)", "and written");
    ok(dtensor_spec_init(&spec, &ctx, "world", "R", DTENSOR_F64, 0, NULL, &err)
       == 0 && dtn_local_numel(&spec, 3) == 1, "a scalar has one element");
    dtensor_spec_init(&spec, &ctx, "world", "S(0)", DTENSOR_F64, 0, NULL, &err);
    is(err.text, "placements: word 1 of \"S(0)\" is \"S(0)\", but the tensor "
       "has 0 dimensions (a scalar cannot be sharded)", "a scalar shard");
}

static void test_equal(void)
{
    const struct dtensor_mesh *mesh = GRID(NULL, 2, 2);
    const int64_t shape[] = { 4, 5 };
    struct dtensor_spec a, b;

    dtensor_spec_on(&a, mesh, "S(0),R", DTENSOR_F32, 2, shape, NULL);
    b = a;
    b.shape[5] = 77;
    b.placement[1].dim = 1;
    b.placement[0].op = DTENSOR_MAX;
    ok(dtn_spec_equal(&a, &b), "fields without meaning do not count");
    b.placement[0].dim = 1;
    ok(!dtn_spec_equal(&a, &b) && dtn_spec_same_tensor(&a, &b),
       "other placements: the same tensor, not equal");
    b.shape[0] = 5;
    ok(!dtn_spec_same_tensor(&a, &b), "another shape: another tensor");
}

int main(void)
{
    start(256, 0);
    test_text();
    test_bad_text();
    test_bad_specs();
    test_spec_init();
    test_equal();
    dtn_slots_destroy(&ctx);
    return done();
}

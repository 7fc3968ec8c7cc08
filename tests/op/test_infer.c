/* test_infer.c - what is inferred, kept and refused
 *
 * Decisions that people rely on, cuts of every kind, the cache, and the words
 * for each wrong call.
 *
 * Without this test, a second call could be decided anew or find the decision
 * of another one, other cuts than S could be lost or mixed up, and a wrong call
 * could crash or say nothing useful.
 */
#include "dtensor.h"
#include "tests/redist/plan_of.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 6, OUTPUTS = 8 };

static struct dtensor_ctx *ctx;

/* A call, from words: operator, arguments, mesh, inputs "16x8:f32:S(0) ...". */
struct asked {
    struct dtensor_op_call call;           /* of in                           */
    struct dtensor_spec in[INPUTS];        /* its inputs                      */
    struct dtensor_spec want[INPUTS], out[OUTPUTS];
    struct dtensor_op_info info;           /* of the decision                 */
    struct dtensor_error err;              /* or why there is none            */
};

static const struct dtensor_mesh *mesh_at(const char *text)
{
    int size[DTENSOR_MAX_DIMS], n = 0;
    char *end;

    for (; *text; text = *end ? end + 1 : end)
        size[n++] = (int)strtol(text, &end, 10);
    return mesh_of(ctx, n, size);
}

/* "16x8:f32:S(0),R" */
static void spec_read(const struct dtensor_mesh *mesh, const char *text,
                      struct dtensor_spec *spec)
{
    char dtype[8];
    char *end;

    *spec = (struct dtensor_spec){ .mesh = mesh };
    for (; *text >= '0' && *text <= '9'; text = end + (*end == 'x'))
        spec->shape[spec->ndim++] = strtoll(text, &end, 10);
    text++;
    snprintf(dtype, sizeof dtype, "%.*s", (int)strcspn(text, ":"), text);
    if (dtensor_dtype_parse(dtype, &spec->dtype, NULL) != 0 ||
        dtensor_placements_parse(mesh, strchr(text, ':') + 1, spec->ndim,
                                 spec->placement, NULL) != 0)
        abort();
}

static void call_read(struct asked *a, const char *op, const char *args,
                      const char *mesh, const char *in)
{
    char text[300];

    *a = (struct asked){ .call = { .op = op, .in = a->in } };
    if (dtensor_op_args_parse(args, &a->call.args, NULL) != 0)
        abort();
    snprintf(text, sizeof text, "%s", in);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        spec_read(mesh_at(mesh), word, &a->in[a->call.nin++]);
}

static int ask(struct asked *a)
{
    a->err.text[0] = '\0';
    return dtensor_op_infer(&a->call, a->want, OUTPUTS, a->out, &a->info,
                            &a->err);
}

/* "S(0); R -> S(0)" */
static void answer(const struct asked *a, char *text, size_t size)
{
    size_t at = 0;

    for (int i = 0; i < a->call.nin + a->info.nout; i++) {
        const bool out = i >= a->call.nin;
        const struct dtensor_spec *spec = out ? &a->out[i - a->call.nin]
                                              : &a->want[i];

        at += (size_t)snprintf(text + at, size - at, "%s", i == 0 ? ""
                               : i == a->call.nin ? " -> " : "; ");
        at += (size_t)dtensor_placements_format(spec->mesh, spec->placement,
                                                text + at, size - at);
    }
}

/* ------------------------------------------------------------ decisions --- */

static const struct {
    const char *op, *args, *mesh, *in, *answer;
} decided[] = {
    { "matmul", "", "4", "16x8:f32:S(0) 8x12:f32:S(1)",
      "S(0); R -> S(0)" },
    { "matmul", "", "4", "16x8:f32:S(1) 8x12:f32:R",
      "S(1); S(0) -> P(sum)" },
    { "matmul", "", "2", "2048x2048:f32:S(0) 2048x2048:f32:S(1)",
      "S(0); R -> S(0)" },                 /* makes no terms: terms.c     */
    { "matmul", "", "8", "2048x2048:f32:S(0) 2048x2048:f32:S(1)",
      "S(0); R -> S(0)" },
    { "matmul", "", "8", "64x4096:f32:S(0) 4096x64:f32:S(1)",
      "S(1); S(0) -> P(sum)" },            /* of a result that is small   */
    { "matmul", "", "4x2", "4096x4096:f32:S(1),S(1) 4096x1024:f32:S(1),S(1)",
      "S(1),S(0); S(0),R -> P(sum),S(0)" },/* terms along both cost more  */
    { "matmul", "", "2x8x8",
      "256x4096:f32:S(1),S(1),S(1) 4096x4096:f32:R,S(1),S(1)",
      "R,S(1),R; S(1),S(0),S(1) -> S(1),P(sum),S(1)" },
    { "div", "", "4", "8:f32:R 8:f32:P(sum)", "R; R -> R" },
    { "unbind", "dim=0", "8", "3x2:f32:S(1)", "S(1) -> S(0); S(0); S(0)" },
    { "minimum", "", "4", "8:f32:P(min) 8:f32:P(min)",
      "P(min); P(min) -> P(min)" },
    { "linear", "", "4", "4x12x10:f32:S(2) 7x10:f32:R 7:f32:R",
      "S(2); S(1); P(sum) -> P(sum)" },    /* nothing is sent             */
    { "linear", "", "4", "4x12x10:f32:R 7x10:f32:S(1)",
      "S(2); S(1) -> P(sum)" },
    { "linear", "", "3", "4x12x10:f32:S(0) 7x10:f32:R 7:f32:R",
      "S(0); R; R -> S(0)" },              /* PyTorch refuses: uneven     */
    { "matmul", "", "1", "16x8:f32:S(0) 8x12:f32:S(0)", "R; R -> R" },
    { "matmul", "", "2x1", "16x8:f32:R,S(0) 8x12:f32:R,S(0)",
      "R,R; R,R -> R,R" },
    { "expand", "shape=6x8", "4", "1x8:f32:S(0)", "R -> R" },
    { "add", "", "4", "12:f32:C(0,2) 12:f32:R",
      "C(0,2); C(0,2) -> C(0,2)" },
    { "add", "", "4", "12:f32:S(0:3,1,2,6) 12:f32:R",
      "S(0:3,1,2,6); S(0:3,1,2,6) -> S(0:3,1,2,6)" },
    { "sum", "dim=0", "2x2", "12x8:f32:SS(0,2),S(0)",
      "SS(0,2),S(0) -> P(sum),P(sum)" },
    { "matmul", "", "3", "9x6:f32:C(1,1) 6x4:f32:C(0,1)",
      "C(1,1); C(0,1) -> P(sum)" },
    { "mean", "dim=0", "4", "13x8:f32:S(1)", "S(1) -> S(0)" },
    { "mean", "dim=0", "4", "12:f32:S(0:3,4,3,2)", "S(0) -> P(avg)" },
    { "mean", "dim=0", "4", "13:f32:S(0:3,5,3,2)", "R -> R" },
    { "mean", "dim=0", "4", "12:f32:HT(0)", "HT(0) -> P(avg)" },
    { "mean", "dim=0", "4", "13:f32:HT(0)", "R -> R" },
    { "add_", "", "4", "8:f32:P(sum) 8:f32:P(avg)",
      "P(sum); P(sum) -> P(sum)" },        /* PyTorch fails when it runs  */
    { "fill_", "", "4", "8:f32:P(avg)", "P(avg) -> P(avg)" },
    { "norm", "p=inf", "4", "8:f32:P(max)", "R -> R" },
    { "split", "dim=0,count=4", "4", "10x8:f32:S(1)",
      "S(1) -> S(1); S(1); S(1)" },
    { "cast", "dtype=i64", "4", "8:u32:P(sum)", "P(sum) -> P(sum)" },
    { "view", "shape=0x5", "4", "5x0:f32:S(0)", "R -> R" },
    { "split", "dim=0,count=9223372036854775807", "4", "10x8:f32:S(1)",
      "S(1) -> S(1)" },
    { "slice", "dim=0,end=10,step=9223372036854775807", "4", "10x8:f32:S(1)",
      "S(1) -> S(1)" },
    { "layer_norm", "count=8", "4", "4x1x1x1x1x1x1x1:f32:R",
      "R -> R; R; R" },
    { "stack", "dim=0", "2x2", "4x6:f32:P(max),S(0) 4x6:f32:R,P(sum)",
      "P(max),S(0); P(max),S(0) -> P(max),S(1)" },
    { "stack", "dim=1", "2x2", "4x6:f32:P(max),R 4x6:f32:R,P(sum)",
      "P(max),R; P(max),R -> P(max),R" },  /* one tensor, one reduction   */
};

static void decisions(void)
{
    struct asked a;
    char text[500];

    for (size_t i = 0; i < sizeof decided / sizeof decided[0]; i++) {
        call_read(&a, decided[i].op, decided[i].args, decided[i].mesh,
                  decided[i].in);
        if (ask(&a) == 0)
            answer(&a, text, sizeof text);
        else
            snprintf(text, sizeof text, "%s", a.err.text);
        if (!ok(strcmp(text, decided[i].answer) == 0, "%s %s of %s: %s",
                decided[i].op, decided[i].args, decided[i].in,
                decided[i].answer))
            note("got %s", text);
    }
    call_read(&a, "split", "dim=0,count=4", "4", "10x8:f32:S(1)");
    ok(ask(&a) == 0 && a.out[1].shape[0] == 4 && a.out[2].shape[0] == 2,
       "the last piece of a split has what is left");
    call_read(&a, "cat", "dim=0", "4", "10x8:f32:S(1) 5x8:f32:S(1)");
    ok(ask(&a) == 0 && a.out[0].shape[0] == 15 && a.info.predicted_us == 0,
       "a concatenation has all decided, and moves nothing");
    call_read(&a, "lt", "", "4", "8:f32:S(0) 8:f32:S(0)");
    ok(ask(&a) == 0 && a.out[0].dtype == DTENSOR_BOOL,
       "a comparison gives bool");
    call_read(&a, "add", "", "2x2x2x2x2x2x2x2", "512:f32:S(0),R,P,R,R,P,R,S(0) "
              "512:f32:R,S(0),R,P,R,S(0),R,R");
    ok(ask(&a) == 0, "a mesh of eight dimensions is decided too");
}

/* ---------------------------------------------------------------- costs --- */

/* What is predicted is what the plans of the inputs predict. */
static void predictions(void)
{
    struct asked a;
    double us = 0;

    call_read(&a, "matmul", "", "2x2", "64x32:f64:S(0),S(1) 32x48:f64:S(1),P");
    if (ask(&a) != 0)
        abort();
    for (int i = 0; i < 2; i++) {
        struct dtensor_plan_info info;
        struct dtensor_plan *plan = plan_of(&a.in[i], &a.want[i],
                                            DTENSOR_ROUTE_AUTO);

        dtensor_plan_info(plan, &info);
        us += info.predicted_us;
        dtensor_plan_destroy(plan);
    }
    ok(us > 0 && fabs(us - a.info.predicted_us) < 1e-6 * us, "%.3f us are "
       "predicted for a product, as for the plans of its inputs", us);
}

/* ---------------------------------------------------------------- cache --- */

static void cached(void)
{
    struct dtensor_op_cache before, after;
    struct asked a;

    call_read(&a, "scale", "value=2", "4", "24x6:f32:S(0)");
    dtensor_op_cache(ctx, &before);
    ok(ask(&a) == 0 && ask(&a) == 0, "a call is decided twice");
    a.call.args.value = 0.25;
    a.call.args.count = 7;
    ok(ask(&a) == 0, "and with another factor");
    dtensor_op_cache(ctx, &after);
    ok(after.misses == before.misses + 1 && after.hits == before.hits + 2,
       "one decision was made and found twice: what is not read is no key");
    call_read(&a, "softmax", "dim=0", "4", "24x6:f32:S(0)");
    ask(&a);
    a.call.args.dim[0] = 1;
    ask(&a);
    ok(a.out[0].placement[0].kind == DTENSOR_SHARD, "another dimension finds "
       "its own decision");
    for (int i = 1; i <= 300; i++) {
        char in[40];

        snprintf(in, sizeof in, "%dx4:f32:S(0)", i);
        call_read(&a, "relu", "", "4", in);
        ask(&a);
    }
    dtensor_op_cache(ctx, &after);
    ok(after.entries == after.limit && after.dropped > 0, "the cache keeps %d "
       "decisions and drops the others", after.limit);
}

/* -------------------------------------------------------------- refused --- */

static const struct {
    const char *op, *args, *in;        /* on a mesh of 4                  */
    const char *words;                 /* in the error                    */
} refusals[] = {
    { "matmull", "", "4:f32:R", "did you mean \"matmul\"" },
    { "mm", "", "4:f32:R", "mm is matmul here" },
    { "cast/none", "", "4:f32:R", "no operator" },
    { "", "", "4:f32:R", "no operator \"\"" },
    { "conv2d", "", "4:f32:R", "no operator \"conv2d\" (expected one of those" },
    { "matmul", "", "16x8:f32:S(0) 9x12:f32:S(1)",
      "matmul of 16x8 f32 S(0), 9x12 f32 S(1): dimension 0 of input 1 has "
      "9 elements, that of input 0 has 8" },
    { "matmul", "", "16x8:f32:S(0) 8x12:f64:R",
      "input 0 is f32, input 1 is f64 (cast one of them)" },
    { "matmul", "", "8:f32:R 8x2:f32:R", "input 0 has 1 dimensions "
      "(expected 2 or more)" },
    { "matmul", "", "8x8:f32:R", "there are 1 inputs (expected 2)" },
    { "relu", "", "8:f32:R 8:f32:R", "there are 2 inputs (expected 1)" },
    { "add", "", "4x6:f32:R 5x6:f32:R", "they must be equal, or 1" },
    { "add", "", "4:bool:R 4:bool:R", "expected a number" },
    { "exp", "", "4:i32:R", "expected a float" },
    { "neg", "", "4:u8:R", "expected a number with a sign" },
    { "amax", "", "4:c64:R", "expected no complex number" },
    { "where", "", "4:f32:R 4:f32:R 4:f32:R", "expected bool" },
    { "embedding", "", "9x4:f32:R 3:f32:R", "expected i64 or i32" },
    { "embedding", "", "9x4:f32:R 1x1x1x1x1x1x1x1:i64:R", "the result would "
      "have 9 dimensions (expected at most 8)" },
    { "stack", "dim=0", "1x1x1x1x1x1x1x1:f32:R", "at most 7" },
    { "unsqueeze", "dim=0", "1x1x1x1x1x1x1x1:f32:R", "at most 7" },
    { "softmax", "", "4x6:f32:R", "args.dim names 0 dimensions (expected "
      "one)" },
    { "sort", "dim=0+1", "4x6:f32:R", "expected one)" },
    { "sum", "dim=2", "4x6:f32:R", "there is no dimension 2 (expected -2 "
      "to 1)" },
    { "softmax", "dim=0", ":f32:R", "there is no dimension 0 (the input has "
      "none)" },
    { "sum", "dim=1+-1", "4x6:f32:R", "dimension -1 is named twice" },
    { "topk", "dim=0,count=9", "4x6:f32:R", "args.count is 9 (expected 1 to "
      "the size of dimension 0, 4)" },
    { "split", "dim=0", "4x6:f32:R", "args.count is 0 (expected 1 or more)" },
    { "split", "dim=0,count=1", "9:f32:R", "there are 9 outputs, but room "
      "for 8" },
    { "select", "dim=0,start=4", "4x6:f32:R", "args.start is 4 (expected an index "
      "of dimension 0, which has 4 elements)" },
    { "slice", "dim=0,start=3,end=1", "4:f32:R", "args.start is 3, args.end 1, "
      "args.step 0 (expected 0 <= start" },
    { "slice", "dim=0,end=4,step=-1", "4:f32:R", "args.start is 0, args.end 4, "
      "args.step -1 (expected 0 <= start" },
    { "pad", "dim=0,start=-1", "4:f32:R", "args.start is -1, args.end 0 (expected "
      "0 or more" },
    { "pad", "dim=0,start=9223372036854775807,end=9", "4:f32:R", "less than "
      "2^63 elements" },
    { "layer_norm", "count=-1", "4:f32:R", "args.count is -1 (expected 0" },
    { "argmax", "", "4x6:f32:R", "args.dim names 0 dimensions (expected one)" },
    { "add_", "", "6:f32:R 4x6:f32:R", "the result has another shape" },
    { "mul_", "", "6:f32:P(max) 6:f32:R", "it works in place, and input 0 "
      "cannot keep its placement" },
    { "fill_", "", "6:f32:P(sum)", "it works in place" },
    { "unbind", "dim=0", "4x6:f32:S(0)", "it moves nothing, and dimension "
      "0 is sharded" },
    { "cat", "dim=0", "4x6:f32:R 4x5:f32:R", "input 1 has another shape" },
    { "index", "dim=0+1", "4x6:f32:R 3:i64:R", "names 2 dimensions, but there "
      "are 1 indices" },
    { "index", "dim=0+1", "4x6:f32:R 3:i64:R 2:i64:R", "input 2 has another "
      "shape" },
    { "index", "dim=0", "1x1x1x1x1x1x1x1:f32:R 1x1:i64:R", "have 9 dimensions "
      "(expected at most 8)" },
    { "index_put", "dim=0", "4x6:f32:R 3x5:f32:R 3:i64:R", "dimension 1 of "
      "input 1 has 5 elements (expected 6 or 1)" },
    { "index_put", "dim=0", "4x1:f32:R 3x6:f32:R 3:i64:R",
      "(expected 1 or 1)" },
    { "index_put", "dim=0", "4x6:f32:R 2x6:f32:R 3:i64:R", "of input 2 has 3 "
      "elements, that of input 1 has 2" },
    { "index_put", "dim=0", "4x6:f32:R 1x3x6:f32:R 3:i64:R", "input 1 has 3 "
      "dimensions (expected at most 2)" },
    { "stack", "dim=0", "4x6:f32:R 4x5:f32:R",
      "input 1 has another shape" },
    { "stack", "dim=3", "4x6:f32:R", "there is no dimension 3" },
    { "layer_norm", "", "4x6:f32:R 5:f32:R", "has 5 elements (expected "
      "6)" },
    { "view", "shape=5x5", "4x6:f32:R", "24 elements do not become 5x5 "
      "(expected sizes of as many elements, of which one may be -1)" },
    { "view", "shape=24", "6x4:f32:S(0)", "view of 6x4 f32 S(0): the parts "
      "of dimension 0, 6 over 4 ranks, are not parts of 24 (redistribute "
      "to S(1) before)" },
    { "squeeze", "dim=0", "1x8:f32:S(0)", "goes away (redistribute to S(1) "
      "before)" },
    { "squeeze", "dim=2", "1x8:f32:R", "there is no dimension 2" },
    { "expand", "shape=4x6", "2x6:f32:R", "does not expand to 4x6" },
    { "expand", "shape=6", "2x6:f32:R", "expected 2 or more" },
    { "repeat", "shape=2", "2x6:f32:R", "expected 2 or more" },
    { "repeat", "shape=-1x2", "2x6:f32:R", "expected 0 or more" },
    { "permute", "dim=0+0", "2x6:f32:R", "named twice" },
    { "permute", "dim=0", "2x6:f32:R", "names 1 dimensions (expected 2)" },
    { "unsqueeze", "", "2x6:f32:R", "names 0 dimensions" },
    { "view", "", "2:f32:R 2:f32:R", "there are 2 inputs (expected 1)" },

    { "softmax_backward", "dim=0", "4x6:f32:R 5x6:f32:R", "dimension 0 of "
      "input 1 has 5 elements, that of input 0 has 4" },
    { "cross_entropy_backward", "", "4:f32:R 4x6:f32:R 4:i64:R 4:f32:R 4:f64:R",
      "input 4 is f64 (expected f32)" },

    /* Sizes near 2^63, and counts that are no number of dimensions. */
    { "repeat", "shape=4611686018427387904", "4:u8:R", "less than 2^63" },
    { "cat", "dim=0", "4611686018427387904x0:u8:R 4611686018427387904x0:u8:R",
      "the inputs together have 2^63 elements or more" },
    { "pad", "dim=0,start=9223372036854775807,end=9223372036854775807",
      "4:u8:R", "less than 2^63 elements" },
    { "split", "dim=0,count=1", "4294967297x0:u8:R",
      "4294967297 outputs, more than 2^20" },
    { "unbind", "dim=0", "4294967297x0:u8:R", "4294967297 outputs, more" },
    { "layer_norm", "count=9", "4x6:f32:R", "input 0 has 2 dimensions "
      "(expected 9 or more)" },
};

static void refused(void)
{
    struct asked a;

    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        call_read(&a, refusals[i].op, refusals[i].args, "4", refusals[i].in);
        a.info.nout = -1;
        if (!ok(ask(&a) == DTENSOR_EINVAL && a.info.nout == -1 &&
                strstr(a.err.text, refusals[i].words),
                "%s %s of %s is refused: %s", refusals[i].op,
                refusals[i].args, refusals[i].in, refusals[i].words))
            note("got %s", a.err.text);
    }
}

static void refused_structs(void)
{
    const struct dtensor_op_call none = { .op = "relu" };
    struct asked a, b;
    struct dtensor_op_args args = { .keep = 5 };

    call_read(&a, "add", "", "4", "8:f32:R 8:f32:R");
    call_read(&b, "add", "", "2x2", "8:f32:R,R 8:f32:R,R");
    a.in[1] = b.in[1];
    ok(ask(&a) == DTENSOR_EINVAL && strstr(a.err.text, "input 1 on"),
       "inputs on two meshes are refused: %s", a.err.text);
    a.in[1].mesh = NULL;
    ok(ask(&a) == DTENSOR_EINVAL, "an input without a mesh: %s", a.err.text);
    a.in[1] = a.in[0];
    a.in[1].ndim = 99;
    ok(ask(&a) == DTENSOR_EINVAL, "an input of 99 dimensions: %s", a.err.text);
    a.call.op = NULL;
    ok(ask(&a) == DTENSOR_EINVAL, "no operator: %s", a.err.text);
    a.call = none;
    ok(ask(&a) == DTENSOR_EINVAL, "no inputs: %s", a.err.text);
    ok(dtensor_op_infer(NULL, a.want, 1, a.out, &a.info, &a.err) ==
       DTENSOR_EINVAL, "no call: %s", a.err.text);
    call_read(&a, "cast", "", "4", "8:f32:R");
    a.call.args.dtype = DTENSOR_NDTYPES;
    ok(ask(&a) == DTENSOR_EINVAL, "a dtype that is none: %s", a.err.text);
    call_read(&a, "sum", "", "4", "8:f32:R");
    a.call.args.ndims = 12;
    ok(ask(&a) == DTENSOR_EINVAL, "too many dimensions: %s", a.err.text);
    call_read(&a, "squeeze", "", "4", "8:f32:R");
    a.call.args.ndims = 12;
    ok(ask(&a) == DTENSOR_EINVAL, "and of a view: %s", a.err.text);
    ok(dtensor_op_args_parse("dims=1", &args, &a.err) == DTENSOR_EINVAL &&
       strstr(a.err.text, "did you mean \"dim\"") && args.keep == 5,
       "a wrong argument: %s", a.err.text);
    ok(dtensor_op_args_parse("keep=2", &args, &a.err) == DTENSOR_EINVAL &&
       dtensor_op_args_parse("dim=a", &args, NULL) == DTENSOR_EINVAL &&
       dtensor_op_args_parse("shape=4x", &args, NULL) == DTENSOR_EINVAL &&
       dtensor_op_args_parse("dim", &args, NULL) == DTENSOR_EINVAL &&
       dtensor_op_args_parse("count=1.5", &args, NULL) == DTENSOR_EINVAL &&
       dtensor_op_args_parse("reduction=max", &args, NULL) == DTENSOR_EINVAL &&
       dtensor_op_args_parse(NULL, &args, NULL) == DTENSOR_EINVAL,
       "wrong values: %s", a.err.text);
    ok(dtensor_op_args_parse("dim=-1+0,shape=4x6,p=inf,dtype=i32,"
                             "reduction=mean,end=5", &args, NULL) == 0 &&
       args.ndims == 2 && args.dim[0] == -1 && args.ndim == 2 &&
       args.shape[1] == 6 && isinf(args.p) && args.dtype == DTENSOR_I32 &&
       args.reduction == DTENSOR_OP_MEAN && args.end == 5 && args.keep == 0,
       "all arguments are read");
}

/* Numbers that no text gives, or that nobody gives. */
static void odd_numbers(void)
{
    struct asked a;

    call_read(&a, "cross_entropy", "", "4", "8x4:f32:R 8:i64:R");
    a.call.args.reduction = (enum dtensor_op_reduction)7;
    ok(ask(&a) == DTENSOR_EINVAL && strstr(a.err.text, "args.reduction is 7"),
       "a reduction that is none: %s", a.err.text);
    call_read(&a, "slice", "dim=0,start=1,end=4,step=9223372036854775807", "4",
              "8:f32:R");
    ok(ask(&a) == 0 && a.out[0].shape[0] == 1,
       "a step beyond the end leaves the first element");
}

static void printing(void)
{
    FILE *full = fopen("/dev/full", "w");
    struct asked a;

    call_read(&a, "matmul", "", "4", "16x8:f32:S(0) 8x12:f32:S(1)");
    if (full)
        ok(dtensor_op_print(&a.call, full, &a.err) == DTENSOR_ESYS,
           "a full disk is told: %s", a.err.text);
    else
        skip("a full disk is told", "there is no /dev/full");
    if (full)
        fclose(full);
    ok(dtensor_op_print(&a.call, NULL, &a.err) == DTENSOR_EINVAL,
       "and no stream: %s", a.err.text);
}

int main(void)
{
    ctx = planner_of(256, 256);
    decisions();
    predictions();
    cached();
    refused();
    refused_structs();
    odd_numbers();
    printing();
    dtensor_fini(ctx);
    return done();
}

/* test_view.c - views leave every element where it is
 *
 * Random shapes, meshes and placements, strided shards included: whatever a
 * view says about its output, each rank must have the same elements in the same
 * order before and after, if nothing is moved.  And what an error advises has
 * to help.
 *
 * Without this test, a view could name placements that its parts do not have,
 * and the next redistribute would mix up elements.
 */
#include "dtensor.h"
#include "tests/op/view_exact.h"
#include "tests/redist/plan_of.h"
#include "tests/support/tap.h"

#include <stdlib.h>
#include <string.h>

static uint64_t seed = 20261123;

static int draw(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

/* A shape of `all` elements: its factors, and some ones, in any order. */
static int shape_draw(int64_t all, int64_t shape[])
{
    int n = 0;

    while (all > 1 && n < 3) {
        int64_t size = 1 + draw((int)all);

        while (all % size != 0)
            size--;
        shape[n++] = size;
        all /= size;
    }
    if (all > 1 || n == 0)
        shape[n++] = all;
    return n;
}

static void spec_draw(struct dtensor_spec *spec)
{
    for (int m = 0; m < dtensor_mesh_ndim(spec->mesh); m++) {
        const int kind = draw(8);
        struct dtensor_placement *p = &spec->placement[m];

        *p = (struct dtensor_placement){ .kind = DTENSOR_SHARD,
                                         .dim = draw(spec->ndim) };
        if (kind == 0)
            p->kind = DTENSOR_REPLICATE;
        if (kind == 1)
            *p = (struct dtensor_placement){ .kind = DTENSOR_PARTIAL };
        if (kind == 2) {
            p->kind = DTENSOR_STRIDED;
            p->block = 1 + draw(4);
        }
        if (kind == 3 && draw(4) == 0) {
            p->kind = DTENSOR_CYCLIC;
            p->block = 1 + draw(3);
        }
    }
}

static bool moved(const struct dtensor_spec *in,
                  const struct dtensor_spec *want)
{
    char a[200], b[200];

    dtensor_placements_format(in->mesh, in->placement, a, sizeof a);
    dtensor_placements_format(in->mesh, want->placement, b, sizeof b);
    return strcmp(a, b) != 0;
}

/* Redistributed as the words advise, the view has to be accepted. */
static bool advice_helps(const struct dtensor_op_call *call, const char *text)
{
    const char *to = strstr(text, "redistribute to ");
    struct dtensor_spec in = *call->in, want, out;
    struct dtensor_op_call again = *call;
    struct dtensor_op_info info;
    char places[200];

    if (!to || !strstr(to, " before)"))
        return false;
    to += strlen("redistribute to ");
    snprintf(places, sizeof places, "%.*s", (int)(strstr(to, " before)") - to),
             to);
    again.in = &in;
    return dtensor_placements_parse(in.mesh, places, in.ndim, in.placement,
                                    NULL) == 0 &&
           dtensor_op_infer(&again, &want, 1, &out, &info, NULL) == 0;
}

static void random_views(struct dtensor_ctx *ctx)
{
    static const int sizes[][3] = { { 2 }, { 3 }, { 4 }, { 2, 2 }, { 2, 3 },
                                    { 2, 2, 2 } };
    static const int ndims[] = { 1, 1, 1, 2, 2, 3 };
    static const int64_t alls[] = { 24, 30, 96, 210 };
    int stayed = 0, gathered = 0, refused = 0, wrong = 0, unhelped = 0;

    for (int i = 0; i < 20000; i++) {
        const int k = draw(6);
        const int64_t all = alls[draw(4)];
        struct dtensor_spec in = { .mesh = mesh_of(ctx, ndims[k], sizes[k]) };
        struct dtensor_spec want, out;
        struct dtensor_op_call call = { .op = draw(2) ? "view" : "reshape",
                                        .nin = 1, .in = &in };
        struct dtensor_op_info info;
        struct dtensor_error err;

        in.ndim = shape_draw(all, in.shape);
        spec_draw(&in);
        call.args.ndim = shape_draw(all, call.args.shape);
        if (dtensor_op_infer(&call, &want, 1, &out, &info, &err) != 0) {
            refused++;
            if (unhelped < 5 && !advice_helps(&call, err.text)) {
                unhelped++;
                note("%s", err.text);
            }
            continue;
        }
        gathered += moved(&in, &want);
        stayed += !moved(&in, &want);
        if (!view_exact(&want, &out) && wrong++ < 5) {
            char a[300], b[300];

            dtensor_spec_format(&want, a, sizeof a);
            dtensor_spec_format(&out, b, sizeof b);
            note("%s is not %s", a, b);
        }
    }
    ok(wrong == 0 && stayed > 5000, "of 20000 random views %d stay where they "
       "are, %d are gathered in part, %d are refused: every rank has the same "
       "elements before and after", stayed, gathered, refused);
    ok(unhelped == 0 && refused > 1000, "and what each refusal advises helps");
}

static const struct {
    const char *op, *args;             /* what is asked                   */
    const char *in;                    /* placements of 4x1x6             */
    const char *want, *out;            /* what is inferred                */
    int64_t shape[4];                  /* of the output                   */
} views[] = {
    { "permute", "dim=2+0+1", "S(2),S(0)", "S(2),S(0)", "S(0),S(1)",
      { 6, 4, 1 } },
    { "transpose", "dim=0+-1", "S(2),P(max)", "S(2),P(max)",
      "S(0),P(max)", { 6, 1, 4 } },
    { "unsqueeze", "dim=0", "S(0),R", "S(0),R", "S(1),R", { 1, 4, 1, 6 } },
    { "unsqueeze", "dim=-1", "S(0),R", "S(0),R", "S(0),R", { 4, 1, 6, 1 } },
    { "squeeze", "dim=1", "S(2),P", "S(2),P", "S(1),P(sum)", { 4, 6 } },
    { "squeeze", "", "S(2),P", "S(2),P", "S(1),P(sum)", { 4, 6 } },
    { "squeeze", "dim=0", "S(2),R", "S(2),R", "S(2),R", { 4, 1, 6 } },
    { "expand", "shape=4x5x-1", "S(0),S(2)", "S(0),S(2)", "S(0),S(2)",
      { 4, 5, 6 } },
    { "expand", "shape=4x5x6", "S(1),S(2)", "R,S(2)", "R,S(2)",
      { 4, 5, 6 } },
    { "repeat", "shape=2x1x1", "S(0),S(2)", "R,S(2)", "R,S(2)",
      { 8, 1, 6 } },
    { "view", "shape=-1", "S(0),P(avg)", "S(0),P(avg)", "S(0),P(avg)",
      { 24 } },
};

/* Views by dimensions, on a 2 x 2 mesh. */
static void by_dimension(struct dtensor_ctx *ctx)
{
    const struct dtensor_mesh *mesh = mesh_of(ctx, 2, (const int[]){ 2, 2 });

    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        struct dtensor_spec in = spec_at(mesh, 3, (const int64_t[]){ 4, 1, 6 },
                                         views[i].in), want, out;
        struct dtensor_op_call call = { .op = views[i].op, .nin = 1,
                                        .in = &in };
        struct dtensor_op_info info;
        struct dtensor_spec text;
        bool same;

        dtensor_op_args_parse(views[i].args, &call.args, NULL);
        if (dtensor_op_infer(&call, &want, 1, &out, &info, NULL) != 0)
            abort();
        text = spec_at(mesh, 3, in.shape, views[i].want);
        same = !moved(&text, &want);
        text = out;
        dtensor_placements_parse(mesh, views[i].out, out.ndim, text.placement,
                                 NULL);
        same = same && !moved(&text, &out);
        for (int d = 0; d < out.ndim; d++)
            same = same && out.shape[d] == views[i].shape[d];
        ok(same, "%s %s of 4x1x6 %s wants %s and gives %s", views[i].op,
           views[i].args, views[i].in, views[i].want, views[i].out);
    }
}

int main(void)
{
    struct dtensor_ctx *ctx = planner_of(8, 8);

    random_views(ctx);
    by_dimension(ctx);
    dtensor_fini(ctx);
    return done();
}

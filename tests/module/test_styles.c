/* test_styles.c - tensor-parallel styles against PyTorch's
 *
 * Every style is run on whole numbers: its outputs have the bits of the same
 * module on whole tensors, parameters and outputs lie as in PyTorch, and it
 * sends as many collectives of each kind as PyTorch's CommDebugMode counts.
 *
 * Without this test, a style could cut the wrong dimension, or move more than
 * it has to.
 */
#include "dtensor.h"
#include "job/ctx.h"
#include "tests/module/tree.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* What PyTorch 2.15 does on 4 ranks, and some more. */
static const struct golden {
    const char *type;              /* of the module "m"                       */
    struct dtensor_style plan[3];  /* styles                                  */
    const char *input;             /* how the input comes                     */
    const char *moves;             /* all-gathers, allreduces, reduce-        */
                                   /* scatters, others: AG AR RS others       */
    const char *params;            /* "path name placement", joined by ";"    */
    const char *output;            /* how the output lies                     */
} golden[] = {
    { "linear", { { "m", "colwise" } }, "R", "0 0 0 0",
      "m weight S(0);m bias S(0)", "S(1)" },
    { "linear", { { "m", "colwise" } }, "S(0)", "1 0 0 0",
      "m weight S(0);m bias S(0)", "S(1)" },
    { "linear", { { "m", "colwise output=R" } }, "R", "1 0 0 0",
      "m weight S(0);m bias S(0)", "R" },
    { "linear", { { "m", "rowwise" } }, "S(1)", "0 1 0 0",
      "m weight S(1);m bias R", "R" },
    { "linear", { { "m", "rowwise output=S(0)" } }, "S(1)", "0 0 1 0",
      "m weight S(1);m bias R", "S(0)" },
    { "linear", { { "m", "rowwise" } }, "R", "0 1 0 0",
      "m weight S(1);m bias R", "R" },
    { "linear", { { "m", "rowwise output=P" } }, "R", "0 0 0 0",
      "m weight S(1);m bias R", "P(sum)" },
    { "embedding", { { "m", "colwise" } }, "R", "0 0 0 0", "m weight S(1)", "S(1)" },
    { "embedding", { { "m", "rowwise" } }, "R", "0 1 0 0", "m weight S(0)", "R" },
    { "embedding", { { "m", "rowwise output=S(1)" } }, "R", "0 0 1 0",
      "m weight S(0)", "S(1)" },
    { "layer_norm", { { "m", "sequence dim=0" } }, "S(0)", "0 0 0 0",
      "m weight R;m bias R", "S(0)" },
    { "layer_norm", { { "m", "sequence dim=-2" } }, "R", "0 0 0 0",
      "m weight R;m bias R", "S(0)" },
    { "mlp", { { "m.up", "colwise" }, { "m.down", "rowwise" } }, "R", "0 1 0 0",
      "m.up weight S(0);m.up bias S(0);m.down weight S(1);m.down bias R", "R" },
    { "mlp", { { "m.up", "colwise" }, { "m.down", "rowwise output=S(0)" } },
      "S(0)", "1 0 1 0",
      "m.up weight S(0);m.up bias S(0);m.down weight S(1);m.down bias R",
      "S(0)" },
    { "mlp", { { "m", "prepare input=S(0) output=S(-1)" } }, "R", "0 0 0 1",
      "m.up weight R;m.up bias R;m.down weight R", "S(1)" }
};

static void params_lie(const struct golden *g, struct dtensor_module *top)
{
    char words[200], path[20], name[20], want[20], text[80], *rest;

    strcpy(words, g->params);
    for (char *row = strtok_r(words, ";", &rest); row;
         row = strtok_r(NULL, ";", &rest)) {
        need(sscanf(row, "%19s %19s %19s", path, name, want) == 3, "%s", row);
        need(strcmp(lies(top, path, name, text), want) == 0,
             "%s, %s: %s", g->plan[0].style, row, text);
    }
}

static int styles(const struct golden *g)
{
    int n = 0;

    while (n < 3 && g->plan[n].pattern)
        n++;
    return n;
}

/* Signals that this rank has sent, ever. */
static uint64_t sent(void)
{
    uint64_t n = 0;

    for (int r = 0; r < WORLD; r++)
        n += job->ctx->peers[r].sent;
    return n;
}

static void golden_run(const struct golden *g)
{
    const int64_t rows[] = { 4, 8 };
    const bool index = strcmp(g->type, "embedding") == 0;
    struct dtensor_module *top = single(g->type);
    struct dtensor *x = tensor(index ? DTENSOR_I64 : DTENSOR_F64,
                               index ? 1 : 2, rows, 5);
    struct dtensor *in = NULL, *whole = NULL, *y = NULL;
    const char *what = g->plan[0].style;
    char text[80], have[60];
    uint64_t before;

    good(dtensor_module_apply(top, "", x, &whole, &job->err));
    good(dtensor_redistribute(x, g->input, &in, &job->err));
    notes_before(top);
    before = sent();
    good(dtensor_parallelize(top, world, styles(g), g->plan, -1, &job->err));
    need(sent() == before, "%s: something was sent", what);
    notes_behind(top);
    params_lie(g, top);
    moved = (struct moves){ 0 };
    good(dtensor_op_implied(job->ctx, DTENSOR_IMPLIED_REFUSED, &job->err));
    good(dtensor_module_apply(top, "", in, &y, &job->err));
    snprintf(have, sizeof have, "%d %d %d %d", moved.gathered, moved.reduced,
             moved.scattered, moved.other);
    need(strcmp(have, g->moves) == 0, "%s on %s %s: moves %s, not %s", what,
         g->type, g->input, have, g->moves);
    need((sent() > before) == (strcmp(have, "0 0 0 0") != 0), "%s on %s %s "
         "sends", what, g->type, g->input);
    need(strcmp(placement(y, text), g->output) == 0, "%s: output %s", what,
         text);
    same(y, whole, what);
    good(dtensor_op_implied(job->ctx, DTENSOR_IMPLIED_ALLOWED, &job->err));
    dtensor_destroy(x);
    dtensor_destroy(in);
    dtensor_destroy(whole);
    dtensor_destroy(y);
    dtensor_module_destroy(top);
}

static void goldens(void)
{
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++)
        golden_run(&golden[i]);
}

int main(void)
{
    static const struct { void (*run)(void); const char *claim; } parts[] = {
        { goldens, "styles place, send and compute as those of PyTorch" }
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        ok(tree_ranks(parts[i].run), "%s", parts[i].claim);
    return done();
}

/* test_rows.c - what operators accept along one mesh dimension
 *
 * dtensor_op_print() lists the rows of an operator.  Here those of each family
 * are written down again, by hand, and compared as text; and each name of the
 * table is asked for, so that no rule has letters that cannot be read.
 *
 * Without this test, a rule could gain or lose a row that no golden call needs.
 */
#include "op/pattern.h"
#include "op/rule.h"
#include "dtensor.h"
#include "tests/redist/plan_of.h"
#include "tests/support/tap.h"

#include <stdlib.h>
#include <string.h>

enum { INPUTS = 6 };

static const struct {
    const char *op, *args;        /* the call                                 */
    const char *in;               /* its inputs, "16x8 8x12"; one that ends   */
                                  /* in i or b is i64 or bool, the others f32 */
    const char *rows;             /* all rows but R -> R                      */
} rows[] = {
    { "relu", "", "4x6", "S(0) -> S(0)|S(1) -> S(1)|P(max) -> P(max)|"
      "P(min) -> P(min)" },
    { "gelu", "", "4", "S(0) -> S(0)" },
    { "neg", "", "4", "S(0) -> S(0)|P(sum) -> P(sum)|P(avg) -> P(avg)|"
      "P(max) -> P(min)|P(min) -> P(max)" },
    { "add", "", "4x6 6", "S(0), R -> S(0)|S(1), S(0) -> S(1)|"
      "P(sum), P(sum) -> P(sum)|P(avg), P(avg) -> P(avg)|P(avg), R -> P(avg)|"
      "P(max), R -> P(max)|P(min), R -> P(min)|R, P(avg) -> P(avg)" },
    { "mul", "", "4 1", "S(0), R -> S(0)|P(sum), R -> P(sum)|"
      "P(avg), R -> P(avg)|R, P(sum) -> P(sum)|R, P(avg) -> P(avg)" },
    { "mul", "", "4i 4i", "S(0), S(0) -> S(0)|P(sum), R -> P(sum)|"
      "R, P(sum) -> P(sum)" },
    { "where", "", "4b 4 1", "S(0), S(0), R -> S(0)" },
    { "cast", "dtype=i32", "4", "S(0) -> S(0)|P(min) -> P(min)|"
      "P(max) -> P(max)" },
    { "cast", "dtype=f64", "4i", "S(0) -> S(0)|P(sum) -> P(sum)|"
      "P(min) -> P(min)|P(max) -> P(max)" },
    { "cast", "dtype=i32", "4i", "S(0) -> S(0)" },
    { "cast", "dtype=f32", "4b", "S(0) -> S(0)" },
    { "cast", "dtype=c64", "4", "S(0) -> S(0)|P(sum) -> P(sum)|"
      "P(avg) -> P(avg)" },
    { "sum", "dim=0", "4x6", "S(0) -> P(sum)|S(1) -> S(0)|P(sum) -> P(sum)" },
    { "sum", "dim=0,keep=1", "4x6", "S(0) -> P(sum)|S(1) -> S(1)|"
      "P(sum) -> P(sum)" },
    { "amax", "", "4", "S(0) -> P(max)|P(max) -> P(max)" },
    { "mean", "dim=-1", "4x6", "S(0) -> S(0)|S(1) -> P(avg)|"
      "P(avg) -> P(avg)" },
    { "powsum", "p=2", "4", "S(0) -> P(sum)" },
    { "norm", "p=1", "4", "S(0) -> P(sum)" },
    { "norm", "p=inf", "4", "S(0) -> P(max)" },
    { "norm", "p=-inf", "4", "S(0) -> P(min)" },
    { "norm", "p=2,dim=0", "4x6", "S(1) -> S(0)|"
      "S(0) -> R, allreduces sum" },
    { "var", "dim=1", "4x6", "S(0) -> S(0)|S(1) -> R, allreduces sum, sum" },
    { "logsumexp", "", "4x6", "S(0) -> R, allreduces max, sum|"
      "S(1) -> R, allreduces max, sum" },
    { "max_dim", "dim=1", "4x6", "S(0) -> S(0), S(0)|"
      "S(1) -> R, R, allreduces max, min" },
    { "cumsum", "dim=0", "4x6", "S(1) -> S(1)|P(sum) -> P(sum)|"
      "P(avg) -> P(avg)" },
    { "dot", "", "4 4", "S(0), S(0) -> P(sum)|P(sum), R -> P(sum)|"
      "R, P(sum) -> P(sum)|P(avg), R -> P(avg)|R, P(avg) -> P(avg)" },
    { "matmul", "", "4x6 6x8", "S(1), S(0) -> P(sum)|S(0), R -> S(0)|"
      "R, S(1) -> S(1)|P(sum), R -> P(sum)|R, P(sum) -> P(sum)|"
      "P(avg), R -> P(avg)|R, P(avg) -> P(avg)" },
    { "matmul", "", "3x4x6 6x8", "S(0), R -> S(0)|S(2), S(0) -> P(sum)|"
      "S(1), R -> S(1)|R, S(1) -> S(2)|P(sum), R -> P(sum)|"
      "R, P(sum) -> P(sum)|P(avg), R -> P(avg)|R, P(avg) -> P(avg)" },
    { "linear", "", "3x4x6 8x6 8", "S(0), R, R -> S(0)|S(1), R, R -> S(1)|"
      "S(2), S(1), P(sum) -> P(sum)|R, S(0), S(0) -> S(2)|"
      "P(sum), R, P(sum) -> P(sum)|R, P(sum), P(sum) -> P(sum)|"
      "P(avg), R, P(avg) -> P(avg)|R, P(avg), P(avg) -> P(avg)" },
    { "addmm", "", "8 4x6 6x8", "P(sum), S(1), S(0) -> P(sum)|"
      "R, S(0), R -> S(0)|S(0), R, S(1) -> S(1)|"
      "P(sum), P(sum), R -> P(sum)|P(sum), R, P(sum) -> P(sum)|"
      "P(avg), P(avg), R -> P(avg)|P(avg), R, P(avg) -> P(avg)" },
    { "softmax", "dim=1", "4x6", "S(0) -> S(0)|"
      "S(1) -> S(1), allreduces max, sum" },
    { "log_softmax_backward", "dim=0", "4x6 4x6", "S(1), S(1) -> S(1)|"
      "S(0), S(0) -> S(0), allreduces sum" },
    { "layer_norm", "", "3x4x6 6 6", "S(0), R, R -> S(0), S(0), S(0)|"
      "S(1), R, R -> S(1), S(1), S(1)|"
      "S(2), S(0), S(0) -> S(2), R, R, allreduces sum, sum" },
    { "layer_norm", "count=2", "3x4x6", "S(0) -> S(0), S(0), S(0)|"
      "S(1) -> S(1), R, R, allreduces sum, sum|"
      "S(2) -> S(2), R, R, allreduces sum, sum" },
    { "cross_entropy", "reduction=sum", "3x4x6 3x4i",
      "S(0), S(0) -> P(sum), S(0), S(0)|S(1), S(1) -> P(sum), S(1), S(1)|"
      "S(2), R -> R, R, R, allreduces max, sum" },
    { "layer_norm_backward", "", "4x6 4x6 4x1 4x1 6 6",
      "S(0), S(0), S(0), S(0), R, R -> S(0), P(sum), P(sum)|"
      "S(1), S(1), R, R, S(0), S(0) -> S(1), S(0), S(0), allreduces sum" },
    { "rms_norm_backward", "", "4x6 4x6", "S(0), S(0) -> S(0), P(sum)|"
      "S(1), S(1) -> S(1), S(0), allreduces sum, sum" },
    { "embedding", "", "9x6 3x4i", "S(1), R -> S(2)|S(0), R -> P(sum)|"
      "R, S(0) -> S(0)|R, S(1) -> S(1)" },
    { "embedding_backward", "count=9", "3x4x6 3x4i", "S(2), R -> S(1)|"
      "S(0), S(0) -> P(sum)|S(1), S(1) -> P(sum)|P(sum), R -> P(sum)" },
    { "nll_loss", "reduction=none", "4x6 4i", "S(0), S(0) -> S(0), R|"
      "S(1), R -> R, R, allreduces sum" },
    { "nll_loss", "reduction=sum", "4x6 4i", "S(0), S(0) -> P(sum), P(sum)|"
      "S(1), R -> R, R, allreduces sum" },
    { "nll_loss", "reduction=mean", "4x6 4i",
      "S(0), S(0) -> R, R, allreduces sum|S(1), R -> R, R, allreduces sum" },
    { "nll_loss_backward", "", "4 4x6 4i",
      "S(0), S(0), S(0) -> S(0)|P(sum), R, R -> P(sum)|P(avg), R, R -> P(avg)|"
      "R, S(1), R -> S(1)" },
    { "cross_entropy_backward", "", "4 4x6 4i",
      "S(0), S(0), S(0) -> S(0)|P(sum), R, R -> P(sum)|P(avg), R, R -> P(avg)|"
      "R, S(1), R -> S(1), allreduces max, sum" },
    { "cross_entropy_backward", "", "4 4x6 4i 4 4",
      "S(0), S(0), S(0), S(0), S(0) -> S(0)|"
      "P(sum), R, R, R, R -> P(sum)|P(avg), R, R, R, R -> P(avg)|"
      "R, S(1), R, R, R -> S(1)" },
    { "attention", "", "2x3x4x5 2x3x4x5 2x3x4x5",
      "S(1), S(1), S(1) -> S(1), S(1)|S(0), S(0), S(0) -> S(0), S(0)" },
    { "attention_backward", "", "2x3x4x6 2x3x4x5 2x3x7x5 2x3x7x6 2x3x4x6 2x3x4",
      "S(1), S(1), S(1), S(1), S(1), S(1) -> S(1), S(1), S(1)|"
      "S(0), S(0), S(0), S(0), S(0), S(0) -> S(0), S(0), S(0)" },
    { "cat", "dim=0", "4x6 2x6", "S(1) -> S(1)|P(sum) -> P(sum)|"
      "P(avg) -> P(avg)|P(min) -> P(min)|P(max) -> P(max)" },
    { "index_select", "dim=0", "4x6 3i", "S(1), R -> S(1)|R, S(0) -> S(0)|"
      "P(sum), R -> P(sum)|P(avg), R -> P(avg)|P(min), R -> P(min)|"
      "P(max), R -> P(max)" },
    { "index", "dim=0+2", "4x6x5 3x2i 3x2i", "S(1), R -> S(2)|"
      "R, S(0) -> S(0)|R, S(1) -> S(1)|P(sum), R -> P(sum)|"
      "P(avg), R -> P(avg)" },
    { "index_put", "dim=1", "4x6 4x3 3i", "S(0), S(0), R -> S(0)|"
      "S(1), R, R -> S(1)|P(sum), P(sum), R -> P(sum)|"
      "P(avg), P(avg), R -> P(avg)|P(min), P(min), R -> P(min)|"
      "P(max), P(max), R -> P(max)" },
    { "index_put_add", "dim=0", "4x6 3x6 3i", "S(0), R, R -> S(0)|"
      "S(1), S(1), R -> S(1)|P(sum), S(0), S(0) -> P(sum)|"
      "P(sum), P(sum), R -> P(sum)|P(avg), P(avg), R -> P(avg)" },
    { "gather", "dim=1", "4x6 4x1i", "S(1), R -> P(sum)|R, S(1) -> S(1)|"
      "S(0), S(0) -> S(0)" },
    { "scatter", "dim=1", "4x6 3x2i 3x2", "" },
    { "scatter", "dim=1", "4x6 4x2i 4x2", "S(0), S(0), S(0) -> S(0)" },
    { "slice", "dim=0,start=1,end=3", "4", "P(sum) -> P(sum)|"
      "P(avg) -> P(avg)|P(min) -> P(min)|P(max) -> P(max)" },
    { "pad", "dim=0,end=2,value=1", "4x6", "S(1) -> S(1)|P(avg) -> P(avg)|"
      "P(max) -> P(max)|P(min) -> P(min)" },
    { "tril", "", "4x6", "" },
    { "rand_like", "", "4", "S(0) -> S(0)|P(sum) -> R|P(avg) -> R|"
      "P(min) -> R|P(max) -> R|P(prod) -> R" },
};

/* "16x8 8i" into specs; the first is cut, so that rows that cut are there. */
static int inputs_read(const struct dtensor_mesh *mesh, const char *text,
                       struct dtensor_spec in[INPUTS])
{
    int n = 0;

    while (*text) {
        struct dtensor_spec *spec = &in[n++];
        char *end;

        *spec = (struct dtensor_spec){ .mesh = mesh };
        for (; *text >= '0' && *text <= '9'; text = end + (*end == 'x'))
            spec->shape[spec->ndim++] = strtoll(text, &end, 10);
        spec->dtype = *text == 'i' ? DTENSOR_I64
                    : *text == 'b' ? DTENSOR_BOOL : DTENSOR_F32;
        text += *text == 'i' || *text == 'b';
        text += *text == ' ';
    }
    in[0].placement[0].kind = DTENSOR_SHARD;
    return n;
}

/* The rows that were printed, separated by '|', without the first. */
static void rows_printed(const struct dtensor_op_call *call, char *text,
                         size_t size)
{
    struct dtensor_error err = { .text = "" };
    char line[1000];
    bool inside = false;
    FILE *file = tmpfile();
    int row = 0;

    text[0] = '\0';
    if (dtensor_op_print(call, file, &err) != 0)
        snprintf(text, size, "%s", err.text);
    rewind(file);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        inside = inside ? *line == ' ' : strstr(line, "along one mesh") != NULL;
        if (inside && *line == ' ' && row++ > 0)
            snprintf(text + strlen(text), size - strlen(text), "%s%s",
                     *text ? "|" : "", line + 2);
    }
    fclose(file);
}

static void compare(const struct dtensor_mesh *mesh)
{
    struct dtensor_spec in[INPUTS];
    struct dtensor_op_call call = { .in = in };
    char text[2000];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        call.op = rows[i].op;
        call.nin = inputs_read(mesh, rows[i].in, in);
        if (dtensor_op_args_parse(rows[i].args, &call.args, NULL) != 0)
            abort();
        rows_printed(&call, text, sizeof text);
        if (!ok(strcmp(text, rows[i].rows) == 0, "the rows of %s %s of %s",
                rows[i].op, rows[i].args, rows[i].in))
            note("got %s", text);
    }
}

/* Every rule can be read, and has a known number of inputs and outputs. */
static void tables(void)
{
    int bad = 0, names = 0;

    for (int i = 0; i < dtn_nrules; i++) {
        struct dtn_patterns p = { .nin = 1, .nout = 1 };

        if (dtn_rules[i].letters)
            dtn_patterns_read(dtn_rules[i].letters, &p);
        bad += p.nin < 1 || p.nin > DTN_RULE_IN || p.nout < 1 ||
               p.nout > DTN_RULE_OUT || dtn_rules[i].least > p.nin;
    }
    for (; dtensor_op_name(names); names++)
        for (int k = 0; k < names; k++)
            bad += strcmp(dtensor_op_name(k), dtensor_op_name(names)) == 0;
    ok(bad == 0, "%d rules have %d names, none twice", dtn_nrules, names);
}

int main(void)
{
    struct dtensor_ctx *ctx = planner_of(2, 2);

    tables();
    compare(mesh_of(ctx, 1, (const int[]){ 2 }));
    dtensor_fini(ctx);
    return done();
}

/* test_on_gpu.c - which operators kernels of a GPU compute, and which the CPU
 *
 * The calls of test_computed.c, on one rank: those of the list below, by
 * operator and type of the first input, are computed by the CPU on copies, all
 * others by kernels.  The text of dtensor_op_print() says the same.
 *
 * Without this test, an operator could fall back to the CPU, a hundred times
 * slower and with the same numbers, and nobody would know.
 */
#include "dtensor.h"
#include "tests/op/draw.h"
#include "tests/op/row.h"
#include "tests/redist/plan_of.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 6, OUTPUTS = 8 };

static const struct row rows[] = {
#include "tests/op/computed_rows.h"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* On copies: the operator, and the types or arguments if others have kernels.
 */
static const char *const copied[] = {
    /* functions of libm */
    "asinh", "atan",
    /* integers, and powers by libm */
    "matmul i64", "powsum dim=0,p=3",
    /* several indices, and what is put to other dimensions than the first */
    "index dim=0+1", "index dim=-1+0", "index_put", "index_put_add dim=1",
    "index_put_add dim=0+2",
    /* several products and sums */
    "attention", "attention_backward",
};
enum { COPIED = sizeof copied / sizeof copied[0] };

static struct dtensor_ctx *ctx;
static bool seen[COPIED];

static bool is_copied(const struct row *row, const char *dtype)
{
    char typed[80], told[80];
    bool found = false;

    snprintf(typed, sizeof typed, "%s %s", row->op, dtype);
    snprintf(told, sizeof told, "%s %s", row->op, row->args);
    for (int i = 0; i < COPIED; i++)
        if (strcmp(copied[i], row->op) == 0 || strcmp(copied[i], typed) == 0 ||
            strcmp(copied[i], told) == 0)
            found = seen[i] = true;
    return found;
}

static bool print_says(const struct dtensor_op_call *call, const char *words)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    bool said = dtensor_op_print(call, stream, NULL) == 0;

    fclose(stream);
    said = said && strstr(text, words);
    free(text);
    return said;
}

static bool row_is_right(const struct row *row, const struct dtensor_mesh *mesh)
{
    static struct whole whole;
    struct dtensor_spec in[INPUTS], want[INPUTS], out[OUTPUTS];
    struct dtensor_op_call call = { .op = row->op, .in = in };
    uint64_t state = 1;           /* the elements do not matter               */
    struct dtensor_op_info info;
    struct dtensor_error err = { .code = 0 };
    bool right;

    for (const char *text = row->in; *text; call.nin++) {
        text = draw_input(&state, text, &whole);
        draw_spec(&whole, mesh, &in[call.nin]);
    }
    if (dtensor_op_args_parse(row->args, &call.args, &err) != 0 ||
        dtensor_op_infer(&call, want, OUTPUTS, out, &info, &err) != 0) {
        note("%s: %s", row->op, err.text);
        return false;
    }
    right = info.kernels != is_copied(row, dtensor_dtype_name(in[0].dtype));
    if (!right)
        note("%s of %s: kernels %d", row->op, dtensor_dtype_name(in[0].dtype),
             info.kernels);
    return right && print_says(&call, info.kernels
                               ? "on a GPU its kernels compute it"
                               : "on a GPU the CPU computes it, on copies");
}

int main(void)
{
    const struct dtensor_mesh *mesh;
    int wrong = 0;
    bool all = true;

    ctx = planner_of(1, 1);
    mesh = mesh_of(ctx, 1, (const int[]){ 1 });
    for (int i = 0; i < ROWS; i++)
        wrong += !row_is_right(&rows[i], mesh);
    ok(wrong == 0, "%d calls are computed by kernels or by the CPU as listed",
       (int)ROWS);
    for (int i = 0; i < COPIED; i++)
        if (!seen[i])
            note("%s: not in computed_rows.h", copied[i]);
    for (int i = 0; i < COPIED; i++)
        all = all && seen[i];
    ok(all, "each of the %d on the list is one of them", (int)COPIED);
    dtensor_fini(ctx);
    return done();
}

/* golden_call.c - calls of operators from the lines of tests/golden/ops.txt
 *
 * PyTorch's names and arguments in ours: a table of names, and one of words
 * such as "dim=0" and "keepdim=1".
 */
#include "tests/op/golden_call.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What PyTorch's operator is here, and what it is told; NULL: the same name. */
static const struct { const char *theirs, *ours, *args; } names[] = {
    { "add_scalar", "shift", NULL }, { "mul_scalar", "scale", NULL },
    { "div_scalar", "scale", NULL }, { "pow_scalar", "pow", NULL },
    { "sum.dim", "sum", NULL }, { "mean.dim", "mean", NULL },
    { "prod.dim", "prod", NULL }, { "any.dim", "any", NULL },
    { "max.dim", "max_dim", NULL }, { "mm", "matmul", NULL },
    { "bmm", "matmul", NULL }, { "baddbmm", "addmm", NULL },
    { "t", "permute", "dim=1+0" }, { "to_i64", "cast", "dtype=i64" },
    { "to_f32", "cast", "dtype=f32" }, { "to_bool", "cast", "dtype=bool" },
    { "sdpa_flash", "attention", NULL },
    { "sdpa_efficient", "attention", NULL },
};

static void name_ours(struct golden_call *g)
{
    struct dtensor_op_args *args = &g->call.args;

    g->call.op = g->name;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].theirs, g->name) == 0) {
            g->call.op = names[i].ours;
            if (names[i].args)
                dtensor_op_args_parse(names[i].args, args, NULL);
        }
    if (strcmp(g->name, "t") == 0 && g->in[0].ndim == 1)
        args->ndims = 1, args->dim[0] = 0;
    if (strcmp(g->name, "vector_norm") == 0)   /* roots: powers, then a root  */
        g->call.op = args->p == 2 ? "powsum" : "norm";
}

/* ------------------------------------------------------------ arguments --- */

static int sizes_of(const char *text, int64_t sizes[])
{
    int n = 0;
    char *end;

    for (; *text; text = *end ? end + 1 : end)
        sizes[n++] = strtoll(text, &end, 10);
    return n;
}

static void args_dims(struct dtensor_op_args *args, const char *text)
{
    int64_t dims[DTENSOR_MAX_DIMS];

    args->ndims = sizes_of(text, dims);
    for (int i = 0; i < args->ndims; i++)
        args->dim[i] = (int)dims[i];
}

/* One word of STATIC; the tables of pad and slice are theirs. */
static void args_word(struct golden_call *g, char *word)
{
    struct dtensor_op_args *args = &g->call.args;
    char *value = strchr(word, '=');

    if (strcmp(word, "full") == 0)
        args->end = INT64_MAX;
    if (!value && isdigit((unsigned char)*word))
        args->ndim = sizes_of(word, args->shape);
    if (!value)
        return;
    *value++ = '\0';
    if (strcmp(word, "dim") == 0 || strcmp(word, "dims") == 0)
        args_dims(args, value);
    else if (strcmp(word, "keepdim") == 0)
        args->keep = atoi(value);
    else if (strcmp(word, "to") == 0 || (strcmp(word, "size") == 0 &&
                                         strcmp(g->name, "split") != 0))
        args->ndim = sizes_of(value, args->shape);
    else if (strcmp(word, "normalized") == 0)
        args->count = sizes_of(value, args->shape);
    else if (strcmp(word, "k") == 0 || strcmp(word, "size") == 0 ||
             strcmp(word, "num_weights") == 0)
        args->count = atoi(value);
    else if (strcmp(word, "index") == 0 || strcmp(word, "start") == 0)
        args->start = atoi(value);
    else if (strcmp(word, "end") == 0)
        args->end = atoi(value);
    else if (strcmp(word, "ord") == 0)
        args->p = strtod(value, NULL);
    else if (strcmp(word, "value") == 0)
        args->value = strtod(value, NULL);
    else if (strcmp(word, "pad") == 0) {         /* "last:1+2"                */
        args->ndims = 1;
        args->dim[0] = -1;
        sscanf(value, "last:%" SCNd64 "+%" SCNd64, &args->start, &args->end);
    } else if (strcmp(word, "reduction") == 0) {
        args->reduction = strcmp(value, "sum") == 0 ? DTENSOR_OP_SUM
                        : strcmp(value, "mean") == 0 ? DTENSOR_OP_MEAN
                        : DTENSOR_OP_NONE;
    }
}

static void args_read(struct golden_call *g, char *text)
{
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ","))
        args_word(g, word);
}

/* -------------------------------------------------------------- tensors --- */

/* "16x8:f64:S(0),R"; "0d" is a scalar. */
static void input_read(struct golden_call *g, const struct dtensor_mesh *mesh,
                       const char *word)
{
    struct dtensor_spec *spec = &g->in[g->call.nin++];
    char dtype[8];

    *spec = (struct dtensor_spec){ .mesh = mesh };
    spec->ndim = strncmp(word, "0d", 2) == 0 ? 0
               : golden_sizes(word, spec->shape);
    word = strchr(word, ':') + 1;
    snprintf(dtype, sizeof dtype, "%.*s", (int)strcspn(word, ":"), word);
    if (dtensor_dtype_parse(dtype, &spec->dtype, NULL) != 0 ||
        dtensor_placements_parse(mesh, strchr(word, ':') + 1, spec->ndim,
                                 spec->placement, NULL) != 0)
        abort();
}

/* PyTorch's P(mask0) of an index is a replica, of a result a sum; so is a
 * P(norm2), of powers.
 */
static void place_read(const char *word, bool input, char to[80])
{
    char *out = to;

    while (*word && out < to + 70) {
        const bool masks = strncmp(word, "P(mask", 6) == 0;

        if (masks || strncmp(word, "P(norm", 6) == 0) {
            out += sprintf(out, "%s", masks && input ? "R" : "P(sum)");
            word = strchr(word, ')') + 1;
        } else {
            *out++ = *word++;
        }
    }
    *out = '\0';
}

static const struct dtensor_mesh *mesh_read(struct dtensor_ctx *ctx,
                                            const char *word)
{
    const struct dtensor_mesh *mesh = NULL;
    int64_t sizes[DTENSOR_MAX_DIMS];
    int size[DTENSOR_MAX_DIMS], n = golden_sizes(word, sizes);

    for (int m = 0; m < n; m++)
        size[m] = (int)sizes[m];
    if (dtensor_mesh_create(ctx, n, size, NULL, NULL, &mesh, NULL) != 0)
        abort();
    return mesh;
}

bool golden_call_read(struct golden *table, struct dtensor_ctx *ctx,
                      struct golden_call *g)
{
    const struct dtensor_mesh *mesh;
    const char *word;
    char args[64];

    *g = (struct golden_call){ .call = { .in = g->in } };
    snprintf(g->name, sizeof g->name, "%s", golden_word(table));
    snprintf(args, sizeof args, "%s", golden_word(table));
    mesh = mesh_read(ctx, golden_word(table));
    word = golden_word(table);
    for (; isdigit((unsigned char)*word); word = golden_word(table))
        input_read(g, mesh, word);
    args_read(g, args);
    name_ours(g);
    g->refused = *word == '=' ? strstr(table->line, "refused: ") : NULL;
    for (int i = 0; !g->refused && i < g->call.nin; i++)
        place_read(golden_word(table), true, g->want[i]);
    if (!g->refused)
        golden_word(table);                      /* "="                       */
    while (!g->refused && (word = golden_word(table)) && *word != ';') {
        if (g->nout == GOLDEN_OUTPUTS)
            abort();
        place_read(word, false, g->out[g->nout++]);
    }
    for (int i = 0; i < 5; i++)
        golden_word(table);                      /* counts and ";"            */
    g->us = strtod(golden_word(table), NULL);
    g->wrong = strcmp(golden_word(table), "wrong") == 0;
    for (int i = 0; dtensor_op_name(i); i++)
        if (strcmp(dtensor_op_name(i), g->call.op) == 0)
            return true;
    return false;
}

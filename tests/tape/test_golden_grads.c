/* test_golden_grads.c - gradients, compared with a real PyTorch's
 *
 * tests/golden/grads.txt has an operator in each line, how its inputs lie, and
 * how PyTorch's gradients lie.  Here each is run and differentiated; before
 * they are brought to their tensors the gradients should lie as PyTorch's, and
 * their elements have to be those that replicas give.  Lines whose gradients
 * lie otherwise are printed and counted by the reason: the forward reduces rows
 * that are cut by itself, where PyTorch gathers them; or has chosen other
 * placements, by our costs, which is most of them, and the gradients follow; or
 * it has not, and an operator of the backward has.  DTN_GRADS names another
 * table of that form; tests/golden/make_grads.py makes it.
 *
 * Without this test, a backward could gather what PyTorch leaves cut, or lose
 * terms.
 */
#include "tape/tape.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/golden.h"
#include "tests/support/job.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { WORLD = 4, INPUTS = 4, ELEMS = 1024 };

/* Why gradients lie otherwise than PyTorch's. */
enum reason { SAME, REDUCES, ROWS, FORWARD, BACKWARD, REASONS };

static struct counts {
    int lines, of[REASONS];
} *counts;

/* A line. */
struct call {
    const char *op;                    /* our name                        */
    char name[32];                     /* PyTorch's                       */
    struct dtensor_op_args args;
    struct dtensor_spec spec[INPUTS];
    int nin;
    char out[80], grad[INPUTS][80];    /* placements                      */
};

static const struct { const char *theirs, *ours; } names[] = {
    { "mm", "matmul" }, { "bmm", "matmul" }, { "mul_scalar", "scale" },
};

static void args_read(struct call *c, const char *word)
{
    struct dtensor_op_args *args = &c->args;

    if (strncmp(word, "dim=", 4) == 0)
        *args = (struct dtensor_op_args){ .ndims = 1,
                                          .dim = { atoi(word + 4) } };
    if (strcmp(word, "mean") == 0)
        args->reduction = DTENSOR_OP_MEAN;
    if (strcmp(word, "sum") == 0)
        args->reduction = DTENSOR_OP_SUM;
    if (strcmp(word, "flatten") == 0)
        *args = (struct dtensor_op_args){ .ndim = 1, .shape = { -1 } };
    if (strcmp(word, "2:6") == 0)
        *args = (struct dtensor_op_args){ .ndims = 1, .start = 2, .end = 6 };
    if (strcmp(c->op, "scale") == 0)
        args->value = 2;
    if (strcmp(c->op, "transpose") == 0)
        *args = (struct dtensor_op_args){ .ndims = 2, .dim = { 0, 1 } };
}

static void input_read(struct job *job, struct call *c,
                       const struct dtensor_mesh *mesh, const char *word)
{
    struct dtensor_spec *spec = &c->spec[c->nin++];
    char dtype[8];

    *spec = (struct dtensor_spec){ .mesh = mesh };
    spec->ndim = golden_sizes(word, spec->shape);
    word = strchr(word, ':') + 1;
    snprintf(dtype, sizeof dtype, "%.3s", word);
    good(dtensor_dtype_parse(dtype, &spec->dtype, &job->err));
    good(dtensor_placements_parse(mesh, word + 4, spec->ndim, spec->placement,
                                  &job->err));
}

/* The placements in words, without the P(mask0) of PyTorch. */
static void places_read(const char *word, char to[80])
{
    snprintf(to, 80, "%s", word);
    for (char *mask = strstr(to, "P(mask0)"); mask;
         mask = strstr(to, "P(mask0)")) {
        memcpy(mask, "P(sum)", 6);
        memmove(mask + 6, mask + 8, strlen(mask + 8) + 1);
    }
}

static void counts_skip(struct golden *table)
{
    for (int i = 0; i < 6; i++)
        golden_word(table);
}

static void call_read(struct job *job, struct golden *table,
                      const struct dtensor_mesh *const mesh[2], struct call *c)
{
    char args[32];
    const char *word;
    int at;

    *c = (struct call){ .nin = 0 };
    snprintf(c->name, sizeof c->name, "%s", golden_word(table));
    snprintf(args, sizeof args, "%s", golden_word(table));
    c->op = c->name;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(c->name, names[i].theirs) == 0)
            c->op = names[i].ours;
    args_read(c, args);
    at = strchr(golden_word(table), 'x') != NULL;
    for (word = golden_word(table); isdigit((unsigned char)*word);
         word = golden_word(table))
        input_read(job, c, mesh[at], word);
    places_read(golden_word(table), c->out);
    counts_skip(table);                /* "| ag ar rs a2a |"              */
    for (int i = 0; i < c->nin; i++)
        if (c->spec[i].dtype == DTENSOR_F64)
            places_read(golden_word(table), c->grad[i]);
}

/* -------------------------------------------------------------- running --- */

/* Whole numbers: a sum has no order then. */
static struct dtensor *input_make(struct job *job,
                                  const struct dtensor_spec *spec, int seed)
{
    static double full[ELEMS];
    struct dtensor *t = NULL;
    int64_t n = 1;

    for (int d = 0; d < spec->ndim; d++)
        n *= spec->shape[d];
    for (int64_t i = 0; i < n; i++)
        if (spec->dtype == DTENSOR_I64)
            ((int64_t *)full)[i] = (i * 5 + seed) % 8;
        else
            full[i] = (double)((i * 7 + seed * 3) % 11 - 5) * 4;
    good(dtensor_distribute(spec, full, -1, &t, &job->err));
    return t;
}

static struct dtensor *output_make(struct job *job, const struct call *c,
                                   struct dtensor *const in[])
{
    const struct dtensor *const *read = (const struct dtensor *const *)in;
    struct dtensor *out = NULL;

    if (strncmp(c->op, "redistribute", 12) == 0)
        good(dtensor_redistribute(in[0], c->out, &out, &job->err));
    else
        good(dtensor_op(c->op, c->nin, read, &c->args, 1, &out, &job->err));
    return out;
}

/* How the gradient of input i lay before it was brought to its tensor. */
static const struct dtensor_spec *arrived(const struct dtensor_tape *tape,
                                          const struct dtensor *t)
{
    for (int i = 0; i < tape->nleaves; i++)
        if (tape->leaves[i].t == t)
            return &tape->leaves[i].came;
    abort();
}

static struct dtensor_tape *differentiate(struct job *job, const struct call *c,
                                          struct dtensor *const in[])
{
    struct dtensor_tape *tape = NULL;
    struct dtensor *out, *ones = NULL;
    struct dtensor_spec spec;

    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    for (int i = 0; i < c->nin; i++)
        if (c->spec[i].dtype == DTENSOR_F64)
            good(dtensor_tape_watch(tape, in[i], &job->err));
    good(dtensor_tape_begin(tape, &job->err));
    out = output_make(job, c, in);
    spec = out->spec;
    for (int m = 0; m < dtensor_mesh_ndim(spec.mesh); m++)
        if (spec.placement[m].kind == DTENSOR_PARTIAL)
            spec.placement[m] = (struct dtensor_placement){
                .kind = DTENSOR_REPLICATE };
    good(dtensor_ones(&spec, &ones, &job->err));
    good(dtensor_tape_backward(tape, out, ones, &job->err));
    dtensor_destroy(out);
    dtensor_destroy(ones);
    return tape;
}

/* ------------------------------------------------------------ comparing --- */

/* Do both have the elements?  Those of replicas are on this rank. */
static void elements_check(struct job *job, const struct golden *table,
                           const struct dtensor *grad,
                           const struct dtensor *whole)
{
    static double full[ELEMS];
    const double *want = dtensor_to_local(whole);
    const size_t n = dtensor_local_bytes(whole) / sizeof want[0];

    good(dtensor_full_tensor(grad, full, n * sizeof full[0], &job->err));
    for (size_t i = 0; i < n; i++)
        need(fabs(full[i] - want[i]) <= 1e-9 * (1 + fabs(want[i])), "%s: "
             "element %zu is %.17g, not %.17g", table->line, i, full[i],
             want[i]);
}

static bool places_check(const struct golden *table, const struct call *c,
                         const struct dtensor_tape *tape,
                         struct dtensor *const in[], int rank)
{
    bool same = true;
    char text[80];

    for (int i = 0; i < c->nin; i++) {
        if (c->spec[i].dtype != DTENSOR_F64)
            continue;
        dtensor_placements_format(c->spec[i].mesh,
                                  arrived(tape, in[i])->placement, text,
                                  sizeof text);
        if (strcmp(text, c->grad[i]) != 0 && rank == 0)
            note("input %d: %s, in %s", i, text, table->line);
        same = same && strcmp(text, c->grad[i]) == 0;
    }
    return same;
}

/* A table that is cut by rows, to which each rank has added its own. */
static bool own_rows(const struct call *c, const struct dtensor_spec *came)
{
    char table[80], text[80];

    dtensor_placements_format(c->spec->mesh, c->spec->placement, table,
                              sizeof table);
    dtensor_placements_format(came->mesh, came->placement, text, sizeof text);
    return strcmp(c->op, "embedding") == 0 && strcmp(text, table) == 0;
}

/* By what the library decides for the forward. */
static enum reason reason_of(struct job *job, const struct call *c, bool same,
                             const struct dtensor_spec *came)
{
    const struct dtensor_op_call call = { .op = c->op, .nin = c->nin,
                                          .in = c->spec, .args = c->args };
    struct dtensor_spec want[INPUTS], out[INPUTS];
    struct dtensor_op_info info;
    char text[80];

    if (same)
        return SAME;
    if (own_rows(c, came))
        return ROWS;
    good(dtensor_op_infer(&call, want, INPUTS, out, &info, &job->err));
    dtensor_placements_format(out->mesh, out->placement, text, sizeof text);
    return info.reduces ? REDUCES : strcmp(text, c->out) != 0 ? FORWARD
         : BACKWARD;
}

static void line_check(struct job *job, struct golden *table,
                       const struct dtensor_mesh *const mesh[2])
{
    struct dtensor *in[INPUTS], *whole[INPUTS];
    struct dtensor_tape *tape, *replicas;
    struct call c, alike;
    bool same;

    call_read(job, table, mesh, &c);
    alike = c;
    for (int i = 0; i < c.nin; i++) {
        for (int m = 0; m < dtensor_mesh_ndim(c.spec[i].mesh); m++)
            alike.spec[i].placement[m] = (struct dtensor_placement){
                .kind = DTENSOR_REPLICATE };
        in[i] = input_make(job, &c.spec[i], i);
        whole[i] = input_make(job, &alike.spec[i], i);
    }
    tape = differentiate(job, &c, in);
    replicas = differentiate(job, &alike, whole);
    for (int i = 0; i < c.nin; i++)
        if (c.spec[i].dtype == DTENSOR_F64)
            elements_check(job, table, dtensor_tape_grad(tape, in[i]),
                           dtensor_tape_grad(replicas, whole[i]));
    same = places_check(table, &c, tape, in, job->rank);
    if (job->rank == 0) {
        counts->lines++;
        counts->of[reason_of(job, &c, same,
                             arrived(tape, in[0]))]++;
    }
    dtensor_tape_destroy(tape);
    dtensor_tape_destroy(replicas);
    for (int i = 0; i < c.nin; i++) {
        dtensor_destroy(in[i]);
        dtensor_destroy(whole[i]);
    }
}

static void lines(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh[2];
    struct golden table;

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_create(job->ctx, 1, (const int[]){ 4 }, NULL, NULL,
                             &mesh[0], &job->err));
    good(dtensor_mesh_create(job->ctx, 2, (const int[]){ 2, 2 }, NULL, NULL,
                             &mesh[1], &job->err));
    need(golden_open(&table, arg), "no table %s", (const char *)arg);
    while (golden_next(&table))
        line_check(job, &table, mesh);
    golden_close(&table);
    dtensor_fini(job->ctx);
}

int main(void)
{
    const char *name = getenv("DTN_GRADS");
    int failed;

    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    failed = ranks_run(WORLD, 300, lines, (void *)(name ? name : "grads.txt"),
                       NULL);
    ok(failed == 0, "the gradients of %d lines have the elements that replicas "
       "give", counts->lines);
    ok(counts->lines > 0 && counts->of[SAME] * 4 >= counts->lines * 3,
       "%d of them lie as PyTorch's", counts->of[SAME]);
    ok(counts->of[BACKWARD] * 10 <= counts->lines, "of the others %d reduce "
       "rows by themselves, %d follow another forward, %d come from another "
       "choice in the backward", counts->of[REDUCES], counts->of[FORWARD],
       counts->of[BACKWARD]);
    ok(counts->of[ROWS] > 0 || name, "%d are tables cut by rows, to which each "
       "rank adds its own rows", counts->of[ROWS]);
    return done();
}

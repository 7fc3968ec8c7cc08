/* test_run.c - what running an operator promises beside its numbers
 *
 * Wrong calls are refused in words and leave the outputs alone; a call that is
 * repeated allocates nothing; redistributes that nobody asked for can be told
 * of or refused; ranks that call different operators are told so; with repro a
 * product has the same bits on any mesh.
 *
 * Without this test, an operator could crash or hang where it should explain,
 * or get slower by an allocation that nobody sees.
 */
#include "dtensor.h"
#include "tests/op/allocated.h"
#include "tests/support/allocations.h"
#include "tests/support/job.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORLD = 4 };

/* A tensor whose element i is i % 7 - 3. */
static struct dtensor *tensor(struct job *job, const struct dtensor_mesh *mesh,
                              const char *placements, enum dtensor_dtype dtype,
                              int rows, int columns)
{
    const int64_t shape[] = { rows, columns };
    struct dtensor_spec spec;
    struct dtensor *t = NULL, *made = NULL;
    static double full[4096];
    struct dtensor_op_args args = { .dtype = dtype };

    for (int i = 0; i < rows * columns; i++)
        full[i] = i % 7 - 3;
    good(dtensor_spec_on(&spec, mesh, placements, DTENSOR_F64, 2, shape,
                         &job->err));
    good(dtensor_distribute(&spec, full, -1, &t, &job->err));
    if (dtype == DTENSOR_F64)
        return t;
    good(dtensor_op("cast", 1, (const struct dtensor *const[]){ t }, &args, 1,
                    &made, &job->err));
    dtensor_destroy(t);
    return made;
}

static const struct dtensor_mesh *square(struct job *job)
{
    const struct dtensor_mesh *mesh = NULL;

    good(dtensor_mesh_create(job->ctx, 2, (const int[]){ 2, 2 }, "a,b", NULL,
                             &mesh, &job->err));
    return mesh;
}

/* -------------------------------------------------------------- refused --- */

static void refuses(struct job *job, int rc, const char *words)
{
    need(rc == DTENSOR_EINVAL && strstr(job->err.text, words),
         "%d: \"%s\" lacks \"%s\"", rc, job->err.text, words);
}

static void refused(struct job *job, const struct dtensor_mesh *mesh)
{
    struct dtensor *a = tensor(job, mesh, "S(0),R", DTENSOR_F64, 6, 8);
    struct dtensor *b = tensor(job, mesh, "R,S(1)", DTENSOR_F64, 7, 4);
    struct dtensor *c = tensor(job, mesh, "R,R", DTENSOR_C64, 2, 2);
    struct dtensor *f = tensor(job, mesh, "S(0),R", DTENSOR_F32, 6, 8);
    const struct dtensor *const ab[] = { a, b }, *const af[] = { a, f };
    const struct dtensor *const an[] = { a, NULL }, *const cs[] = { c };
    const struct dtensor *const aa[] = { a, a };
    struct dtensor *out[2] = { a, b };
    struct dtensor_error *err = &job->err;

    refuses(job, dtensor_op("matmul", 2, ab, NULL, 1, out, err),
            "matmul of 6x8 f64 S(0),R, 7x4 f64 R,S(1): dimension 0 of input 1 "
            "has 7 elements, that of input 0 has 8");
    refuses(job, dtensor_op("add", 2, af, NULL, 1, out, err),
            "input 0 is f64, input 1 is f32 (cast one of them)");
    refuses(job, dtensor_op("matmu", 2, ab, NULL, 1, out, err), "matmul");
    refuses(job, dtensor_op(NULL, 2, ab, NULL, 1, out, err), "op is NULL");
    refuses(job, dtensor_op("add", 2, NULL, NULL, 1, out, err), "in is NULL");
    refuses(job, dtensor_op("add", 0, ab, NULL, 1, out, err), "no inputs");
    refuses(job, dtensor_op("add", 2, an, NULL, 1, out, err),
            "add: input 1 is NULL");
    refuses(job, dtensor_op("add", 2, aa, NULL, 2, out, err),
            "there are 1 outputs, not 2");
    refuses(job, dtensor_op("add", 2, aa, NULL, 0, out, err), "no outputs");
    refuses(job, dtensor_op("add_", 2, aa, NULL, 1, out, err),
            "works in place");
    refuses(job, dtensor_op("erf", 1, cs, NULL, 1, out, err),
            "not computed for c64");
    refuses(job, dtensor_op("dropout", 1, aa, &(struct dtensor_op_args){
            .p = 2 }, 1, out, err), "probability 2; expected 0 to 1");
    need(out[0] == a && out[1] == b, "a refused call wrote an output");
    dtensor_destroy(a);
    dtensor_destroy(b);
    dtensor_destroy(c);
    dtensor_destroy(f);
}

static void refused_into(struct job *job, const struct dtensor_mesh *mesh)
{
    struct dtensor *a = tensor(job, mesh, "S(0),R", DTENSOR_F64, 6, 6);
    struct dtensor *b = tensor(job, mesh, "S(1),R", DTENSOR_F64, 6, 6);
    struct dtensor *r = tensor(job, mesh, "R,R", DTENSOR_F64, 6, 6);
    const struct dtensor *const in[] = { a, a }, *const whole[] = { r, r };
    struct dtensor *const out[] = { a, a }, *const other[] = { b };
    struct dtensor *const none[] = { NULL };
    struct dtensor *half = tensor(job, mesh, "S(0),R", DTENSOR_F64, 6, 3);
    struct dtensor *const twice[] = { half, half };
    const struct dtensor_op_args halves = { .ndims = 1, .dim = { 1 },
                                            .count = 3 };
    struct dtensor_error *err = &job->err;

    refuses(job, dtensor_op_into("add", 2, in, NULL, 1, other, err),
            "out[0] is f64[6,6]  S(1),R");
    refuses(job, dtensor_op_into("add", 2, in, NULL, 1, none, err),
            "out[0] is NULL");
    refuses(job, dtensor_op_into("matmul", 2, whole, NULL, 1, &r, err),
            "out[0] is input 0, which is still read");
    refuses(job, dtensor_op_into("add_", 2, in, NULL, 1, other, err),
            "it works in place, but out[0] is not in[0]");
    refuses(job, dtensor_op_into("split", 1, in, &halves, 2, out, err),
            "but the result is f64[6,3]");
    refuses(job, dtensor_op_into("split", 1, in, &halves, 2, twice, err),
            "out[0] and out[1] are one tensor");
    dtensor_destroy(half);
    dtensor_destroy(a);
    dtensor_destroy(b);
    dtensor_destroy(r);
}

/* ------------------------------------------------------------ in place --- */

static double first(struct job *job, const struct dtensor *t)
{
    static double full[4096];

    good(dtensor_full_tensor(t, full, sizeof full[0] * 36, &job->err));
    return full[0];
}

/* One of two outputs is enough. */
static void first_output(struct job *job, const struct dtensor_mesh *mesh)
{
    struct dtensor *a = tensor(job, mesh, "S(0),S(1)", DTENSOR_F64, 6, 6);
    const struct dtensor *const in[] = { a };
    const struct dtensor_op_args args = { .ndims = 1, .dim = { 0 } };
    struct dtensor *out[2] = { NULL, NULL };
    double full[6];

    good(dtensor_op("max_dim", 1, in, &args, 1, out, &job->err));
    good(dtensor_full_tensor(out[0], full, sizeof full, &job->err));
    need(full[0] == 3 && !out[1], "max_dim gives %g", full[0]);
    dtensor_destroy(a);
    dtensor_destroy(out[0]);
}

static void in_place(struct job *job, const struct dtensor_mesh *mesh)
{
    struct dtensor *a = tensor(job, mesh, "S(0),R", DTENSOR_F64, 6, 6);
    struct dtensor *b = tensor(job, mesh, "S(1),S(0)", DTENSOR_F64, 6, 6);
    const struct dtensor *const in[] = { a, b };

    good(dtensor_op_into("add_", 2, in, NULL, 1, &a, &job->err));
    need(first(job, a) == -6, "add_ gives %g", first(job, a));
    good(dtensor_op_into("relu", 1, in, NULL, 1, &a, &job->err));
    need(first(job, a) == 0, "relu onto its input gives %g", first(job, a));
    dtensor_destroy(a);
    dtensor_destroy(b);
}

/* ---------------------------------------------------------- allocations --- */

static void allocates_nothing(struct job *job, const struct dtensor_mesh *mesh)
{
    struct dtensor *a = tensor(job, mesh, "S(0),S(1)", DTENSOR_F64, 12, 8);
    struct dtensor *b = tensor(job, mesh, "S(1),P", DTENSOR_F64, 8, 10);
    const struct dtensor *const in[] = { a, b };
    struct dtensor *out = NULL;
    long least = LONG_MAX;

    good(dtensor_op("matmul", 2, in, NULL, 1, &out, &job->err));
    for (int k = 0; k < 10; k++) {
        const long before = allocations;

        good(dtensor_op_into("matmul", 2, in, NULL, 1, &out, &job->err));
        if (k > 0 && allocations - before < least)
            least = allocations - before;
    }
    need(least == 0, "a repeated product makes %ld allocations", least);
    dtensor_destroy(a);
    dtensor_destroy(b);
    dtensor_destroy(out);
}

/* The first call of its kind allocates what is predicted.  dtensor_op() makes
 * outputs, too; redistributes are made before, since they keep memory.
 */
static void works_with(struct job *job, const struct dtensor_mesh *mesh,
                       const char *op, const char *text,
                       const char *const places[2])
{
    struct dtensor_spec in[2], want[2], out[2];
    const struct dtensor *tensors[2];
    struct dtensor_op_call call = { .op = op, .in = in };
    struct dtensor_op_info info;
    struct dtensor *t = NULL;
    size_t made;

    good(dtensor_op_args_parse(text, &call.args, &job->err));
    for (int i = 0; i < 2 && places[i]; i++) {
        tensors[i] = tensor(job, mesh, places[i], DTENSOR_F32, 40, 40);
        in[call.nin++] = *dtensor_spec_of(tensors[i]);
    }
    good(dtensor_op_infer(&call, want, 2, out, &info, &job->err));
    for (int i = 0; i < call.nin; i++) {
        good(dtensor_empty(&want[i], &t, &job->err));
        good(dtensor_redistribute_into(tensors[i], t, &job->err));
        dtensor_destroy(t);
    }
    allocated = 0;
    good(dtensor_op(op, call.nin, tensors, &call.args, 1, &t, &job->err));
    made = dtensor_local_bytes(t);
    need(allocated - made == info.scratch_bytes, "%s of %s: %zu bytes were "
         "allocated beside its output, predicted are %llu", op, places[0],
         allocated - made, (unsigned long long)info.scratch_bytes);
    dtensor_destroy(t);
    for (int i = 0; i < call.nin; i++)
        dtensor_destroy((struct dtensor *)tensors[i]);
}

static void scratch_moved(struct job *job, const struct dtensor_mesh *mesh)
{
    works_with(job, mesh, "matmul", "",
               (const char *const[]){ "S(0),R", "S(0),R" });
}

static void scratch_worked(struct job *job, const struct dtensor_mesh *mesh)
{
    works_with(job, mesh, "kthvalue", "dim=1,count=2",
               (const char *const[]){ "S(0),R", NULL });
}

/* --------------------------------------------------------------- random --- */

/* The operators give the numbers of the functions, and none to terms. */
static void random_numbers(struct job *job, const struct dtensor_mesh *mesh)
{
    struct dtensor *like = tensor(job, mesh, "S(0),S(1)", DTENSOR_F32, 12, 8);
    const struct dtensor *const in[] = { like };
    struct dtensor *a = NULL, *b = NULL;
    int equal = 0;

    for (int normal = 0; normal < 2; normal++) {
        good(dtensor_manual_seed(mesh, 7, NULL, &job->err));
        good(dtensor_op(normal ? "randn_like" : "rand_like", 1, in, NULL, 1,
                        &a, &job->err));
        good(dtensor_manual_seed(mesh, 7, NULL, &job->err));
        good((normal ? dtensor_randn : dtensor_rand)(dtensor_spec_of(like),
                                                     NULL, &b, &job->err));
        good(dtensor_equal(a, b, &equal, &job->err));
        need(equal, "%s has other numbers", normal ? "randn_like"
                                                   : "rand_like");
        dtensor_destroy(a);
        dtensor_destroy(b);
    }
    dtensor_destroy(like);
}

/* -------------------------------------------------------------- implied --- */

static void implied(struct job *job, const struct dtensor_mesh *mesh)
{
    struct dtensor *a = tensor(job, mesh, "S(0),R", DTENSOR_F64, 6, 6);
    struct dtensor *b = tensor(job, mesh, "S(1),R", DTENSOR_F64, 6, 6);
    struct dtensor *r = tensor(job, mesh, "R,R", DTENSOR_F64, 6, 6);
    const struct dtensor *const far[] = { a, b }, *const free_[] = { a, r };
    struct dtensor *out = NULL, *sum = NULL;

    good(dtensor_op_implied(job->ctx, DTENSOR_IMPLIED_REFUSED, &job->err));
    refuses(job, dtensor_op("matmul", 2, far, NULL, 1, &out, &job->err),
            "input 1 would be redistributed to R,S(1), which this context "
            "refuses");
    need(!out, "a refused product wrote its output");
    good(dtensor_op("add", 2, free_, NULL, 1, &sum, &job->err));
    good(dtensor_op_implied(job->ctx, DTENSOR_IMPLIED_WARNED, &job->err));
    good(dtensor_op("matmul", 2, far, NULL, 1, &out, &job->err));
    good(dtensor_op_implied(job->ctx, DTENSOR_IMPLIED_ALLOWED, &job->err));
    refuses(job, dtensor_op_implied(job->ctx, (enum dtensor_implied)7,
                                    &job->err), "there is no 7");
    dtensor_destroy(a);
    dtensor_destroy(b);
    dtensor_destroy(r);
    dtensor_destroy(out);
    dtensor_destroy(sum);
}

/* ---------------------------------------------------------------- repro --- */

/* Numbers whose sums are rounded, cut in many ways. */
static void repro(struct job *job, const struct dtensor_mesh *mesh)
{
    static const char *const ways[][2] = {
        { "R,R", "R,R" }, { "S(0),R", "R,R" }, { "S(0),S(0)", "R,R" },
        { "R,R", "S(1),S(1)" }, { "S(0),R", "R,S(1)" } };
    static double whole[2][40 * 24];
    const struct dtensor_op_args args = { .value = 0.1 };

    dtensor_set_repro(job->ctx, 1);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct dtensor *in[2] = {
            tensor(job, mesh, ways[i][0], DTENSOR_F64, 40, 50),
            tensor(job, mesh, ways[i][1], DTENSOR_F64, 50, 24) };
        struct dtensor *c = NULL;

        for (int k = 0; k < 2; k++)
            good(dtensor_op_into("scale_", 1,
                                 (const struct dtensor *const *)&in[k], &args,
                                 1, &in[k], &job->err));
        good(dtensor_op("matmul", 2, (const struct dtensor *const *)in, NULL, 1,
                        &c, &job->err));
        good(dtensor_full_tensor(c, whole[i > 0], sizeof whole[0], &job->err));
        need(i == 0 || memcmp(whole[0], whole[1], sizeof whole[0]) == 0,
             "the product of %s by %s has other bits", ways[i][0], ways[i][1]);
        dtensor_destroy(in[0]);
        dtensor_destroy(in[1]);
        dtensor_destroy(c);
    }
    dtensor_set_repro(job->ctx, 0);
}

/* Rows that are cut are gathered then. */
static void repro_rows(struct job *job, const struct dtensor_mesh *mesh)
{
    static const char *const ways[] = { "R,R", "S(1),R", "S(1),S(1)",
                                        "S(0),S(1)" };
    static double whole[2][8 * 400];
    const struct dtensor_op_args args = { .ndims = 1, .dim = { 1 } };

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct dtensor *in = tensor(job, mesh, ways[i], DTENSOR_F64, 8, 400);
        struct dtensor *out = NULL;

        dtensor_set_repro(job->ctx, 0);          /* another decision          */
        good(dtensor_op("softmax", 1, (const struct dtensor *const[]){ in },
                        &args, 1, &out, &job->err));
        dtensor_destroy(out);
        dtensor_set_repro(job->ctx, 1);
        good(dtensor_op("softmax", 1, (const struct dtensor *const[]){ in },
                        &args, 1, &out, &job->err));
        good(dtensor_full_tensor(out, whole[i > 0], sizeof whole[0],
                                 &job->err));
        need(i == 0 || memcmp(whole[0], whole[1], sizeof whole[0]) == 0,
             "the softmax of %s has other bits", ways[i]);
        dtensor_destroy(in);
        dtensor_destroy(out);
    }
    dtensor_set_repro(job->ctx, 0);
}

/* ------------------------------------------------------------------ log --- */

/* What `call` writes to stderr, in a static buffer. */
static const char *stderr_of(struct job *job,
                             void (*call)(struct job *,
                                          const struct dtensor_mesh *),
                             const struct dtensor_mesh *mesh)
{
    static char text[16384];
    FILE *file = tmpfile();
    int saved = dup(2);
    size_t n;

    need(file && saved >= 0, "no temporary file");
    dup2(fileno(file), 2);
    call(job, mesh);
    dup2(saved, 2);
    close(saved);
    rewind(file);
    n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    fclose(file);
    return text;
}

static void told_calls(struct job *job, const struct dtensor_mesh *mesh)
{
    struct dtensor *in[2] = { tensor(job, mesh, "S(0),R", DTENSOR_F64, 8, 8),
                              tensor(job, mesh, "S(1),R", DTENSOR_F64, 8, 8) };

    for (int i = 0; i < 2; i++) {
        struct dtensor *out = NULL;

        good(dtensor_op("matmul", 2, (const struct dtensor *const *)in, NULL, 1,
                        &out, &job->err));
        dtensor_destroy(out);
    }
    dtensor_destroy(in[0]);
    dtensor_destroy(in[1]);
}

/* At the level debug: made, found, and what moves. */
static void told(struct job *job, const struct dtensor_mesh *mesh)
{
    static const char *const lines[] = {
        "op: matmul of 8x8 f64 S(0),R, 8x8 f64 S(1),R: decided, ",
        "op: matmul of 8x8 f64 S(0),R, 8x8 f64 S(1),R: found, ",
        "op: matmul: input 1 is redistributed from S(1),R to R" };
    const char *text = stderr_of(job, told_calls, mesh);

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        need(strstr(text, lines[i]), "the log lacks \"%s\": %s", lines[i],
             text);
}

/* ----------------------------------------------------------------- jobs --- */

static void promises(int rank, int n, void *arg)
{
    static void (*const all[])(struct job *, const struct dtensor_mesh *) = {
        refused, refused_into, first_output, in_place, allocates_nothing,
        implied, repro, repro_rows, scratch_worked, scratch_moved,
        random_numbers, told };
    struct job the_job, *job = &the_job;

    job_open(job, rank, n, NULL);
    all[*(const int *)arg](job, square(job));
    dtensor_fini(job->ctx);
}

/* Rank 0 multiplies, the others add. */
static void mismatch(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor *in[2];
    const struct dtensor_mesh *mesh;
    struct dtensor *out = NULL;
    int rc;

    job_open(job, rank, n, NULL);
    mesh = square(job);
    in[0] = tensor(job, mesh, "S(0),S(0)", DTENSOR_F64, 8, 8);
    in[1] = tensor(job, mesh, "S(1),S(1)", DTENSOR_F64, 8, 8);
    rc = dtensor_op(rank == 0 ? "matmul" : "add", 2, in, NULL, 1, &out,
                    &job->err);
    need(rc == DTENSOR_EMISMATCH || rc == DTENSOR_EABORT, "%d: %s", rc,
         job->err.text);
    need(!out, "a call that failed wrote its output");
    dtensor_destroy((struct dtensor *)in[0]);
    dtensor_destroy((struct dtensor *)in[1]);
    dtensor_fini(job->ctx);
}

int main(void)
{
    static const char *const claims[] = {
        "wrong calls are refused in words", "and wrong outputs",
        "the last outputs may be left out",
        "an operator can work in place", "a repeated call allocates nothing",
        "redistributes that nobody asked for can be refused",
        "with repro a product has the same bits however it is cut",
        "and a softmax",
        "an operator that orders rows allocates as much as it said",
        "and one that moves an input",
        "rand_like and randn_like have the numbers of their functions",
        "DTN_LOG=debug tells what is decided and moved" };

    const int n = sizeof claims / sizeof claims[0];

    for (int i = 0; i < n; i++) {
        if (i == n - 1)
            setenv("DTN_LOG", "debug", 1);
        ok(ranks_run(WORLD, 60, promises, &i, NULL) == 0, "%s", claims[i]);
    }
    unsetenv("DTN_LOG");
    ok(ranks_run(WORLD, 60, mismatch, NULL, NULL) == 0,
       "ranks that call different operators are told so");
    return done();
}

/* test_register.c - operators of the program, and calls that it notes
 *
 * Operators with a rule, a local function and a backward, as expressions and as
 * a function, on every placement of their inputs: results and gradients are
 * those of numbers known beforehand.  Then what is overridden, every wrong
 * text, ranks that register different things, and calls on the parts of
 * tensors that gradients pass.
 *
 * Without this test, a program's operator could be placed, or differentiated,
 * otherwise than its rule says, or ranks with different rules wait for each
 * other.
 */
#include "dtensor.h"
#include "tests/support/job.h"

#include <math.h>
#include <string.h>

enum { WORLD = 4 };

static const double six[] = { 1, -2, 3, 4, 5, -6 }, three[] = { 2, -1, 3 };
static const char *const placed[] = { "R", "S(0)", "S(1)", "P(sum)" };

static struct dtensor *tensor(struct job *job, const char *placements,
                              int64_t rows, int64_t columns,
                              const double full[])
{
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    good(dtensor_spec_init(&spec, job->ctx, "world", placements, DTENSOR_F64, 2,
                           (const int64_t[]){ rows, columns }, &job->err));
    good(dtensor_distribute(&spec, full, -1, &t, &job->err));
    return t;
}

static void is(struct job *job, const struct dtensor *t, size_t n,
               const double want[], const char *what)
{
    double full[32];

    need(t, "%s: there is no tensor", what);
    good(dtensor_full_tensor(t, full, n * sizeof full[0], &job->err));
    for (size_t i = 0; i < n; i++)
        need(fabs(full[i] - want[i]) < 1e-12, "%s: element %zu is %.17g, not "
             "%.17g", what, i, full[i], want[i]);
}

static void refused(struct job *job, int rc, const char *words)
{
    need(rc == DTENSOR_EINVAL && strstr(job->err.text, words),
         "rc %d, \"%s\" instead of \"%s\"", rc, job->err.text, words);
    job->err.text[0] = '\0';
}

/* ------------------------------------------------------------ operators --- */

static dtensor_local_f triple, row_dot, copies, fails;
static dtensor_backward_f row_dot_back;

/* 3 a b; counts its calls. */
static int triple(const struct dtensor_op_run *run, struct dtensor_error *err)
{
    const double *a = run->in[0].data, *b = run->in[1].data;
    double *y = run->out[0].data;

    for (int64_t i = 0; i < run->out[0].count; i++)
        y[i] = 3 * a[i] * b[i];
    ++*(int *)run->arg;
    return 0;
}

/* The sum of products along the last dimension. */
static int row_dot(const struct dtensor_op_run *run, struct dtensor_error *err)
{
    const double *a = run->in[0].data, *b = run->in[1].data;
    const int64_t n = run->in[1].count;
    double *y = run->out[0].data;

    for (int64_t i = 0; i < run->out[0].count; i++) {
        y[i] = 0;
        for (int64_t k = 0; k < n; k++)
            y[i] += a[i * n + k] * b[k];
    }
    return 0;
}

/* Its gradients, by operators of the library; of `a` only g and b are kept. */
static int row_dot_back(const struct dtensor_op_gradient *g,
                        struct dtensor *in[], struct dtensor_error *err)
{
    const struct dtensor_op_args rows = { .ndims = 1, .dim = { 1 } };
    const struct dtensor_op_args last = { .ndims = 1, .dim = { 0 } };
    struct dtensor *wide = NULL, *each = NULL;
    int rc = dtensor_op("unsqueeze", 1, g->grad, &rows, 1, &wide, err);

    if (rc == 0 && g->wanted[0])
        rc = dtensor_mul(wide, g->in[1], &in[0], err);
    if (rc == 0 && g->wanted[1])
        rc = dtensor_mul(wide, g->in[0], &each, err);
    if (rc == 0 && g->wanted[1])
        rc = dtensor_op("sum", 1, (const struct dtensor *const[]){ each },
                        &last, 1, &in[1], err);
    dtensor_destroy(wide);
    dtensor_destroy(each);
    return rc;
}

/* args.count copies of each element, beside each other. */
static int copies(const struct dtensor_op_run *run, struct dtensor_error *err)
{
    const double *x = run->in[0].data;
    double *y = run->out[0].data;

    for (int64_t i = 0; i < run->out[0].count; i++)
        y[i] = x[i / run->args->count];
    return 0;
}

static int fails(const struct dtensor_op_run *run, struct dtensor_error *err)
{
    if (err)
        snprintf(err->text, sizeof err->text, "%s says no", run->op);
    return DTENSOR_EINVAL;
}

static int silent(const struct dtensor_op_run *run, struct dtensor_error *err)
{
    need(run->nin == 1 && !err->text[0], "an old text: %s", err->text);
    return DTENSOR_EINVAL;
}

static int silent_back(const struct dtensor_op_gradient *gradient,
                       struct dtensor *in[], struct dtensor_error *err)
{
    need(gradient->nin == 1 && !in[0] && !err->text[0], "an old text: %s",
         err->text);
    return DTENSOR_EABORT;
}

static int calls;

static void operators_register(struct job *job)
{
    good(dtensor_op_register(job->ctx, &(struct dtensor_op_def){
        .name = "triple", .letters = "*,*->*", .terms = "s.>s .s>s",
        .local = triple, .arg = &calls,
        .grad = { "scale(mul(g,b),3)", "scale(mul(g,a),3)" } }, &job->err));
    good(dtensor_op_register(job->ctx, &(struct dtensor_op_def){
        .name = "row_dot", .letters = "mk,k->m", .types = "f>f",
        .local = row_dot, .backward = row_dot_back, .keeps = "a b" },
        &job->err));
    good(dtensor_op_register(job->ctx, &(struct dtensor_op_def){
        .name = "copies", .letters = "mn->mnc", .local = copies },
        &job->err));
}

/* ------------------------------------------------------------ gradients --- */

/* The gradients of the sum of op(a, b), b of `columns` numbers. */
static void one_gradient(struct job *job, const char *op, const char *a_placed,
                         const char *b_placed, const double want[2][6])
{
    struct dtensor *a = tensor(job, a_placed, 2, 3, six);
    struct dtensor *b = NULL, *y = NULL, *loss = NULL;
    struct dtensor_tape *tape = NULL;
    struct dtensor_spec spec;

    good(dtensor_spec_init(&spec, job->ctx, "world", b_placed, DTENSOR_F64, 1,
                           (const int64_t[]){ 3 }, &job->err));
    good(dtensor_distribute(&spec, three, -1, &b, &job->err));
    good(dtensor_tape_create(job->ctx, &tape, &job->err));
    good(dtensor_tape_watch(tape, a, &job->err));
    good(dtensor_tape_watch(tape, b, &job->err));
    good(dtensor_tape_begin(tape, &job->err));
    good(dtensor_op(op, 2, (const struct dtensor *const[]){ a, b }, NULL, 1,
                    &y, &job->err));
    good(dtensor_op("sum", 1, (const struct dtensor *const[]){ y }, NULL, 1,
                    &loss, &job->err));
    good(dtensor_tape_backward(tape, loss, NULL, &job->err));
    is(job, dtensor_tape_grad(tape, a), 6, want[0], op);
    is(job, dtensor_tape_grad(tape, b), 3, want[1], op);
    dtensor_tape_destroy(tape);
    dtensor_destroy(a);
    dtensor_destroy(b);
    dtensor_destroy(y);
    dtensor_destroy(loss);
}

/* 3 a b is broadcast; a cut k of row_dot leaves terms. */
static void gradients(struct job *job)
{
    static const double of_triple[2][6] = { { 6, -3, 9, 6, -3, 9 },
                                            { 15, 9, -9 } };
    static const double of_dot[2][6] = { { 2, -1, 3, 2, -1, 3 },
                                         { 5, 3, -3 } };

    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) {
            one_gradient(job, "triple", placed[i], k == 2 ? "P(sum)"
                         : placed[k], of_triple);
            one_gradient(job, "row_dot", placed[i], k == 2 ? "P(sum)"
                         : placed[k], of_dot);
        }
    need(calls == 12, "triple was computed %d times", calls);
}

static void inferred(struct job *job)
{
    struct dtensor *a = tensor(job, "S(1)", 2, 3, six), *y = NULL;
    const struct dtensor_op_args args = { .count = 2 };
    const double want[] = { 1, 1, -2, -2, 3, 3, 4, 4, 5, 5, -6, -6 };
    char words[40];

    good(dtensor_op("copies", 1, (const struct dtensor *const[]){ a }, &args,
                    1, &y, &job->err));
    dtensor_placements_format(dtensor_spec_of(y)->mesh,
                              dtensor_spec_of(y)->placement, words,
                              sizeof words);
    need(job->n == 1 || strcmp(words, "S(1)") == 0, "copies lie as %s", words);
    is(job, y, 12, want, "copies");
    dtensor_destroy(y);
    dtensor_destroy(a);
}

/* ----------------------------------------------------------- overriding --- */

/* The program's loop under the library's rule and gradient; then a rule that
 * wants all whole with the library's loop; both after decisions were made.
 */
static void overridden(struct job *job)
{
    const double grad[2][6] = { { 2, -1, 3, 2, -1, 3 }, { 5, 3, -3 } };
    struct dtensor *a = tensor(job, "S(0)", 2, 3, six), *y = NULL;
    const struct dtensor *const in[] = { a, a };
    double want[6];
    int before;

    one_gradient(job, "mul", "S(0)", "R", grad);
    before = calls;
    good(dtensor_op_register(job->ctx, &(struct dtensor_op_def){
        .name = "mul", .local = triple, .arg = &calls }, &job->err));
    good(dtensor_mul(a, a, &y, &job->err));
    for (int i = 0; i < 6; i++)
        want[i] = 3 * six[i] * six[i];
    is(job, y, 6, want, "mul as 3 a b");
    need(calls == before + 1, "mul was not overridden");
    dtensor_destroy(y);

    good(dtensor_op_register(job->ctx, &(struct dtensor_op_def){
        .name = "add", .letters = "MN,MN->MN" }, &job->err));
    good(dtensor_op("add", 2, in, NULL, 1, &y, &job->err));
    need(dtensor_spec_of(y)->placement[0].kind == DTENSOR_REPLICATE,
         "the rule of add was not overridden");
    dtensor_destroy(y);
    dtensor_destroy(a);
}

/* --------------------------------------------------------------- faults --- */

static const struct {
    struct dtensor_op_def def;
    const char *words;
} faults[] = {
    { { .name = NULL }, "name \"\"" },
    { { .name = "a/b" }, "expected 1 to 31 letters" },
    { { .name = "unheard" }, "letters is NULL" },
    { { .name = "unheard", .letters = "m->m" }, "local is NULL" },
    { { .name = "x", .letters = "mk" }, "there is no \"->\"" },
    { { .name = "x", .letters = "mk,->m;" }, "the outputs are not" },
    { { .name = "x", .letters = "m-k->m" }, "the inputs are not" },
    { { .name = "x", .letters = "abcdefghi->a" }, "the inputs are not" },
    { { .name = "x", .letters = "*!->*&i" }, "the letter after &" },
    { { .name = "x", .letters = "*!,i->*&i,*&k" }, "the letter after &" },
    { { .name = "x", .letters = "m->m", .terms = "s" }, "terms \"s\"" },
    { { .name = "x", .letters = "m->m", .terms = "s>ss" }, "terms" },
    { { .name = "exp", .terms = "s>s" }, "no letters to go with it" },
    { { .name = "x", .letters = "m->m", .types = "q>t" }, "types \"q>t\"" },
    { { .name = "x", .letters = "m->m", .least = 2 }, "least is 2" },
    { { .name = "x", .letters = "m->", .reduce = DTENSOR_BOR },
      "reduce is bor" },
    { { .name = "exp", .keeps = "q" }, "keeps \"q\"" },
    { { .name = "exp", .grad = { "mul(g," } }, "at \"\"" },
    { { .name = "exp", .grad = { "mull(g,a)" } }, "no such operator" },
    { { .name = "exp", .letters = "*->*", .grad = { "mul(g,b)" } },
      "at \"b)\"" },
    { { .name = "exp", .letters = "*->*", .grad = { "g", "g" } },
      "there is no such input" },
    { { .name = "exp", .grad = { "g)" } }, "has ended before" },
    { { .name = "exp", .grad = { "mul(1,2)" } }, "no operand" },
    { { .name = "exp", .grad = { "scale(g,0x2)" } }, "at \"0x2)\"" },
    { { .name = "exp", .grad = { "g" }, .backward = row_dot_back },
      "so is backward" },
};

static void texts(struct job *job)
{
    struct dtensor *a = tensor(job, "R", 2, 3, six), *y = NULL;
    const struct dtensor *const in[] = { a };
    const struct dtensor *const nine[] = { a, a, a, a, a, a, a, a, a };

    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        refused(job, dtensor_op_register(job->ctx, &faults[i].def, &job->err),
                faults[i].words);
    refused(job, dtensor_op_register(job->ctx, NULL, &job->err), "def is NULL");
    good(dtensor_op_register(job->ctx, &(struct dtensor_op_def){
        .name = "no", .letters = "*->*", .local = fails }, &job->err));
    refused(job, dtensor_op("no", 1, in, NULL, 1, &y, &job->err), "no says no");
    refused(job, dtensor_op("x", 1, in, NULL, 1, &y, &job->err),
            "no operator \"x\"");
    good(dtensor_op_register(job->ctx, &(struct dtensor_op_def){
        .name = "stack", .local = fails }, &job->err));
    refused(job, dtensor_op("stack", 9, nine, &(struct dtensor_op_args){
        .ndims = 1 }, 1, &y, &job->err), "9 inputs and 1 outputs");
    dtensor_destroy(a);
}

/* Functions that fail without a word. */
static void silence(struct job *job)
{
    struct dtensor *a = tensor(job, "R", 2, 3, six), *y = NULL;
    struct dtensor_op_def def = { .name = "quiet", .letters = "*->*",
                                  .local = silent };
    struct dtensor_tape *tape = NULL;
    const struct dtensor *const in[] = { a };

    good(dtensor_op_register(job->ctx, &def, &job->err));
    strcpy(job->err.text, "of an earlier call");
    refused(job, dtensor_op("quiet", 1, in, NULL, 1, &y, &job->err),
            "quiet: its local function returned EINVAL without a text");
    def.local = copies;
    def.backward = silent_back;
    good(dtensor_op_register(job->ctx, &def, &job->err));
    tape = job_tape(job, a);
    good(dtensor_op("quiet", 1, in, &(struct dtensor_op_args){ .count = 1 }, 1,
                    &y, &job->err));
    strcpy(job->err.text, "of an earlier call");
    need(dtensor_tape_backward(tape, y, y, &job->err) == DTENSOR_EABORT &&
         strstr(job->err.text, "the backward of quiet returned EABORT"),
         "%s", job->err.text);
    dtensor_tape_destroy(tape);
    dtensor_destroy(y);
    dtensor_destroy(a);
}

/* One rank has other letters, or a fault: all are told which rank. */
static void disagree(struct job *job)
{
    const bool odd = job->rank == job->n - 1;
    struct dtensor_op_def def = { .name = "same", .letters = "*->*",
                                  .local = fails };

    if (job->n == 1)
        return;
    def.letters = odd ? "*!->*!" : "*->*";
    refused(job, dtensor_op_register(job->ctx, &def, &job->err),
            "another letters");
    need(job->err.rank == job->n - 1, "err.rank is %d", job->err.rank);
    def.letters = odd ? "->*;" : "*->*";
    refused(job, dtensor_op_register(job->ctx, &def, &job->err),
            odd ? "the outputs are not" : "found a fault in its definition");
    def.letters = "*->*";
    good(dtensor_op_register(job->ctx, &def, &job->err));
}

/* The last rank does not register; a job of its own, which ends with that. */
static void lacking(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh;
    double x = 1;
    int rc;

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    rc = rank < n - 1
       ? dtensor_op_register(job->ctx, &(struct dtensor_op_def){
             .name = "here", .letters = "*->*", .local = fails }, &job->err)
       : dtensor_allreduce(mesh, &x, &x, 1, DTENSOR_F64, DTENSOR_SUM,
                           &job->err);
    need(rc != 0 && rc != DTENSOR_EINVAL && job->err.text[0],
         "a rank that does not register: %d \"%s\"", rc, job->err.text);
    need(rank == n - 1 || strstr(job->err.text, "op_register of here"),
         "\"%s\"", job->err.text);
    dtensor_fini(job->ctx);
}

static void rank_main(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;

    job_open(job, rank, n, NULL);
    operators_register(job);
    gradients(job);
    inferred(job);
    overridden(job);
    texts(job);
    silence(job);
    disagree(job);
    dtensor_fini(job->ctx);
}

/* What follows from the texts of a definition, for a first input of 16x12. */
static const struct {
    struct dtensor_op_def def;
    const char *args, *placed;    /* of the call; of the input, on 8 ranks    */
    const char *answer;           /* of the outputs; or in the error          */
} follows[] = {
    { { .letters = "*k->*", .reduce = DTENSOR_AVG }, "", "S(0)", "S(0)" },
    { { .letters = "*k->*", .reduce = DTENSOR_AVG }, "", "S(1)", "S(0)" },
    { { .letters = "mk->k", .reduce = DTENSOR_AVG }, "", "S(0)", "P(avg)" },
    { { .letters = "*->*,*", .terms = "s>s" }, "", "P(sum)", "P(sum) P(sum)" },
    { { .letters = "*->*", .types = "?>c" }, "dtype=i32", "S(0)", "S(0) i32" },
    { { .letters = "*!->*!" }, "dim=1", "S(0)", "S(0)" },
    { { .letters = "*!->*-" }, "dim=0,keep=1", "S(1)", "S(1)" },
    { { .letters = "*!m->*&m" }, "dim=0+1", "R", "expected one)" },
};

static void texts_follow(struct dtensor_ctx *ctx)
{
    for (size_t i = 0; i < sizeof follows / sizeof follows[0]; i++) {
        struct dtensor_op_def def = follows[i].def;
        struct dtensor_spec in, want, out[2];
        struct dtensor_op_call call = { .op = "own", .nin = 1, .in = &in };
        struct dtensor_op_info info = { .nout = 0 };
        struct dtensor_error err = { .text = "" };
        char answer[400] = "";

        def.name = "own";
        def.local = row_dot;
        if (dtensor_op_register(ctx, &def, &err) == 0 &&
            dtensor_spec_init(&in, ctx, "world", follows[i].placed,
                              DTENSOR_F64, 2, (const int64_t[]){ 16, 12 },
                              &err) == 0 &&
            dtensor_op_args_parse(follows[i].args, &call.args, &err) == 0)
            dtensor_op_infer(&call, &want, 2, out, &info, &err);
        for (int k = 0; k < info.nout; k++) {
            const size_t at = strlen(answer);

            snprintf(answer + at, 4, "%s", k ? " " : "");
            dtensor_placements_format(out[k].mesh, out[k].placement,
                                      answer + strlen(answer), 100);
        }
        if (info.nout > 0 && out[0].dtype != DTENSOR_F64)
            snprintf(answer + strlen(answer), 20, " %s",
                     dtensor_dtype_name(out[0].dtype));
        ok(info.nout > 0 ? strcmp(answer, follows[i].answer) == 0
                         : strstr(err.text, follows[i].answer) != NULL,
           "%s%s%s of %s: %s (%s)", def.letters, *follows[i].args ? " " : "",
           follows[i].args, follows[i].placed, follows[i].answer,
           info.nout > 0 ? answer : err.text);
    }
}

/* Without peers: registered, and inferred. */
static void planning(void)
{
    struct dtensor_error err = { .text = "" };
    struct dtensor_spec in[2], want[2], out[1];
    struct dtensor_op_info info = { .nout = 0 };
    struct dtensor_ctx *ctx = NULL;
    int rc = dtensor_init_offline(NULL, 8, 0, &ctx, &err);

    if (rc == 0)
        rc = dtensor_op_register(ctx, &(struct dtensor_op_def){
            .name = "dots", .letters = "mk,k->m", .local = row_dot }, &err);
    if (rc == 0)
        rc = dtensor_spec_init(&in[0], ctx, "world", "S(1)", DTENSOR_F64, 2,
                               (const int64_t[]){ 16, 8 }, &err);
    if (rc == 0)
        rc = dtensor_spec_init(&in[1], ctx, "world", "R", DTENSOR_F64, 1,
                               (const int64_t[]){ 8 }, &err);
    if (rc == 0)
        rc = dtensor_op_infer(&(struct dtensor_op_call){ .op = "dots",
            .nin = 2, .in = in }, want, 1, out, &info, &err);
    ok(rc == 0 && out[0].placement[0].kind == DTENSOR_PARTIAL &&
       info.predicted_us < 0.01,
       "an operator is registered and inferred without peers, nothing is sent "
       "(%d, %g us) %s",
       rc, info.predicted_us, err.text);
    texts_follow(ctx);
    dtensor_fini(ctx);
}

int main(void)
{
    for (int n = 1; n <= WORLD; n++)
        ok(ranks_run(n, 120, rank_main, NULL, NULL) == 0,
           "operators of the program on %d ranks: results, gradients, %d "
           "faults in words", n, (int)(sizeof faults / sizeof faults[0]));
    ok(ranks_run(2, 120, lacking, NULL, NULL) == 0,
       "a rank that does not register is told in words");
    planning();
    return done();
}

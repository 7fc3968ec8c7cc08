/* express.c - evaluates expressions of operators
 *
 * "mul(g,cos(a))" runs cos on input 0, then mul on the gradient and that
 * result. Each operator redistributes its inputs by its rule, as if the program
 * had called it.
 */
#include "tape/express.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/units.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <ctype.h>
#include <string.h>

enum { ITEMS = 4 };               /* most operands of an operator             */

/* The operand that a letter names, of note->operand; -1: none. */
static int letter_of(const struct dtn_note *note, char c)
{
    if (c >= 'a' && c <= 'd')
        return c - 'a' < note->nin ? c - 'a' : -1;
    return (c == 'y' || c == 'z') && c - 'y' < note->nout
           ? note->nin + (c - 'y') : -1;
}

/* The length of the name or number at the beginning of the text. */
static size_t word_length(const char *text)
{
    size_t n = 0;

    while (isalnum((unsigned char)text[n]) || text[n] == '_' ||
           text[n] == '.' || text[n] == '-')
        n++;
    return n;
}

/* Read for every call that is noted: strspn() would be its longest part. */
unsigned dtn_express_names(const char *text, const struct dtn_note *note)
{
    unsigned bits = 0;

    while (*text) {
        const size_t len = word_length(text);

        if (len == 1 && text[1] != '(' && letter_of(note, *text) >= 0)
            bits |= 1u << letter_of(note, *text);
        text += len + (text[len] != '\0');
    }
    return bits;
}

/* ------------------------------------------------------------- operands --- */

int dtn_express_operand(const struct dtn_express *e, int i,
                        const struct dtensor **tp, struct dtensor_error *err)
{
    const struct dtn_noted *at = &e->note->operand[i];
    const int k = i - e->note->nin;

    if (at->kept->content != at->content)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_backward: %sput %d of %s "
                        "was changed in place after the call, and its old "
                        "elements are needed (clone it before)",
                        k < 0 ? "in" : "out", k < 0 ? i : k, e->note->op);
    *tp = at->kept;
    return 0;
}

int dtn_express_grad(const struct dtn_express *e, int k, struct dtensor **tp,
                     struct dtensor_error *err)
{
    struct dtensor_spec spec;

    if (e->grad[k]) {
        *tp = dtn_tensor_hold(e->grad[k]);
        return 0;
    }
    spec = dtn_spec_reduced(e->note->operand[e->note->nin + k].spec);
    return dtensor_zeros(&spec, tp, err);
}

/* A letter, or zeros like what it names. */
static int leaf(const struct dtn_express *e, const char *text,
                struct dtensor **tp, struct dtensor_error *err)
{
    const int i = letter_of(e->note, text[*text == '0']);
    const struct dtensor *t = NULL;
    struct dtensor_spec spec;
    int rc;

    if (*text == 'g' || *text == 'h')
        return dtn_express_grad(e, *text - 'g', tp, err);
    if (i < 0)
        return dtn_fail(err, DTENSOR_EINVAL, "tape_backward: the gradient of "
                        "%s names \"%c\", which this call has not",
                        e->note->op, text[*text == '0']);
    if (*text == '0') {
        spec = dtn_spec_reduced(e->note->operand[i].spec);
        return dtensor_zeros(&spec, tp, err);
    }
    rc = dtn_express_operand(e, i, &t, err);
    if (rc == 0)
        *tp = dtn_tensor_hold(t);
    return rc;
}

/* How many elements of input 0 become one of output 0. */
static double reduced(const struct dtn_note *note)
{
    const struct dtensor_spec *in = &note->operand[0].spec;
    const struct dtensor_spec *out = &note->operand[note->nin].spec;
    const int64_t n = dtn_numel(out->ndim, out->shape);

    return n > 0 ? (double)(dtn_numel(in->ndim, in->shape) / n) : 1;
}

static double number(const struct dtn_note *note, const char *text)
{
    switch (*text) {
    case 'V': return note->args.value;
    case 'P': return note->args.p;
    case 'Q': return note->args.p - 1;
    case 'M': return 1 / reduced(note);
    case 'U': return 2 / (reduced(note) - 1);
    case 'W': return 1 / (reduced(note) - 1);
    case 'D': return note->args.p < 1 ? 1 / (1 - note->args.p) : 0;
    default:  return dtn_parse_real(text, NULL);
    }
}

/* ---------------------------------------------------------------- steps --- */

int dtn_express_step(const char *op, const struct dtensor_op_args *args,
                     struct dtensor **tp, struct dtensor_error *err)
{
    const struct dtensor *in = *tp;
    struct dtensor *out;
    int rc = dtensor_op(op, 1, &in, args, 1, &out, err);

    if (rc != 0)
        return rc;
    dtensor_destroy(*tp);
    *tp = out;
    return 0;
}

int dtn_express_reshape(struct dtensor **tp, int ndim, const int64_t shape[],
                        struct dtensor_error *err)
{
    struct dtensor_op_args args = { .ndim = ndim };

    if ((*tp)->spec.ndim == ndim &&
        memcmp((*tp)->spec.shape, shape, (size_t)ndim * sizeof shape[0]) == 0)
        return 0;
    memcpy(args.shape, shape, (size_t)ndim * sizeof shape[0]);
    return dtn_express_step("reshape", &args, tp, err);
}

/* Does the call reduce dimension d of its first input? */
static bool reduces(const struct dtn_note *note, int d)
{
    const int ndim = note->operand[0].spec.ndim;

    for (int i = 0; i < note->args.ndims; i++)
        if (note->args.dim[i] == d || note->args.dim[i] + ndim == d)
            return true;
    return note->args.ndims == 0;
}

/* A reduction with dimensions of 1 where input 0 was reduced. */
static int along(const struct dtn_express *e, struct dtensor **tp,
                 struct dtensor_error *err)
{
    const struct dtensor_spec *in = &e->note->operand[0].spec;
    int64_t ones[DTENSOR_MAX_DIMS];

    for (int d = 0; d < in->ndim; d++)
        ones[d] = reduces(e->note, d) ? 1 : in->shape[d];
    return dtn_express_reshape(tp, in->ndim, ones, err);
}

/* The same, as large as input 0. */
static int spread(const struct dtn_express *e, struct dtensor **tp,
                  struct dtensor_error *err)
{
    const struct dtensor_spec *in = &e->note->operand[0].spec;
    struct dtensor_op_args args = { .ndim = in->ndim };
    int rc = (*tp)->spec.ndim > 0 ? along(e, tp, err) : 0;

    memcpy(args.shape, in->shape, sizeof args.shape);
    return rc == 0 ? dtn_express_step("expand", &args, tp, err) : rc;
}

static int turn(const struct dtn_express *e, struct dtensor **tp,
                struct dtensor_error *err)
{
    const struct dtensor_op_args args = { .ndims = 2, .dim = { -2, -1 } };

    return dtn_express_step("transpose", &args, tp, err);
}

static int cast(const struct dtn_express *e, struct dtensor **tp,
                struct dtensor_error *err)
{
    const struct dtensor_op_args args = {
        .dtype = e->note->operand[e->input].spec.dtype };

    return (*tp)->spec.dtype == args.dtype ? 0
         : dtn_express_step("cast", &args, tp, err);
}

/* ---------------------------------------------------------- expressions --- */

/* A call whose parts are evaluated; `value` is its number. */
struct calling {
    char op[32];
    struct dtensor_op_args args;
    struct dtensor *in[ITEMS];
    int nin;
};

static int evaluate(const struct dtn_express *e, const char **textp,
                    struct dtensor **tp, struct dtensor_error *err);

/* "g,2.5)", to behind the bracket. */
static int items(const struct dtn_express *e, const char **textp,
                 struct calling *c, struct dtensor_error *err)
{
    const char *text = *textp;
    int rc = 0;

    while (rc == 0 && *text != ')') {
        const bool zeros = *text == '0' && islower((unsigned char)text[1]);

        if (islower((unsigned char)*text) || zeros) {
            rc = evaluate(e, &text, &c->in[c->nin], err);
            c->nin += rc == 0;
        } else {
            c->args.value = c->args.p = number(e->note, text);
            text += strcspn(text, ",)");
        }
        text += *text == ',';
    }
    *textp = text + 1;
    return rc;
}

/* What is no operator. */
static const struct {
    const char *name;
    int (*step)(const struct dtn_express *e, struct dtensor **tp,
                struct dtensor_error *err);
} steps[] = {
    { "spread", spread }, { "along", along }, { "turn", turn },
    { "cast", cast }
};

bool dtn_express_is_step(const char *name)
{
    for (size_t i = 0; i < DTN_COUNT(steps); i++)
        if (strcmp(name, steps[i].name) == 0)
            return true;
    return false;
}

static int call_run(const struct dtn_express *e, struct calling *c,
                    struct dtensor **tp, struct dtensor_error *err)
{
    for (size_t i = 0; i < DTN_COUNT(steps); i++) {
        int rc;

        if (strcmp(c->op, steps[i].name) != 0)
            continue;
        rc = steps[i].step(e, &c->in[0], err);
        if (rc == 0)
            *tp = dtn_tensor_hold(c->in[0]);
        return rc;
    }
    return dtensor_op(c->op, c->nin, (const struct dtensor *const *)c->in,
                      &c->args, 1, tp, err);
}

static int evaluate(const struct dtn_express *e, const char **textp,
                    struct dtensor **tp, struct dtensor_error *err)
{
    const size_t len = strcspn(*textp, "(,)");
    struct calling c = { .args = e->note->args };
    const char *text = *textp;
    int rc;

    *textp += len;
    if (text[len] != '(')
        return leaf(e, text, tp, err);
    memcpy(c.op, text, len < sizeof c.op ? len : sizeof c.op - 1);
    ++*textp;
    rc = items(e, textp, &c, err);
    if (rc == 0)
        rc = call_run(e, &c, tp, err);
    for (int i = 0; i < c.nin; i++)
        dtensor_destroy(c.in[i]);
    return rc;
}

int dtn_express(const struct dtn_express *e, const char *text,
                struct dtensor **tp, struct dtensor_error *err)
{
    return evaluate(e, &text, tp, err);
}

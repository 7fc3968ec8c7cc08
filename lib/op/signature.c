/* signature.c - the letters of one call: which dimensions are the same
 *
 * The letters of a rule name dimensions.  For a call each letter gets the size
 * that its dimensions have in the inputs, and each dimension its letter; what
 * may not be sharded gets none.  Of "*,*->*" with 16x8 by 8 the letters are
 * those of the 16 and the 8, and the second input has the second one only.
 */
#include "op/signature.h"
#include "op/args.h"
#include "op/pattern.h"
#include "op/placed.h"
#include "op/result.h"
#include "op/words.h"
#include "dtensor.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* While letters get their sizes. */
struct reading {
    struct dtn_signature *sig;             /* what is filled                  */
    const struct dtn_patterns *patterns;   /* the rule's letters              */
    int count;                             /* dimensions of "@" and "1"       */
    int nstars;                            /* of "*", in the longest operand  */
    uint64_t whole;                        /* bit set of letters that are not */
                                           /* sharded                         */
    uint64_t soft;                         /* of those that have size 1, from */
                                           /* an operand of "~"               */
    int owner[DTN_LETTERS];                /* input that a size came from     */
    struct dtensor_error *err;             /* of the caller                   */
};

static int letter_of(char c)
{
    return DTN_STARS + (tolower((unsigned char)c) - 'a');
}

static const struct dtensor_spec *input_of(const struct dtn_signature *sig,
                                           int i)
{
    return &sig->call->in[i];
}

/* Fill sig->dim from args.dim for a tensor of ndim dimensions; none given: all,
 * if `all`.
 */
static int signature_dims(struct dtn_signature *sig, int ndim, bool all,
                          struct dtensor_error *err)
{
    const struct dtensor_op_args *args = &sig->call->args;

    sig->ndims = 0;
    if (args->ndims < 0 || args->ndims > DTENSOR_MAX_DIMS)
        return dtn_op_fail(sig->call, err, "args.ndims is %d (expected 0 to "
                           "%d)", args->ndims, DTENSOR_MAX_DIMS);
    for (int i = 0; i < args->ndims; i++) {
        int d, rc = dtn_op_dim(sig->call, args->dim[i], ndim, &d, err);

        if (rc < 0)
            return rc;
        if (dtn_signature_names(sig, d))
            return dtn_op_fail(sig->call, err, "dimension %d is named twice",
                               args->dim[i]);
        sig->dim[sig->ndims++] = d;
    }
    for (int d = 0; d < ndim && all && args->ndims == 0; d++)
        sig->dim[sig->ndims++] = d;
    return 0;
}

/* The number of a dimension of "@", of which `left` are left with it. */
static int number_of(int left)
{
    return DTN_LETTERS + left;
}

/* --------------------------------------------------------------- inputs --- */

/* Give a letter its size.  Operands that are broadcast may have 1 instead. */
static int size_set(struct reading *r, int i, int d, int letter, bool broadcast)
{
    struct dtn_signature *sig = r->sig;
    const int64_t have = sig->size[letter], size = sig->in[i].shape[d];

    if (have < 0 || (have == 1 && (broadcast || r->soft >> letter & 1))) {
        sig->size[letter] = size;
        r->owner[letter] = i;
        r->soft |= (uint64_t)(broadcast && size == 1) << letter;
    } else if (have != size && sig->rule->flags & DTN_RULE_LOOSE) {
        r->whole |= (uint64_t)1 << letter;
    } else if (have != size && !(broadcast && size == 1)) {
        return dtn_op_fail(sig->call, r->err, "dimension %d of input %d has "
                           "%" PRId64 " elements, that of input %d has %" PRId64
                           " (they must be equal%s)", d, i, size,
                           r->owner[letter], have,
                           broadcast ? ", or 1" : "");
    }
    return 0;
}

/* A dimension of args.dim in "*!": as in input 0, unless they may differ. */
static int size_named(struct reading *r, int i, int d)
{
    const struct dtn_signature *sig = r->sig;
    const struct dtn_operand *in = &sig->in[i], *first = &sig->in[0];

    if (sig->rule->flags & DTN_RULE_LOOSE || sig->rule->size == DTN_SIZE_SUM ||
        (d < first->ndim && in->shape[d] == first->shape[d]))
        return 0;
    return dtn_op_fail(sig->call, r->err, "dimension %d of input %d has %"
                       PRId64 " elements, that of input 0 has %" PRId64,
                       d, i, in->shape[d], first->shape[d]);
}

/* The dimensions of "*". */
static int input_stars(struct reading *r, int i, int n)
{
    const struct dtn_pattern *p = &r->patterns->in[i];
    struct dtn_operand *in = &r->sig->in[i];
    int rc = 0;

    for (int d = 0; d < n && rc == 0; d++) {
        in->letter[d] = d + r->nstars - n;
        if (p->mark == '!' && dtn_signature_names(r->sig, d)) {
            in->inner[d] = in->letter[d];
            in->letter[d] = DTN_WHOLE;
            rc = size_named(r, i, d);
        } else {
            rc = size_set(r, i, d, in->letter[d], true);
        }
    }
    return rc;
}

/* A dimension of "@", which all operands have alike, or of "1". */
static int input_whole(struct reading *r, int i, int d, char letter)
{
    const struct dtn_signature *sig = r->sig;
    const struct dtn_operand *in = &sig->in[i], *first = &sig->in[0];
    const int64_t want = letter == '1' ? 1
                       : first->shape[first->ndim - (in->ndim - d)];

    r->sig->in[i].letter[d] = DTN_WHOLE;
    if (in->shape[d] == want)
        return 0;
    return dtn_op_fail(sig->call, r->err, "dimension %d of input %d has %"
                       PRId64 " elements (expected %" PRId64 ")", d, i,
                       in->shape[d], want);
}

/* The dimensions after those of "*"; `skip` of them are not there. */
static int input_letters(struct reading *r, int i, int d, int skip)
{
    const struct dtn_pattern *p = &r->patterns->in[i];
    struct dtn_operand *in = &r->sig->in[i];
    int rc = 0;

    for (int k = skip; k < p->n && rc == 0; k++) {
        int span = dtn_pattern_span(p, k, r->count, in->ndim);

        for (; span > 0 && rc == 0; span--, d++) {
            if (!isalpha((unsigned char)p->letter[k])) {
                rc = input_whole(r, i, d, p->letter[k]);
                if (p->letter[k] == '@')
                    in->inner[d] = number_of(span);
                continue;
            }
            in->letter[d] = letter_of(p->letter[k]);
            if (isupper((unsigned char)p->letter[k])) {
                in->inner[d] = in->letter[d];
                r->whole |= (uint64_t)1 << in->letter[d];
            }
            rc = size_set(r, i, d, in->letter[d], p->loose);
        }
    }
    return rc;
}

/* The dimensions of "#". */
static int input_index(struct reading *r, int i)
{
    struct dtn_operand *in = &r->sig->in[i];
    int rc = dtn_placed_check(r->sig, i, r->err);

    for (int d = 0; d < in->ndim && rc == 0; d++) {
        in->letter[d] = DTN_PLACED + d;
        if (r->patterns->in[i].mark == '!')
            r->whole |= (uint64_t)1 << in->letter[d];
        rc = size_set(r, i, d, in->letter[d], false);
    }
    return rc;
}

/* The dimensions of "*&#", which may be 1, or lack at the left. */
static int input_placed(struct reading *r, int i)
{
    const struct dtn_signature *sig = r->sig;
    struct dtn_operand *in = &r->sig->in[i];
    int letter[2 * DTENSOR_MAX_DIMS], rc = 0;
    const int n = dtn_placed_letters(sig, r->nstars, letter);

    if (in->ndim > n)
        return dtn_op_fail(sig->call, r->err, "input %d has %d dimensions "
                           "(expected at most %d)", i, in->ndim, n);
    for (int d = 0; d < in->ndim && rc == 0; d++) {
        const int k = letter[n - in->ndim + d];
        const int64_t size = in->shape[d];

        if (k < DTN_PLACED && size != 1 && size != sig->size[k])
            return dtn_op_fail(sig->call, r->err, "dimension %d of input %d "
                               "has %" PRId64 " elements (expected %" PRId64
                               " or 1)", d, i, size, sig->size[k]);
        in->letter[d] = k;
        rc = size_set(r, i, d, k, true);
    }
    return rc;
}

static int input_read(struct reading *r, int i)
{
    const struct dtn_pattern *p = &r->patterns->in[i];
    const struct dtn_operand *in = &r->sig->in[i];
    const int fixed = dtn_pattern_fixed(p, r->count, in->ndim);
    const int lacking = p->loose && in->ndim < fixed ? fixed - in->ndim : 0;
    const int stars = in->ndim - fixed + lacking;
    int rc;

    if (p->index || p->with == '#')
        return p->index ? input_index(r, i) : input_placed(r, i);
    if (stars < 0 || (stars > 0 && !p->star))
        return dtn_op_fail(r->sig->call, r->err, "input %d has %d dimensions "
                           "(expected %d%s)", i, in->ndim, fixed,
                           p->star ? " or more" : "");
    rc = input_stars(r, i, stars);
    return rc == 0 ? input_letters(r, i, stars, lacking) : rc;
}

/* How many dimensions "*" has at most. */
static int inputs_stars(const struct reading *r)
{
    int most = 0;

    for (int i = 0; i < r->sig->nin; i++) {
        const struct dtn_pattern *p = &r->patterns->in[i];
        const int ndim = r->sig->in[i].ndim;
        const int n = ndim - dtn_pattern_fixed(p, r->count, ndim);

        if (p->star && !p->with && n > most)
            most = n;
    }
    return most;
}

/* A dimension keeps its letter only if it has that letter's size. */
static void inputs_settle(struct reading *r)
{
    for (int i = 0; i < r->sig->nin; i++) {
        struct dtn_operand *in = &r->sig->in[i];

        for (int d = 0; d < in->ndim; d++)
            if (in->letter[d] >= 0 &&
                (in->shape[d] != r->sig->size[in->letter[d]] ||
                 r->whole >> in->letter[d] & 1))
                in->letter[d] = DTN_WHOLE;
    }
}

/* The operands of a list are as its first, but for the dimension of SUM. */
static int inputs_list(const struct reading *r)
{
    const struct dtn_signature *sig = r->sig;
    const struct dtn_operand *last = &sig->in[sig->nin - 1];

    for (int i = sig->nin; i < sig->call->nin; i++) {
        const struct dtensor_spec *in = input_of(sig, i);
        bool same = in->ndim == last->ndim;

        for (int d = 0; d < last->ndim && same; d++)
            same = in->shape[d] == last->shape[d] ||
                   (sig->rule->size == DTN_SIZE_SUM &&
                    dtn_signature_names(sig, d));
        if (!same)
            return dtn_op_fail(sig->call, r->err, "input %d has another shape "
                               "than input %d", i, sig->nin - 1);
    }
    return 0;
}

static int inputs_read(struct reading *r)
{
    struct dtn_signature *sig = r->sig;
    int rc = 0;

    for (int i = 0; i < sig->nin; i++) {
        sig->in[i].ndim = input_of(sig, i)->ndim;
        for (int d = 0; d < DTENSOR_MAX_DIMS; d++)
            sig->in[i].inner[d] = DTN_WHOLE;
        sig->in[i].sum = r->patterns->in[i].sum;
        memcpy(sig->in[i].shape, input_of(sig, i)->shape,
               sizeof sig->in[i].shape);
    }
    r->nstars = inputs_stars(r);
    for (int i = 0; i < sig->nin && rc == 0; i++)
        rc = input_read(r, i);
    if (rc == 0)
        rc = inputs_list(r);
    inputs_settle(r);
    return rc;
}

/* -------------------------------------------------------------- outputs --- */

/* A dimension that may be sharded as `letter`, or only alike with those of
 * `inner`; one too many is counted: output_read() tells.
 */
static void output_add(struct dtn_operand *out, int letter, int inner,
                       int64_t size)
{
    if (out->ndim < DTENSOR_MAX_DIMS) {
        out->letter[out->ndim] = letter;
        out->inner[out->ndim] = inner;
        out->shape[out->ndim] = size;
    }
    out->ndim++;
}

/* A letter of the output: sharded if some input has it as a letter; a capital
 * as dimensions that are never sharded.
 */
static void output_letter(const struct reading *r, struct dtn_operand *out,
                          int letter)
{
    const int64_t size = r->sig->size[letter];
    bool there = false;

    for (int i = 0; i < r->sig->nin; i++)
        for (int d = 0; d < r->sig->in[i].ndim; d++)
            there |= r->sig->in[i].letter[d] == letter;
    output_add(out, there ? letter : DTN_WHOLE,
               r->whole >> letter & 1 ? letter : DTN_WHOLE,
               size >= 0 ? size : r->sig->call->args.count);
}

static void output_placed(const struct reading *r, struct dtn_operand *out)
{
    int letter[2 * DTENSOR_MAX_DIMS];
    const int n = dtn_placed_letters(r->sig, r->nstars, letter);

    for (int d = 0; d < n; d++)
        output_letter(r, out, letter[d]);
}

static void output_stars(const struct reading *r, const struct dtn_pattern *p,
                         struct dtn_operand *out)
{
    const bool keep = r->sig->rule->reads & DTN_ARG_KEEP &&
                      r->sig->call->args.keep;

    for (int d = 0; d < r->nstars; d++) {
        if (!p->mark || !dtn_signature_names(r->sig, d))
            output_letter(r, out, d);
        else if (p->mark == '!')
            output_add(out, DTN_WHOLE, d, r->sig->in[0].shape[d]);
        else if (p->mark == '&')
            output_letter(r, out, letter_of(p->with));
        else if (keep)
            output_add(out, DTN_WHOLE, DTN_WHOLE, 1);
    }
}

static int output_read(const struct reading *r, const struct dtn_pattern *p,
                       struct dtn_operand *out)
{
    const struct dtensor_op_args *args = &r->sig->call->args;
    const struct dtn_operand *first = &r->sig->in[0];

    out->constant = p->constant;
    for (int d = 0; p->constant && d < args->ndim &&
                    r->sig->rule->reads & DTN_ARG_SHAPE; d++)
        output_add(out, DTN_WHOLE, DTN_WHOLE, args->shape[d]);
    if (p->star && p->with == '#')
        output_placed(r, out);
    else if (p->star)
        output_stars(r, p, out);
    for (int k = 0; k < p->n; k++) {
        int span = dtn_pattern_span(p, k, r->count, first->ndim);

        for (int left = span; left > 0; left--)
            if (isalpha((unsigned char)p->letter[k]))
                output_letter(r, out, letter_of(p->letter[k]));
            else if (p->letter[k] == '@')
                output_add(out, DTN_WHOLE, number_of(left),
                           first->shape[first->ndim - left]);
            else
                output_add(out, DTN_WHOLE, DTN_WHOLE, 1);
    }
    return out->ndim <= DTENSOR_MAX_DIMS ? 0
         : dtn_op_fail(r->sig->call, r->err, "the result would have %d "
                       "dimensions (expected at most %d)", out->ndim,
                       DTENSOR_MAX_DIMS);
}

/* ------------------------------------------------------------ arguments --- */

/* Operators that have an args.dim need at least one, but for reductions; some
 * need exactly one.
 */
static int args_check(struct reading *r)
{
    struct dtn_signature *sig = r->sig;
    const bool reduces = sig->rule->reads & DTN_ARG_KEEP;
    const bool single = sig->rule->size != DTN_SIZE_SAME ||
                        sig->rule->reads & DTN_ARG_RANGE ||
                        sig->rule->flags & DTN_RULE_ONE;
    int rc = dtn_args_check(sig->call, sig->rule->reads, r->err);

    if (rc != 0 || !(sig->rule->reads & DTN_ARG_DIM))
        return rc;
    rc = signature_dims(sig, sig->in[0].ndim, reduces, r->err);
    if (rc != 0)
        return rc;
    if ((!reduces && sig->ndims == 0) || (single && sig->ndims != 1))
        return dtn_op_fail(sig->call, r->err, "args.dim names %d dimensions "
                           "(expected %s)", sig->call->args.ndims,
                           single ? "one" : "one or more");
    return sig->ndims > 0 ? dtn_result_check(sig, r->err) : 0;
}

/* Rows are made of the letters in this order. */
static void letters_order(struct dtn_signature *sig)
{
    const int first = sig->rule->flags & DTN_RULE_STAR_LAST ? DTN_STARS : 0;

    sig->nletters = 0;
    for (int k = 0; k < DTN_LETTERS; k++) {
        const int letter = (first + k) % DTN_LETTERS;
        bool there = false;

        for (int i = 0; i < sig->nin; i++)
            for (int d = 0; d < sig->in[i].ndim; d++)
                there |= sig->in[i].letter[d] == letter;
        if (there)
            sig->order[sig->nletters++] = (unsigned char)letter;
    }
}

static int inputs_count(const struct dtn_signature *sig, int most,
                        struct dtensor_error *err)
{
    const int least = sig->rule->least ? sig->rule->least : most;
    const bool list = sig->rule->flags & DTN_RULE_LIST;

    if (sig->call->nin >= least && (list || sig->call->nin <= most))
        return 0;
    return dtn_op_fail(sig->call, err, "there are %d inputs (expected %d%s)",
                       sig->call->nin, list || sig->call->nin < least
                       ? least : most, list ? " or more" : "");
}

int dtn_signature_init(struct dtn_signature *sig, const struct dtn_rule *rule,
                       const struct dtensor_op_call *call,
                       struct dtensor_error *err)
{
    struct dtn_patterns patterns;
    struct reading r = { .sig = sig, .patterns = &patterns, .err = err };
    int rc;

    dtn_patterns_read(rule->letters, &patterns);
    *sig = (struct dtn_signature){ .rule = rule, .call = call,
                                   .nsums = patterns.nsums };
    for (int k = 0; k < DTN_LETTERS; k++)
        sig->size[k] = -1;
    rc = inputs_count(sig, patterns.nin, err);
    if (rc != 0)
        return rc;
    sig->nin = call->nin < patterns.nin ? call->nin : patterns.nin;
    sig->nout = patterns.nout;
    if (rule->reads & DTN_ARG_COUNT)   /* more than an operand has is refused */
        r.count = call->args.count < 1 ? 1
                : call->args.count > DTENSOR_MAX_DIMS ? DTENSOR_MAX_DIMS + 1
                : (int)call->args.count;
    sig->in[0].ndim = call->in[0].ndim;
    memcpy(sig->in[0].shape, call->in[0].shape, sizeof sig->in[0].shape);
    rc = args_check(&r);
    if (rc == 0)
        rc = inputs_read(&r);
    for (int i = 0; i < sig->nout && rc == 0; i++)
        rc = output_read(&r, &patterns.out[i], &sig->out[i]);
    if (rc != 0)
        return rc;
    sig->nresults = dtn_result_count(sig);
    letters_order(sig);
    return 0;
}

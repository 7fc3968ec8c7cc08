/* args.c - the arguments of operators: compared, checked, from text
 *
 * A table says name, type and place of each field.  An operator declares which
 * fields it reads, and only these are compared: another field never makes a
 * decision be made anew.
 */
#include "op/args.h"
#include "op/rule.h"
#include "op/words.h"
#include "base/error.h"
#include "base/units.h"
#include "dtensor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- compared --- */

static bool ints_equal(const struct dtensor_op_args *a,
                       const struct dtensor_op_args *b)
{
    return a->ndims == b->ndims && a->ndims >= 0 &&
           a->ndims <= DTENSOR_MAX_DIMS &&
           memcmp(a->dim, b->dim, (size_t)a->ndims * sizeof a->dim[0]) == 0;
}

static bool shapes_equal(const struct dtensor_op_args *a,
                         const struct dtensor_op_args *b)
{
    return a->ndim == b->ndim && a->ndim >= 0 && a->ndim <= DTENSOR_MAX_DIMS &&
           memcmp(a->shape, b->shape,
                  (size_t)a->ndim * sizeof a->shape[0]) == 0;
}

bool dtn_args_equal(const struct dtensor_op_args *a,
                    const struct dtensor_op_args *b, unsigned reads)
{
    return (!(reads & DTN_ARG_DIM) || ints_equal(a, b)) &&
           (!(reads & DTN_ARG_KEEP) || !a->keep == !b->keep) &&
           (!(reads & DTN_ARG_SHAPE) || shapes_equal(a, b)) &&
           (!(reads & DTN_ARG_COUNT) || a->count == b->count) &&
           (!(reads & DTN_ARG_RANGE) || (a->start == b->start &&
                                         a->end == b->end &&
                                         a->step == b->step)) &&
           (!(reads & DTN_ARG_P) || a->p == b->p) &&
           (!(reads & DTN_ARG_VALUE) || (a->value == 0) == (b->value == 0)) &&
           (!(reads & DTN_ARG_DTYPE) || a->dtype == b->dtype) &&
           (!(reads & DTN_ARG_REDUCTION) || a->reduction == b->reduction);
}

/* -------------------------------------------------------------- checked --- */

int dtn_args_check(const struct dtensor_op_call *call, unsigned reads,
                   struct dtensor_error *err)
{
    const struct dtensor_op_args *args = &call->args;

    if (reads & DTN_ARG_REDUCTION &&
        (unsigned)args->reduction > DTENSOR_OP_MEAN)
        return dtn_op_fail(call, err, "args.reduction is %d (see enum "
                           "dtensor_op_reduction)", (int)args->reduction);
    if (reads & DTN_ARG_COUNT && args->count < 0)
        return dtn_op_fail(call, err, "args.count is %" PRId64 " (expected 0 "
                           "or more)", args->count);
    return 0;
}

/* ------------------------------------------------------------ from text --- */

enum args_kind { DIMS, SHAPE, FLAG, INTEGER, NUMBER, DTYPE, REDUCTION };

static const struct args_field {
    const char *name;
    enum args_kind kind;
    size_t at;                    /* in struct dtensor_op_args                */
} fields[] = {
    { "dim", DIMS, 0 },
    { "shape", SHAPE, 0 },
    { "keep", FLAG, offsetof(struct dtensor_op_args, keep) },
    { "count", INTEGER, offsetof(struct dtensor_op_args, count) },
    { "start", INTEGER, offsetof(struct dtensor_op_args, start) },
    { "end", INTEGER, offsetof(struct dtensor_op_args, end) },
    { "step", INTEGER, offsetof(struct dtensor_op_args, step) },
    { "p", NUMBER, offsetof(struct dtensor_op_args, p) },
    { "value", NUMBER, offsetof(struct dtensor_op_args, value) },
    { "causal", FLAG, offsetof(struct dtensor_op_args, causal) },
    { "low", NUMBER, offsetof(struct dtensor_op_args, low) },
    { "high", NUMBER, offsetof(struct dtensor_op_args, high) },
    { "eps", NUMBER, offsetof(struct dtensor_op_args, eps) },
    { "dtype", DTYPE, offsetof(struct dtensor_op_args, dtype) },
    { "reduction", REDUCTION, offsetof(struct dtensor_op_args, reduction) },
};
enum { NFIELDS = sizeof fields / sizeof fields[0] };

/* The next whole number of *textp; false: there is none. */
static bool integer_read(const char **textp, int64_t *valuep)
{
    char *end;

    errno = 0;
    *valuep = strtoll(*textp, &end, 10);
    if (end == *textp || errno)
        return false;
    *textp = end;
    return true;
}

/* "4x6" or "0+1" into at most 8 numbers; how many, or -1. */
static int list_read(const char *text, char between,
                     int64_t number[DTENSOR_MAX_DIMS])
{
    int n = 0;

    while (*text) {
        if (n == DTENSOR_MAX_DIMS || !integer_read(&text, &number[n++]) ||
            (*text && *text != between) || (*text && !text[1]))
            return -1;
        text += *text == between;
    }
    return n;
}

static bool dims_read(struct dtensor_op_args *args, const char *value)
{
    int64_t number[DTENSOR_MAX_DIMS];
    const int n = list_read(value, '+', number);

    for (int i = 0; i < n; i++) {
        if (number[i] < -DTENSOR_MAX_DIMS || number[i] > DTENSOR_MAX_DIMS)
            return false;
        args->dim[i] = (int)number[i];
    }
    args->ndims = n;
    return n >= 0;
}

static bool reduction_read(struct dtensor_op_args *args, const char *value)
{
    static const char *const words[] = {
        [DTENSOR_OP_NONE] = "none", [DTENSOR_OP_SUM] = "sum",
        [DTENSOR_OP_MEAN] = "mean"
    };

    for (int i = 0; i <= DTENSOR_OP_MEAN; i++)
        if (strcmp(words[i], value) == 0) {
            args->reduction = (enum dtensor_op_reduction)i;
            return true;
        }
    return false;
}

static bool field_read(struct dtensor_op_args *args,
                       const struct args_field *field, const char *value)
{
    char *at = (char *)args + field->at, *end;
    int64_t whole;

    switch (field->kind) {
    case DIMS:
        return dims_read(args, value);
    case SHAPE:
        args->ndim = list_read(value, 'x', args->shape);
        return args->ndim >= 0;
    case FLAG:
        *(int *)at = *value == '1';
        return (*value == '0' || *value == '1') && !value[1];
    case INTEGER:
        if (!integer_read(&value, &whole) || *value)
            return false;
        memcpy(at, &whole, sizeof whole);
        return true;
    case NUMBER:
        *(double *)at = dtn_parse_real(value, &end);
        return end != value && !*end;
    case DTYPE:
        return dtensor_dtype_parse(value, &args->dtype, NULL) == 0;
    case REDUCTION:
    default:
        return reduction_read(args, value);
    }
}

static const char *field_expects(enum args_kind kind)
{
    static const char *const words[] = {
        [DIMS] = "dimensions such as 0+1", [SHAPE] = "sizes such as 4x6",
        [FLAG] = "0 or 1", [INTEGER] = "a whole number",
        [NUMBER] = "a number", [DTYPE] = "a dtype such as f32",
        [REDUCTION] = "none, sum or mean"
    };

    return words[kind];
}

static int args_unknown(const char *word, struct dtensor_error *err)
{
    const char *known[NFIELDS + 1] = { NULL };
    char advice[200];

    for (int i = 0; i < NFIELDS; i++)
        known[i] = fields[i].name;
    return dtn_fail(err, DTENSOR_EINVAL, "op: no argument \"%s\" (%s)", word,
                    dtensor_advise(word, known, NULL, advice, sizeof advice));
}

/* "keep=1", cut to len letters. */
static int args_word(struct dtensor_op_args *args, const char *text, size_t len,
                     struct dtensor_error *err)
{
    char word[128], *value;

    if (len >= sizeof word)
        return dtn_fail(err, DTENSOR_EINVAL, "op: argument \"%.40s...\" has "
                        "%zu letters (expected at most %zu)", text, len,
                        sizeof word - 1);
    memcpy(word, text, len);
    word[len] = '\0';
    value = strchr(word, '=');
    if (!value)
        return dtn_fail(err, DTENSOR_EINVAL, "op: argument \"%s\" has no value "
                        "(write it as name=value)", word);
    *value++ = '\0';
    for (int i = 0; i < NFIELDS; i++) {
        if (strcmp(fields[i].name, word) != 0)
            continue;
        return field_read(args, &fields[i], value) ? 0
             : dtn_fail(err, DTENSOR_EINVAL, "op: argument %s=%s (expected %s)",
                        word, value, field_expects(fields[i].kind));
    }
    return args_unknown(word, err);
}

int dtensor_op_args_parse(const char *text, struct dtensor_op_args *args,
                          struct dtensor_error *err)
{
    struct dtensor_op_args read = { .ndims = 0 };
    int rc = 0;

    if (!text || !args)
        return dtn_fail(err, DTENSOR_EINVAL, "op: %s is NULL",
                        text ? "args" : "text");
    while (*text && rc == 0) {
        const size_t len = strcspn(text, ",");

        rc = args_word(&read, text, len, err);
        text += len + (text[len] == ',');
    }
    if (rc == 0)
        *args = read;
    return rc;
}

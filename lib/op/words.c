/* words.c - calls in words */
#include "op/words.h"
#include "base/error.h"
#include "dtensor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

char *dtn_shape_words(int ndim, const int64_t shape[], char *buf, size_t size)
{
    size_t at = 0;

    snprintf(buf, size, "scalar");
    for (int d = 0; d < ndim && at < size; d++)
        at += (size_t)snprintf(buf + at, size - at, "%s%" PRId64,
                               d ? "x" : "", shape[d]);
    return buf;
}

static size_t words_input(const struct dtensor_spec *in, char *buf,
                          size_t size)
{
    char shape[170], places[200];

    dtn_shape_words(in->ndim, in->shape, shape, sizeof shape);
    dtensor_placements_format(in->mesh, in->placement, places, sizeof places);
    return (size_t)snprintf(buf, size, "%s %s %s", shape,
                            dtensor_dtype_name(in->dtype), places);
}

/* More than four inputs are not listed. */
char *dtn_op_words(const struct dtensor_op_call *call, char *buf, size_t size)
{
    size_t at = (size_t)snprintf(buf, size, "%s", call->op);

    for (int i = 0; i < call->nin && i < 4 && at < size; i++) {
        at += (size_t)snprintf(buf + at, size - at, i ? ", " : " of ");
        if (at < size)
            at += words_input(&call->in[i], buf + at, size - at);
    }
    if (call->nin > 4 && at < size)
        snprintf(buf + at, size - at, ", and %d more", call->nin - 4);
    return buf;
}

int dtn_op_fail(const struct dtensor_op_call *call, struct dtensor_error *err,
                const char *fmt, ...)
{
    char what[280], why[280];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return dtn_fail(err, DTENSOR_EINVAL, "%s: %s",
                    dtn_op_words(call, what, sizeof what), why);
}

int dtn_op_dim(const struct dtensor_op_call *call, int dim, int n, int *dimp,
               struct dtensor_error *err)
{
    *dimp = dim < 0 ? dim + n : dim;
    if (*dimp >= 0 && *dimp < n)
        return 0;
    if (n == 0)
        return dtn_op_fail(call, err, "there is no dimension %d (the input has "
                           "none)", dim);
    return dtn_op_fail(call, err, "there is no dimension %d (expected %d to "
                       "%d)", dim, -n, n - 1);
}

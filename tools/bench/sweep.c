/* sweep.c - options to the list of cases
 *
 * For each test, type and reduction asked for, one case per size from -b to
 * -e: 8, 32, 128 with -f 4.  Sizes a test cannot have are rounded (an
 * all-gather of f32 over 4 ranks has at least 16 bytes) and then appear once.
 */
#include "tools/bench/job.h"
#include "tools/bench/options.h"
#include "tools/bench/pattern.h"
#include "tools/bench/read.h"
#include "tools/bench/session.h"
#include "tools/bench/sweep.h"
#include "tools/bench/tests.h"
#include "tools/bench/value.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_MAX (1 << 20)       /* rows, and sizes of one test              */

struct sweep {
    const struct bench *b;
    struct bench_case *cases;     /* NULL while counting                      */
    int n;
};

/* The largest square that fits. */
static int64_t sweep_side(uint64_t elems)
{
    int64_t side = 1, step = INT64_C(1) << 30;

    for (; step > 0; step /= 2)
        if ((uint64_t)(side + step) <= elems / (uint64_t)(side + step))
            side += step;
    return side;
}

static void sweep_square(struct bench_case *c, uint64_t bytes, size_t elem)
{
    c->ndim = 2;
    c->shape[0] = c->shape[1] = sweep_side(bytes / elem);
    c->count = (uint64_t)(c->shape[0] * c->shape[1]);
    c->bytes = c->count * elem;
}

/* false: more bytes than a computer has. */
static bool sweep_shape(struct bench_case *c, const char *text, size_t elem)
{
    uint64_t bytes = elem;

    c->ndim = read_shape(text, c->shape);
    for (int d = 0; d < c->ndim; d++)
        if (c->shape[d] == 0)
            bytes = 0;
    for (int d = 0; d < c->ndim && bytes; d++) {
        if ((uint64_t)c->shape[d] > (UINT64_C(1) << 50) / bytes)
            return false;
        bytes *= (uint64_t)c->shape[d];
    }
    c->bytes = bytes;
    c->count = bytes / elem;
    return true;
}

static void sweep_add(struct sweep *sweep, const struct bench_case *c)
{
    const int times = sweep->b->opt->repro &&
        c->test->flags & TEST_REDUCES ? 2 : 1;

    for (int i = 0; i < times; i++, sweep->n++)
        if (sweep->cases) {
            sweep->cases[sweep->n] = *c;
            sweep->cases[sweep->n].repro = i == 1;
        }
}

/* The size after this one, which is at most `max`; max + 1 is enough. */
static int64_t sweep_next(const struct bench_options *opt, int64_t bytes,
                          int64_t max)
{
    if (opt->step_bytes)
        return bytes + opt->step_bytes;
    return bytes > max / opt->step_factor ? max + 1
                                          : bytes * opt->step_factor;
}

/* All sizes of a test, type and reduction. */
static int sweep_sizes(struct sweep *sweep, struct bench_case *c,
                       struct dtensor_error *err)
{
    const struct bench_options *opt = sweep->b->opt;
    size_t elem = dtensor_dtype_size(c->dtype);
    bool square = c->test->factor == NULL;
    uint64_t last = UINT64_MAX;
    int sizes = 0;

    if (square && opt->shape) {
        if (!sweep_shape(c, opt->shape, elem))
            return session_fail(err, DTENSOR_EINVAL, "--shape %s: too large",
                                opt->shape);
        sweep_add(sweep, c);
        return 0;
    }
    for (int64_t bytes = opt->loop ? opt->max_bytes : opt->min_bytes;
         bytes <= opt->max_bytes;
         bytes = sweep_next(opt, bytes, opt->max_bytes)) {
        if (sweep->n >= SWEEP_MAX || sizes++ >= SWEEP_MAX)
            return session_fail(err, DTENSOR_EINVAL, "%s: over %d rows (raise "
                                "-i)", c->test->name, SWEEP_MAX);
        if (square)
            sweep_square(c, (uint64_t)bytes, elem);
        else
            test_size(c->test, (uint64_t)bytes, elem, sweep->b->group, c);
        if (c->bytes != last)
            sweep_add(sweep, c);
        last = c->bytes;
    }
    return 0;
}

static int sweep_ops(struct sweep *sweep, struct bench_case *c,
                     struct dtensor_error *err)
{
    int64_t asked = sweep->b->opt->redop;
    int rc = 0;

    c->redop = PATTERN_NO_OP;
    if (!(c->test->flags & TEST_REDUCES))
        return sweep_sizes(sweep, c, err);
    for (int op = 0; op < DTENSOR_NREDOPS && rc == 0; op++) {
        c->redop = (enum dtensor_redop)op;
        if ((asked == op || asked == DTENSOR_NREDOPS) &&
            value_op_fits(c->dtype, c->redop))
            rc = sweep_sizes(sweep, c, err);
    }
    return rc;
}

static int sweep_tests(struct sweep *sweep, struct dtensor_error *err)
{
    const struct bench_options *opt = sweep->b->opt;
    struct bench_case c;
    int rc = 0;

    sweep->n = 0;
    for (int t = 0; t < opt->ntests; t++) {
        for (int type = 0; type < DTENSOR_NDTYPES && rc == 0; type++) {
            memset(&c, 0, sizeof c);
            c.test = opt->test[t];
            c.dtype = (enum dtensor_dtype)type;
            if (opt->dtype == type || opt->dtype == DTENSOR_NDTYPES)
                rc = sweep_ops(sweep, &c, err);
        }
    }
    return rc;
}

int sweep_make(const struct bench *b, struct bench_case **casesp, int *np,
               struct dtensor_error *err)
{
    struct sweep sweep = { b, NULL, 0 };
    int rc = sweep_tests(&sweep, err);

    if (rc)
        return rc;
    sweep.cases = calloc((size_t)sweep.n + 1, sizeof sweep.cases[0]);
    if (!sweep.cases)
        return session_fail(err, DTENSOR_ENOMEM, "no memory for %d cases",
                            sweep.n);
    sweep_tests(&sweep, err);
    *casesp = sweep.cases;
    *np = sweep.n;
    return 0;
}

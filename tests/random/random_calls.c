/* random_calls.c - every random call by number */
#include "tests/random/random_calls.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

const char *const names[NCALLS] = {
    "uniform", "normal", "log_normal", "exponential", "trunc_normal",
    "bernoulli", "integers", "bits", "rand", "randn", "randint", "randperm",
    "dropout"
};
const struct numbers fine[NCALLS] = {
    [UNIFORM] = { .p = { -1, 1 } }, [NORMAL] = { .p = { 1, 2 } },
    [LOG_NORMAL] = { .p = { 0, 1 } }, [EXPONENTIAL] = { .p = { 2 } },
    [TRUNC_NORMAL] = { .p = { 0, 1, -1, 2 } }, [BERNOULLI] = { .p = { 0.5 } },
    [INTEGERS] = { .to = 9 }, [RANDINT] = { .to = 9 },
    [DROPOUT] = { .p = { 0.5 } }
};

int call_it(enum call call, const struct numbers *x, struct dtensor *t,
            struct dtensor_generator *gen, struct dtensor **outp,
            struct dtensor_error *err)
{
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    const double *p = x->p;

    switch (call) {
    case UNIFORM:      return dtensor_fill_uniform(t, p[0], p[1], gen, err);
    case NORMAL:       return dtensor_fill_normal(t, p[0], p[1], gen, err);
    case LOG_NORMAL:   return dtensor_fill_log_normal(t, p[0], p[1], gen, err);
    case EXPONENTIAL:  return dtensor_fill_exponential(t, p[0], gen, err);
    case TRUNC_NORMAL: return dtensor_fill_trunc_normal(t, p[0], p[1], p[2],
                                                        p[3], gen, err);
    case BERNOULLI:    return dtensor_fill_bernoulli(t, p[0], gen, err);
    case INTEGERS:     return dtensor_fill_integers(t, x->from, x->to, gen,
                                                    err);
    case BITS:         return dtensor_fill_bits(t, gen, err);
    case RAND:         return dtensor_rand(spec, gen, outp, err);
    case RANDN:        return dtensor_randn(spec, gen, outp, err);
    case RANDINT:      return dtensor_randint(spec, x->from, x->to, gen, outp,
                                              err);
    case RANDPERM:     return dtensor_randperm(spec, gen, outp, err);
    case DROPOUT:      return dtensor_dropout(t, p[0], gen, outp, NULL, err);
    case NCALLS:       break;
    }
    return DTENSOR_EINVAL;
}

enum dtensor_dtype dtype_of(enum call call)
{
    return call == BITS || call == RANDPERM ? DTENSOR_I32 : DTENSOR_F32;
}

struct dtensor *make_tensor(struct job *job, const char *placements,
                            enum dtensor_dtype dtype)
{
    struct dtensor_spec spec = { .dtype = dtype, .ndim = 1, .shape = { 12 } };
    struct dtensor *t = NULL;

    good(dtensor_mesh_find(job->ctx, "world", &spec.mesh, &job->err));
    good(dtensor_placements_parse(spec.mesh, placements, 1, spec.placement,
                                  &job->err));
    if (strchr(placements, 'P'))
        good(dtensor_zeros(&spec, &t, &job->err));
    else
        good(dtensor_full(&spec, dtype == DTENSOR_BOOL ? 1 : 3, &t, &job->err));
    return t;
}

struct dtensor_random_rule rule_of(int tracker, int fill)
{
    return (struct dtensor_random_rule){
        .tracker = (enum dtensor_tracker)tracker,
        .fill = (enum dtensor_fill)fill, .sms = 1, .threads_per_sm = 256,
        .parallel_dims = "tp"
    };
}

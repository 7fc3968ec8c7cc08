/* random.c - tensors of random numbers
 *
 * Every call has the same four steps.  It checks the parameters of the
 * distribution; the tracker finds the numbers of this rank; the fill writes
 * them; at the end the generator gets its new offset.  Example: f32[4,6] as
 * S(1) on 2 ranks with the tracker `global`.  Rank 1 fills four runs of three,
 * from elements 3, 9, 15 and 21 of the whole, and every rank's offset grows by
 * 24.
 */
#include "base/dtype.h"
#include "base/error.h"
#include "cluster/seed.h"
#include "device/memory.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "random/dist.h"
#include "random/fill.h"
#include "random/generator.h"
#include "random/permute.h"
#include "random/tracker.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdbool.h>

/* The first mesh dimension along which the tensor is replicated and the file's
 * seeds differ, so that each rank would make its own "replica"; or -1.
 */
static int random_torn(const struct dtensor_spec *spec,
                       const struct dtensor_generator *gen)
{
    const struct dtensor_mesh *mesh = spec->mesh;

    if (!gen->from_file || gen->rule.distinct_replicas)
        return -1;
    for (int m = 0; m < mesh->ndim; m++)
        if (mesh->distinct >> m & 1 &&
            spec->placement[m].kind == DTENSOR_REPLICATE)
            return m;
    return -1;
}

/* Is this rank outside a mesh whose ranks return an error?  Then its generator
 * does not advance either.
 */
static bool random_watches(const struct dtensor_spec *spec,
                           const struct dtensor_generator *gen)
{
    return spec->mesh->group.me < 0 && random_torn(spec, gen) >= 0;
}

int dtn_random_check(const char *what, const struct dtensor_spec *spec,
                     const struct dtensor_generator *gen,
                     struct dtensor_error *err)
{
    int rc = dtn_refuse_partial(what, spec, err), dim;
    char text[400], dims[120];

    dim = rc == 0 ? random_torn(spec, gen) : -1;
    if (dim < 0 || spec->mesh->group.me < 0)
        return rc;
    return dtn_fail(
        err, DTENSOR_EINVAL,
        "%s: %.200s: replicas along mesh "
        "dimension %d%s%s would differ, since [seed] distinct = %s "
        "gives their ranks different seeds (take the dimension out "
        "of distinct, or call dtensor_manual_seed(), or set "
        "distinct_replicas in the generator's rule)",
        what, dtn_spec_format(spec, text, sizeof text), dim,
        spec->mesh->dim_name[dim][0] ? " " : "", spec->mesh->dim_name[dim],
        dtn_seed_dims(spec->mesh->ctx->world.cluster, dims, sizeof dims));
}

int dtn_random_fill(const char *what, struct dtensor *t, struct dtn_dist *dist,
                    struct dtensor_generator *gen, struct dtensor_error *err)
{
    const int me = t->spec.mesh->group.me;
    struct dtn_stream_part draw;
    struct dtn_random_stream stream;
    struct dtn_fill_how how;
    int rc;

    gen = dtn_generator_of(t->spec.mesh, gen);
    rc = dtn_random_check(what, &t->spec, gen, err);
    if (rc != 0 || random_watches(&t->spec, gen))
        return rc;
    dtn_fill_adapt(&gen->rule, dist);
    rc = dtn_stream_part_of(gen, dist, &t->spec, me, &draw, err);
    if (rc != 0)
        return rc;
    dtn_tensor_renew(t);
    stream =
        dtn_random_stream_of(&gen->rule, draw.seed, draw.offset, draw.numel);
    how = (struct dtn_fill_how){ &stream, dist };
    if (draw.global)
        rc = dtn_tensor_make(t, &dtn_fill_formula, &how, err);
    else if (t->bytes > 0)
        rc = dtn_buffer_make(t->spec.mesh->ctx, &dtn_fill_formula,
                             &(struct dtn_elements){ .how = &how,
                                 .count = (size_t)draw.numel,
                                 .out_bytes = dtensor_dtype_size(dist->dtype) },
                             t->local, NULL, err);
    if (rc == 0)
        gen->offset = draw.after;
    return rc;
}

/* ------------------------------------------------------------- in place --- */

int dtensor_fill_uniform(struct dtensor *t, double from, double to,
                         struct dtensor_generator *gen,
                         struct dtensor_error *err)
{
    struct dtn_dist dist;
    int rc = dtn_dist_uniform(&dist, t->spec.dtype, from, to, err);

    return rc != 0 ? rc : dtn_random_fill("uniform", t, &dist, gen, err);
}

int dtensor_fill_normal(struct dtensor *t, double mean, double std,
                        struct dtensor_generator *gen,
                        struct dtensor_error *err)
{
    struct dtn_dist dist;
    int rc = dtn_dist_normal(&dist, DTN_NORMAL, t->spec.dtype, mean, std, err);

    return rc != 0 ? rc : dtn_random_fill("normal", t, &dist, gen, err);
}

int dtensor_fill_log_normal(struct dtensor *t, double mean, double std,
                            struct dtensor_generator *gen,
                            struct dtensor_error *err)
{
    struct dtn_dist dist;
    int rc = dtn_dist_normal(&dist, DTN_LOG_NORMAL, t->spec.dtype, mean, std,
                             err);

    return rc != 0 ? rc : dtn_random_fill("log_normal", t, &dist, gen, err);
}

int dtensor_fill_exponential(struct dtensor *t, double lambda,
                             struct dtensor_generator *gen,
                             struct dtensor_error *err)
{
    struct dtn_dist dist;
    int rc = dtn_dist_exponential(&dist, t->spec.dtype, lambda, err);

    return rc != 0 ? rc : dtn_random_fill("exponential", t, &dist, gen, err);
}

int dtensor_fill_trunc_normal(struct dtensor *t, double mean, double std,
                              double from, double to,
                              struct dtensor_generator *gen,
                              struct dtensor_error *err)
{
    const double param[] = { mean, std, from, to };
    struct dtn_dist dist;
    int rc = dtn_dist_trunc_normal(&dist, t->spec.dtype, param, err);

    return rc != 0 ? rc : dtn_random_fill("trunc_normal", t, &dist, gen, err);
}

int dtensor_fill_bernoulli(struct dtensor *t, double p,
                           struct dtensor_generator *gen,
                           struct dtensor_error *err)
{
    struct dtn_dist dist;
    int rc = dtn_dist_bernoulli(&dist, t->spec.dtype, p, err);

    return rc != 0 ? rc : dtn_random_fill("bernoulli", t, &dist, gen, err);
}

int dtensor_fill_integers(struct dtensor *t, int64_t from, int64_t to,
                          struct dtensor_generator *gen,
                          struct dtensor_error *err)
{
    struct dtn_dist dist;
    int rc = dtn_dist_integers(&dist, t->spec.dtype, from, to, err);

    return rc != 0 ? rc : dtn_random_fill("integers", t, &dist, gen, err);
}

int dtensor_fill_bits(struct dtensor *t, struct dtensor_generator *gen,
                      struct dtensor_error *err)
{
    struct dtn_dist dist;
    int rc = dtn_dist_bits(&dist, t->spec.dtype, err);

    return rc != 0 ? rc : dtn_random_fill("bits", t, &dist, gen, err);
}

/* ------------------------------------------------------------ factories --- */

int dtensor_rand(const struct dtensor_spec *spec,
                 struct dtensor_generator *gen, struct dtensor **tp,
                 struct dtensor_error *err)
{
    struct dtensor *made = NULL;
    int rc = dtn_tensor_create(spec, &made, err);

    if (rc == 0)
        rc = dtensor_fill_uniform(made, 0, 1, gen, err);
    return dtn_tensor_return(made, rc, tp);
}

int dtensor_randn(const struct dtensor_spec *spec,
                  struct dtensor_generator *gen, struct dtensor **tp,
                  struct dtensor_error *err)
{
    struct dtensor *made = NULL;
    int rc = dtn_tensor_create(spec, &made, err);

    if (rc == 0)
        rc = dtensor_fill_normal(made, 0, 1, gen, err);
    return dtn_tensor_return(made, rc, tp);
}

int dtensor_randint(const struct dtensor_spec *spec, int64_t from, int64_t to,
                    struct dtensor_generator *gen, struct dtensor **tp,
                    struct dtensor_error *err)
{
    struct dtensor *made = NULL;
    int rc = dtn_tensor_create(spec, &made, err);

    if (rc == 0)
        rc = dtensor_fill_integers(made, from, to, gen, err);
    return dtn_tensor_return(made, rc, tp);
}

/* --------------------------------------------------------- permutations --- */

static int randperm_check(const struct dtensor_spec *spec,
                          struct dtensor_error *err)
{
    struct dtn_dist dist;

    if (spec->ndim != 1)
        return dtn_fail(err, DTENSOR_EINVAL, "randperm: %d dimensions; "
                        "expected 1", spec->ndim);
    if (spec->shape[0] == 0)
        return 0;
    return dtn_dist_integers(&dist, spec->dtype, 0, spec->shape[0], err);
}

struct randperm {
    struct dtn_permute permute;
    enum dtensor_dtype dtype;
};

static void randperm_make(const void *how, int64_t first, size_t count,
                          void *out, const void *const in[])
{
    const struct randperm *perm = how;
    const bool floats = dtn_dtype_kind(perm->dtype) == DTN_DTYPE_FLOAT;

    for (size_t i = 0; i < count; i++) {
        const int64_t value = dtn_permute_at(&perm->permute,
                                             first + (int64_t)i);

        if (floats)
            dtn_store(perm->dtype, out, i, (double)value);
        else
            dtn_store_int(perm->dtype, out, i, value);
    }
}

static const struct dtn_formula randperm_formula = { randperm_make, NULL, 0 };

int dtensor_randperm(const struct dtensor_spec *spec,
                     struct dtensor_generator *gen, struct dtensor **tp,
                     struct dtensor_error *err)
{
    struct randperm perm = { .dtype = spec->dtype };
    struct dtensor *made = NULL;
    int rc = dtn_tensor_create(spec, &made, err);

    if (rc == 0)
        rc = randperm_check(spec, err);
    if (rc == 0) {
        gen = dtn_generator_of(spec->mesh, gen);
        rc = dtn_random_check("randperm", spec, gen, err);
    }
    if (rc != 0 || random_watches(spec, gen))
        return dtn_tensor_return(made, rc, tp);
    if (gen->offset > INT64_MAX - 7)
        rc = dtn_fail(err, DTENSOR_EINVAL, "randperm: offset %lld of the "
                      "generator has no room for 4 more numbers below 2^63 "
                      "(set a new seed)", (long long)gen->offset);
    else
        rc = dtn_permute_init(&perm.permute, gen->seed, gen->offset,
                              spec->shape[0], err);
    if (rc == 0) {
        rc = dtn_tensor_make(made, &randperm_formula, &perm, err);
        dtn_permute_fini(&perm.permute);
    }
    if (rc == 0)
        gen->offset += 4;
    return dtn_tensor_return(made, rc, tp);
}

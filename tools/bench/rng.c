/* rng.c - dtensor-bench rng: random numbers, printed or timed
 *
 * Values are printed with all their digits - nine for an f32, seventeen for an
 * f64 - so two programs that agree print the same text: seed 0, fill cuda,
 * uniform begins with 0.399046481.  If a mesh is requested, its ranks are
 * started here, and only the requested rank prints.
 *
 * The speed is compared with memset() of the same buffer.  Both run equally
 * often and in turn, and the best time of each counts.
 */
#include "tools/bench/bench.h"
#include "tools/bench/launch.h"
#include "tools/bench/options.h"
#include "tools/bench/rng.h"
#include "tools/bench/session.h"
#include "tools/bench/value.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct rng {
    const struct rng_options *opt;
    struct dtensor_ctx *ctx;
    struct dtensor_generator *gen;
    struct dtensor_spec spec;
    struct dtensor *t;
};

static int rng_state(struct rng *rng, struct dtensor_error *err)
{
    unsigned char state[DTENSOR_STATE_BYTES];

    for (int i = 0; i < 8; i++) {
        state[i] = (unsigned char)(rng->opt->seed >> 8 * i);
        state[8 + i] = (unsigned char)((uint64_t)rng->opt->offset >> 8 * i);
    }
    return dtensor_generator_set_state(rng->gen, state, sizeof state, err);
}

static int rng_fill(struct rng *rng, const struct rng_dist *dist,
                    const double p[4], const int64_t whole[4],
                    struct dtensor_error *err)
{
    struct dtensor *t = rng->t;

    switch (dist - rng_dists) {
    case 0: return dtensor_fill_uniform(t, p[0], p[1], rng->gen, err);
    case 1: return dtensor_fill_normal(t, p[0], p[1], rng->gen, err);
    case 2: return dtensor_fill_log_normal(t, p[0], p[1], rng->gen, err);
    case 3: return dtensor_fill_exponential(t, p[0], rng->gen, err);
    case 4: return dtensor_fill_bernoulli(t, p[0], rng->gen, err);
    case 5: return dtensor_fill_trunc_normal(t, p[0], p[1], p[2], p[3],
                                             rng->gen, err);
    case 6: return dtensor_fill_integers(t, whole[0], whole[1], rng->gen, err);
    default: return dtensor_fill_bits(t, rng->gen, err);
    }
}

/* ---------------------------------------------------------------- print --- */

static void print_value(enum dtensor_dtype dtype, const void *array, size_t i)
{
    switch (dtype) {
    case DTENSOR_F64:
        printf("%.17g\n", ((const double *)array)[i]);
        break;
    case DTENSOR_I64:
        printf("%lld\n", (long long)((const int64_t *)array)[i]);
        break;
    case DTENSOR_U64:
        printf("%llu\n", (unsigned long long)((const uint64_t *)array)[i]);
        break;
    case DTENSOR_I32:
    case DTENSOR_U32:                      /* of ten digits                  */
        printf("%.0f\n", value_load(dtype, array, i));
        break;
    default:
        printf("%.9g\n", value_load(dtype, array, i));
    }
}

static int rng_print(struct rng *rng, struct dtensor_error *err)
{
    const struct rng_options *opt = rng->opt;
    size_t n;
    char places[200];
    int rc = rng_fill(rng, opt->dist, opt->param, opt->whole, err);

    if (rc != 0 || dtensor_rank(rng->ctx) != opt->rank)
        return rc;
    n = dtensor_local_bytes(rng->t) / dtensor_dtype_size(opt->dtype);
    dtensor_placements_format(rng->spec.mesh, rng->spec.placement, places,
                              sizeof places);
    printf("# %s %s as %s, rank %lld of %d, tracker %s, fill %s, seed %llu, "
           "offset %lld, then %lld\n", opt->dist->name,
           dtensor_dtype_name(opt->dtype), places, (long long)opt->rank,
           opt->nranks, rng_tracker_word(opt->rule.tracker),
           rng_fill_word(opt->rule.fill), (unsigned long long)opt->seed,
           (long long)opt->offset,
           (long long)dtensor_generator_offset(rng->gen));
    for (size_t i = 0; i < n && i < (size_t)opt->print; i++)
        print_value(opt->dtype, dtensor_to_local(rng->t), i);
    return 0;
}

/* ---------------------------------------------------------------- speed --- */

/* Best times of the fill and of memset(), in ns. */
static int rng_time(struct rng *rng, const struct rng_dist *dist,
                    int64_t best[2], struct dtensor_error *err)
{
    const bool asked = dist == rng->opt->dist;
    const double *param = asked ? rng->opt->param : dist->param;
    const int64_t usual[4] = { (int64_t)dist->param[0],
                               (int64_t)dist->param[1], 0, 0 };
    int64_t before, spent;
    int rc = 0;

    best[0] = best[1] = INT64_MAX;
    for (int64_t i = 0; i < rng->opt->iters && rc == 0; i++) {
        before = session_now_ns();
        memset(dtensor_to_local(rng->t), (int)i, dtensor_local_bytes(rng->t));
        spent = session_now_ns() - before;
        best[1] = spent < best[1] ? spent : best[1];
        before = session_now_ns();
        rc = rng_fill(rng, dist, param, asked ? rng->opt->whole : usual, err);
        spent = session_now_ns() - before;
        best[0] = spent < best[0] ? spent : best[0];
    }
    return rc;
}

static int rng_measure(struct rng *rng, struct dtensor_error *err)
{
    const struct rng_options *opt = rng->opt;
    const double bytes = (double)dtensor_local_bytes(rng->t);
    int64_t best[2];
    int rc = 0;

    if (dtensor_rank(rng->ctx) == 0)
        printf("# %.0f bytes of %s, tracker %s, fill %s; GB = 10^9 bytes, best "
               "of %lld\n# %-12s %8s %8s %7s\n", bytes,
               dtensor_dtype_name(opt->dtype),
               rng_tracker_word(opt->rule.tracker),
               rng_fill_word(opt->rule.fill), (long long)opt->iters, "dist",
               "GB/s", "memset", "ratio");
    for (int i = 0; i < rng_ndists && rc == 0; i++) {
        const struct rng_dist *dist = &rng_dists[i];

        if (opt->only && dist != opt->dist)
            continue;
        rc = rng_time(rng, dist, best, err);
        if (rc == DTENSOR_EINVAL && !opt->only) {
            rc = 0;                        /* not of this type               */
            continue;
        }
        if (rc == 0 && dtensor_rank(rng->ctx) == 0)
            printf("  %-12s %8.2f %8.2f %7.2f\n", dist->name,
                   bytes / (double)best[0], bytes / (double)best[1],
                   (double)best[1] / (double)best[0]);
    }
    return rc;
}

/* ------------------------------------------------------------------ all --- */

static int rng_spec(struct rng *rng, struct dtensor_error *err)
{
    const struct rng_options *opt = rng->opt;
    struct dtensor_spec *spec = &rng->spec;
    char places[64] = "S(0)";
    int rc;

    for (int m = 1; m < opt->mesh_ndim; m++)
        strcat(places, ",R");
    *spec = (struct dtensor_spec){ .dtype = opt->dtype, .ndim = opt->ndim };
    memcpy(spec->shape, opt->sizes, sizeof spec->shape);
    rc = dtensor_mesh_create(rng->ctx, opt->mesh_ndim, opt->mesh_size,
                             opt->mesh_names[0] ? opt->mesh_names : NULL, NULL,
                             &spec->mesh, err);
    if (rc == 0)
        rc = dtensor_placements_parse(spec->mesh, opt->placements ?
                                      opt->placements : places, opt->ndim,
                                      spec->placement, err);
    return rc ? rc : dtensor_zeros(spec, &rng->t, err);
}

static int rng_rank(const struct rng_options *opt, struct dtensor_error *err)
{
    struct rng rng = { .opt = opt };
    int rc = dtensor_init(NULL, &rng.ctx, err);

    if (rc == 0)
        rc = dtensor_generator_create(opt->seed, &rng.gen, err);
    if (rc == 0)
        rc = dtensor_generator_set_rule(rng.gen, &opt->rule, err);
    if (rc == 0)
        rc = rng_state(&rng, err);
    if (rc == 0)
        rc = rng_spec(&rng, err);
    if (rc == 0)
        rc = opt->print ? rng_print(&rng, err) : rng_measure(&rng, err);
    dtensor_destroy(rng.t);
    dtensor_generator_destroy(rng.gen);
    dtensor_fini(rng.ctx);
    return rc;
}

/* Ranks are started here unless somebody else has. */
static bool rng_is_launched(void)
{
    return getenv("DTN_RANK") || getenv("SLURM_STEP_ID");
}

int rng_main(int argc, char *argv[])
{
    struct rng_options opt;
    struct dtensor_error err = { 0 };
    char why[400];
    int code, rc;

    if (!rng_options_parse(&opt, argc, argv, why, sizeof why)) {
        fprintf(stderr, "dtensor-bench rng: %s\n"
                "Try 'dtensor-bench rng --help' for more information.\n", why);
        return BENCH_USAGE;
    }
    if (opt.help) {
        rng_options_help(stdout);
        return BENCH_OK;
    }
    if (opt.nranks > 1 && !rng_is_launched() &&
        launch_local(opt.nranks, &code) < 0)
        return code;
    rc = rng_rank(&opt, &err);
    if (rc != 0)
        fprintf(stderr, "dtensor-bench rng: %s\n", err.text);
    return session_exit_code(rc);
}

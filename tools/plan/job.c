/* job.c - from the command line to a context, two specs and a plan
 *
 * "--mesh 2x4" is a cluster of 8 ranks made up on the spot; with --cluster it
 * is laid over the first 8 ranks of the file, where "2x4" could also be the
 * name of one of its meshes.
 */
#include "tools/plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const plan_routes[DTENSOR_NROUTES + 1] = {
    [DTENSOR_ROUTE_AUTO] = "auto", [DTENSOR_ROUTE_DIRECT] = "direct",
    [DTENSOR_ROUTE_MERGED] = "merged", [DTENSOR_ROUTE_MIN_COST] = "min-cost",
    [DTENSOR_ROUTE_GREEDY] = "greedy",
};

/* ------------------------------------------------------------- numbers --- */

int plan_numbers(const char *text, int64_t number[DTENSOR_MAX_DIMS])
{
    int n = 0;
    char *end;

    while (*text) {
        if (n == DTENSOR_MAX_DIMS || *text < '0' || *text > '9')
            return -1;
        errno = 0;
        number[n++] = strtoll(text, &end, 10);
        if (errno || (*end && *end != 'x') || (*end == 'x' && !end[1]))
            return -1;
        text = *end ? end + 1 : end;
    }
    return n;
}

/* "512K" is 524288. */
static bool job_size(const char *text, uint64_t *sizep)
{
    static const char suffixes[] = "KMGT";
    const char *suffix;
    char *end;
    int shift = 0;

    errno = 0;
    *sizep = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || errno)
        return false;
    if (*end) {
        suffix = strchr(suffixes, *end);
        if (!suffix || end[1])
            return false;
        shift = 10 * (int)(suffix - suffixes + 1);
    }
    if (*sizep > UINT64_MAX >> shift)
        return false;
    *sizep <<= shift;
    return true;
}

/* ---------------------------------------------------------------- mesh --- */

static int job_say(const struct dtensor_error *err)
{
    fprintf(stderr, "%s: %s\n", plan_program, err->text);
    return PLAN_BAD;
}

/* --mesh as sizes: how many, 0 when it is a name, -1 when it is nothing. */
static int job_sizes(const char *text, int sizes[DTENSOR_MAX_DIMS],
                     int64_t *ranksp)
{
    int64_t number[DTENSOR_MAX_DIMS];
    int n;

    if (text[0] < '0' || text[0] > '9')
        return 0;
    n = plan_numbers(text, number);
    *ranksp = 1;
    for (int i = 0; i < n; i++) {
        if (number[i] < 1 || number[i] > 1 << 20)
            return -1;
        sizes[i] = (int)number[i];
        *ranksp *= number[i];
        if (*ranksp > 1 << 20)
            return -1;
    }
    return n;
}

static int job_mesh(const struct plan_options *opt, struct plan_job *job)
{
    int64_t ranks = 1, per_host[DTENSOR_MAX_DIMS] = { 0 };
    int sizes[DTENSOR_MAX_DIMS], n, rc;
    struct dtensor_error err;

    n = opt->mesh ? job_sizes(opt->mesh, sizes, &ranks) : 0;
    if (n < 0)
        return plan_usage("--mesh \"%s\": expected up to 8 sizes such as 2x4",
                          opt->mesh);
    if (n == 0 && !opt->cluster)
        return plan_usage("--mesh \"%s\": expected sizes such as 2x4, or a "
                          "name and --cluster", opt->mesh);
    if (n == 0 && opt->names)
        return plan_usage("--names: mesh \"%s\" of the file has its own",
                          opt->mesh);
    if (opt->per_host && (plan_numbers(opt->per_host, per_host) != 1 ||
                          per_host[0] < 1 || per_host[0] > 1 << 20))
        return plan_usage("--per-host \"%s\": expected a number of ranks",
                          opt->per_host);
    job->per_host = (int)per_host[0];
    rc = dtensor_init_offline(opt->cluster, (int)ranks, (int)per_host[0],
                              &job->ctx, &err);
    if (rc == 0 && opt->mesh)
        rc = n > 0 ? dtensor_mesh_create(job->ctx, n, sizes, opt->names, NULL,
                                         &job->mesh, &err)
                   : dtensor_mesh_find(job->ctx, opt->mesh, &job->mesh, &err);
    return rc == 0 ? PLAN_GOOD : job_say(&err);
}

/* ---------------------------------------------------------------- specs --- */

static int job_spec(const struct plan_options *opt, const char *placements,
                    const struct dtensor_mesh *mesh, struct dtensor_spec *spec)
{
    struct dtensor_error err;
    int rc, ndim;

    *spec = (struct dtensor_spec){ .mesh = mesh };
    ndim = plan_numbers(opt->shape, spec->shape);
    if (ndim < 0)
        return plan_usage("--shape \"%s\": expected up to 8 sizes such as "
                          "4096x4096", opt->shape);
    spec->ndim = ndim;
    rc = dtensor_dtype_parse(opt->dtype, &spec->dtype, &err);
    if (rc == 0)
        rc = dtensor_placements_parse(mesh, placements, ndim,
                                      spec->placement, &err);
    if (rc == 0)
        rc = dtensor_spec_normalize(spec, &err);
    return rc == 0 ? PLAN_GOOD : job_say(&err);
}

static int job_plan(const struct plan_options *opt,
                    const struct dtensor_spec *from,
                    const struct dtensor_spec *to, struct dtensor_plan **planp)
{
    struct dtensor_plan_options options = { .route = DTENSOR_NROUTES };
    char advice[120];
    struct dtensor_error err;

    for (int i = 0; i < DTENSOR_NROUTES; i++)
        if (strcmp(plan_routes[i], opt->route) == 0)
            options.route = (enum dtensor_route)i;
    if (options.route == DTENSOR_NROUTES)
        return plan_usage("--route \"%s\"; %s", opt->route,
                          dtensor_advise(opt->route, plan_routes, NULL, advice,
                                         sizeof advice));
    if (opt->max_scratch && !job_size(opt->max_scratch, &options.max_scratch))
        return plan_usage("--max-scratch \"%s\": expected a size such as 64M",
                          opt->max_scratch);
    if (dtensor_plan_create(from, to, &options, planp, &err) != 0)
        return job_say(&err);
    return PLAN_GOOD;
}

int plan_redistribute(const struct plan_options *opt,
                      const struct dtensor_mesh *mesh,
                      struct dtensor_plan **planp)
{
    struct dtensor_spec from, to;
    int status = job_spec(opt, opt->from, mesh, &from);

    if (status == PLAN_GOOD)
        status = job_spec(opt, opt->to, mesh, &to);
    return status == PLAN_GOOD ? job_plan(opt, &from, &to, planp) : status;
}

size_t plan_call_unit(const struct dtensor_call *call, int ranks)
{
    static const bool blocked[DTENSOR_NCOLLECTIVES] = {
        [DTENSOR_ALLGATHER] = true, [DTENSOR_REDUCE_SCATTER] = true,
        [DTENSOR_ALL_TO_ALL] = true, [DTENSOR_GATHER] = true,
        [DTENSOR_SCATTER] = true
    };
    const size_t element = dtensor_dtype_size(call->dtype);

    return blocked[call->coll] ? element * (size_t)ranks : element;
}

int plan_call(const struct plan_options *opt, const struct dtensor_mesh *mesh,
              const char *name, const char *size, struct dtensor_call *call,
              uint64_t *bytesp)
{
    struct dtensor_error err;
    size_t unit;

    *bytesp = 0;
    call->coll = (enum dtensor_collective)plan_collective(name);
    if (size && !job_size(size, bytesp))
        return plan_usage("--size \"%s\": expected a size such as 1M", size);
    if (dtensor_dtype_parse(opt->dtype, &call->dtype, &err) != 0)
        return job_say(&err);
    unit = plan_call_unit(call, dtensor_mesh_size(mesh));
    if (*bytesp % unit != 0)
        return plan_usage("--size %s: expected a multiple of %zu bytes, an "
                          "element%s", size, unit,
                          unit > dtensor_dtype_size(call->dtype)
                              ? " for each rank" : "");
    call->count = *bytesp / unit;
    return PLAN_GOOD;
}

/* Every way to carry out a collective. */
static int job_ways(const struct plan_options *opt, struct plan_job *job)
{
    struct dtensor_error err;
    int status = plan_call(opt, job->mesh, opt->collective, opt->size,
                           &job->call, &job->size);

    if (status == PLAN_GOOD
        && dtensor_call_ways(job->mesh, &job->call, job->ways, PLAN_WAYS_MAX,
                             &job->nways, &err) != 0)
        return job_say(&err);
    return status;
}

int plan_job_open(const struct plan_options *opt, struct plan_job *job)
{
    int status;

    *job = (struct plan_job){ .ctx = NULL };
    status = job_mesh(opt, job);
    if (opt->op || opt->module)
        return status;
    if (opt->collective)
        return status == PLAN_GOOD ? job_ways(opt, job) : status;
    if (status == PLAN_GOOD && opt->from)
        status = job_spec(opt, opt->from, job->mesh, &job->from);
    if (status == PLAN_GOOD && opt->to)
        status = job_spec(opt, opt->to, job->mesh, &job->to);
    if (status == PLAN_GOOD && opt->to)
        status = job_plan(opt, &job->from, &job->to, &job->plan);
    if (status == PLAN_GOOD && opt->matrix &&
        dtensor_mesh_size(job->mesh) > PLAN_MATRIX_MAX)
        return plan_usage("--matrix: %d ranks (at most %d)",
                          dtensor_mesh_size(job->mesh), PLAN_MATRIX_MAX);
    return status;
}

void plan_job_close(struct plan_job *job)
{
    dtensor_plan_destroy(job->plan);
    dtensor_fini(job->ctx);
}

bool plan_job_cost(const struct plan_job *job, enum dtensor_route route,
                   struct dtensor_plan_info *info, const char **whyp)
{
    const struct dtensor_plan_options options = { .route = route };
    struct dtensor_plan_choice choice;
    struct dtensor_plan *plan;

    dtensor_plan_choice(job->plan, route, &choice, NULL);
    *whyp = choice.refused;
    if (dtensor_plan_create(&job->from, &job->to, &options, &plan, NULL) != 0)
        return false;
    dtensor_plan_info(plan, info);
    dtensor_plan_destroy(plan);
    return true;
}

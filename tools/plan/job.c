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

/* A mesh as sizes, "2x4"; or "2x4@8", which begins with rank 8. */
struct job_sizes {
    int n;                        /* 0: it is a name                          */
    int size[DTENSOR_MAX_DIMS];   /* of each dimension                        */
    int64_t first;                /* its first rank                           */
    int64_t end;                  /* the rank after its last one              */
};

/* false: it is nothing. */
static bool job_sizes(const char *text, struct job_sizes *sizes)
{
    const char *at = strchr(text, '@');
    int64_t number[DTENSOR_MAX_DIMS] = { 0 }, ranks = 1;
    char word[200];

    *sizes = (struct job_sizes){ .n = 0 };
    if (text[0] < '0' || text[0] > '9')
        return true;
    if (at && (plan_numbers(at + 1, number) != 1 || number[0] > 1 << 20))
        return false;
    sizes->first = number[0];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(text, "@"), text);
    sizes->n = plan_numbers(word, number);
    for (int i = 0; i < sizes->n; i++) {
        if (number[i] < 1 || number[i] > 1 << 20)
            return false;
        sizes->size[i] = (int)number[i];
        ranks *= number[i];
        if (ranks > 1 << 20)
            return false;
    }
    sizes->end = sizes->first + ranks;
    return sizes->n > 0;
}

static int job_find(const struct plan_job *job, const char *name,
                    const char *names, const struct job_sizes *sizes,
                    const struct dtensor_mesh **meshp)
{
    const size_t ranks = (size_t)(sizes->end - sizes->first);
    struct dtensor_error err;
    int *rank, rc;

    if (sizes->n == 0)
        return dtensor_mesh_find(job->ctx, name, meshp, &err) == 0
             ? PLAN_GOOD : job_say(&err);
    rank = malloc(ranks * sizeof *rank);
    if (!rank)
        return plan_usage("--mesh: out of memory");
    for (size_t i = 0; i < ranks; i++)
        rank[i] = (int)sizes->first + (int)i;
    rc = dtensor_mesh_create(job->ctx, sizes->n, sizes->size, names,
                             sizes->first ? rank : NULL, meshp, &err);
    free(rank);
    return rc == 0 ? PLAN_GOOD : job_say(&err);
}

static int job_mesh_read(const struct plan_options *opt, const char *option,
                         const char *text, struct job_sizes *sizes)
{
    *sizes = (struct job_sizes){ .n = 0 };
    if (text && !job_sizes(text, sizes))
        return plan_usage("--%s \"%s\": expected up to 8 sizes such as 2x4",
                          option, text);
    if (sizes->n == 0 && !opt->cluster && text)
        return plan_usage("--%s \"%s\": expected sizes such as 2x4, or a "
                          "name and --cluster", option, text);
    return PLAN_GOOD;
}

static int job_mesh(const struct plan_options *opt, struct plan_job *job)
{
    int64_t per_host[DTENSOR_MAX_DIMS] = { 0 };
    struct job_sizes from, to;
    struct dtensor_error err;
    int status;

    if (job_mesh_read(opt, "mesh", opt->mesh, &from) != PLAN_GOOD
        || job_mesh_read(opt, "to-mesh", opt->to_mesh, &to) != PLAN_GOOD)
        return PLAN_BAD;
    if (from.n == 0 && opt->names)
        return plan_usage("--names: mesh \"%s\" of the file has its own",
                          opt->mesh);
    if (opt->per_host && (plan_numbers(opt->per_host, per_host) != 1 ||
                          per_host[0] < 1 || per_host[0] > 1 << 20))
        return plan_usage("--per-host \"%s\": expected a number of ranks",
                          opt->per_host);
    job->per_host = (int)per_host[0];
    if (dtensor_init_offline(opt->cluster,
                             (int)(to.end > from.end ? to.end : from.end),
                             (int)per_host[0], &job->ctx, &err) != 0)
        return job_say(&err);
    if (!opt->mesh)
        return PLAN_GOOD;
    status = job_find(job, opt->mesh, opt->names, &from, &job->mesh);
    return status == PLAN_GOOD && opt->to_mesh
         ? job_find(job, opt->to_mesh, NULL, &to, &job->to_mesh) : status;
}

/* All ranks of both meshes, ascending. */
static int job_join(struct plan_job *job)
{
    const struct dtensor_mesh *const meshes[] = { job->mesh, job->to_mesh };
    const int world = dtensor_world_size(job->ctx);
    int *rank = calloc((size_t)world, sizeof *rank), n = 0, rc;
    struct dtensor_error err;

    if (!rank)
        return plan_usage("--to-mesh: out of memory");
    for (int m = 0; m < 2; m++)
        for (int i = 0; i < dtensor_mesh_size(meshes[m]); i++)
            rank[dtensor_mesh_rank(meshes[m], i)] = 1;
    for (int r = 0; r < world; r++)
        if (rank[r])
            rank[n++] = r;
    rc = dtensor_mesh_create(job->ctx, 1, &n, NULL, rank, &job->mesh, &err);
    free(rank);
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
    if (*bytesp % unit != 0
        || (size && *bytesp == 0 && call->coll != DTENSOR_BARRIER))
        return plan_usage("--size %s: expected a multiple of %zu bytes, an "
                          "element%s%s", size, unit,
                          unit > dtensor_dtype_size(call->dtype)
                              ? " for each rank" : "",
                          *bytesp ? "" : ", and not 0");
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
        status = job_spec(opt, opt->to, job->to_mesh ? job->to_mesh : job->mesh,
                          &job->to);
    if (status == PLAN_GOOD && job->to_mesh)
        status = job_join(job);
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

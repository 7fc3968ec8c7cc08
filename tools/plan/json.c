/* json.c - a plan and layouts for programs
 *
 * The object is built in memory with libjansson, which escapes and formats, and
 * written at the end; "schema" is 1 until a key changes its meaning.
 */
#include "config.h"
#include "tools/plan/plan.h"

#ifdef HAVE_JANSSON
#include "tools/plan/json.h"
#include <stdlib.h>
#include <string.h>

static json_t *json_numbers(const int64_t number[], int n)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_integer((json_int_t)number[i]));
    return list;
}

static json_t *json_placements(const struct dtensor_spec *spec)
{
    char text[400];

    dtensor_placements_format(spec->mesh, spec->placement, text, sizeof text);
    return json_string(text);
}

/* -------------------------------------------------------------- layouts --- */

/* For each dimension the runs [first, how many]. */
static json_t *json_runs(const struct dtensor_spec *spec, int rank)
{
    json_t *dims = json_array();

    for (int d = 0; d < spec->ndim; d++) {
        json_t *list = json_array();
        int64_t n = 0;
        struct dtensor_run *run = plan_runs(spec, rank, d, &n);

        for (int64_t i = 0; run && i < n; i++)
            json_array_append_new(list, json_pack("[II]",
                (json_int_t)run[i].start, (json_int_t)run[i].size));
        free(run);
        json_array_append_new(dims, list);
    }
    return dims;
}

static json_t *json_layout(const struct dtensor_spec *spec)
{
    json_t *ranks = json_array();

    for (int i = 0; i < dtensor_mesh_size(spec->mesh); i++) {
        int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];
        int64_t at[DTENSOR_MAX_DIMS];
        int rank = dtensor_mesh_rank(spec->mesh, i), coord[DTENSOR_MAX_DIMS];

        dtensor_mesh_coord(spec->mesh, rank, coord);
        for (int m = 0; m < dtensor_mesh_ndim(spec->mesh); m++)
            at[m] = coord[m];
        dtensor_spec_local(spec, rank, shape, offset);
        json_array_append_new(ranks, json_pack("{si so so so so}",
            "rank", rank,
            "coordinate", json_numbers(at, dtensor_mesh_ndim(spec->mesh)),
            "shape", json_numbers(shape, spec->ndim),
            "offset", json_numbers(offset, spec->ndim),
            "runs", json_runs(spec, rank)));
    }
    return ranks;
}

/* ------------------------------------------------------ memory of GPUs --- */

/* The lines of dtensor_mesh_path(), without what each begins with. */
json_t *plan_json_paths(const struct dtensor_mesh *mesh)
{
    json_t *list = json_array();
    char *text = NULL, *rest, *line;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    if (!stream)
        return list;
    dtensor_mesh_path(mesh, stream);
    fclose(stream);
    for (line = strtok_r(text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *words = strstr(line, ": ");

        json_array_append_new(list, json_string(words ? words + 2 : line));
    }
    free(text);
    return list;
}

/* ----------------------------------------------------------------- plan --- */

static json_t *json_steps(const struct dtensor_plan *plan, int n)
{
    json_t *steps = json_array();
    struct dtensor_plan_step step;

    for (int i = 0; i < n; i++) {
        dtensor_plan_step(plan, i, &step, NULL);
        json_array_append_new(steps, json_pack("{ss so so si sI sf si sI}",
            "what", step.what, "from", json_placements(&step.src),
            "to", json_placements(&step.dst), "ranks", step.ranks,
            "bytes", (json_int_t)dtensor_plan_bytes(plan, i, -1, -1),
            "predicted_us", step.predicted_us, "rounds", step.rounds,
            "scratch", (json_int_t)step.scratch_bytes));
    }
    return steps;
}

static json_t *json_routes(const struct plan_job *job)
{
    json_t *list = json_array();
    struct dtensor_plan_info info;
    const char *why;

    for (int i = DTENSOR_ROUTE_DIRECT; i < DTENSOR_NROUTES; i++)
        if (plan_job_cost(job, (enum dtensor_route)i, &info, &why))
            json_array_append_new(list, json_pack("{ss si sf sI ss?}",
                "route", plan_routes[i], "steps", info.nsteps,
                "predicted_us", info.predicted_us,
                "scratch", (json_int_t)info.scratch_bytes, "refused", why));
        else
            json_array_append_new(list, json_pack("{ss ss}",
                "route", plan_routes[i], "refused", why ? why : "no such way"));
    return list;
}

static json_t *json_ranks(const struct plan_job *job)
{
    json_t *ranks = json_array();

    for (int i = 0; i < dtensor_mesh_size(job->mesh); i++) {
        const int rank = dtensor_mesh_rank(job->mesh, i);

        json_array_append_new(ranks, json_pack("{si sI sI sI}", "rank", rank,
            "sends", (json_int_t)dtensor_plan_bytes(job->plan, -1, rank, -1),
            "receives", (json_int_t)dtensor_plan_bytes(job->plan, -1, -1, rank),
            "bound", (json_int_t)dtensor_plan_bound(job->plan, rank)));
    }
    return ranks;
}

static json_t *json_matrix(const struct plan_job *job)
{
    const int n = dtensor_mesh_size(job->mesh);
    json_t *matrix = json_array();

    for (int i = 0; i < n; i++) {
        json_t *row = json_array();

        for (int j = 0; j < n; j++)
            json_array_append_new(row, json_integer((json_int_t)
                dtensor_plan_bytes(job->plan, -1,
                                   dtensor_mesh_rank(job->mesh, i),
                                   dtensor_mesh_rank(job->mesh, j))));
        json_array_append_new(matrix, row);
    }
    return matrix;
}

static void json_plan(const struct plan_job *job, json_t *root)
{
    struct dtensor_plan_info info;

    dtensor_plan_info(job->plan, &info);
    json_object_set_new(root, "to", json_placements(&job->to));
    json_object_set_new(root, "plan", json_pack(
        "{ss ss sf sI sI sI so so so}", "route", plan_routes[info.route],
        "why", info.why, "predicted_us", info.predicted_us,
        "scratch", (json_int_t)info.scratch_bytes,
        "bytes", (json_int_t)dtensor_plan_bytes(job->plan, -1, -1, -1),
        "bound", (json_int_t)dtensor_plan_bound(job->plan, -1),
        "steps", json_steps(job->plan, info.nsteps),
        "alternatives", json_routes(job), "ranks", json_ranks(job)));
    if (dtensor_mesh_size(job->mesh) <= PLAN_MATRIX_MAX)
        json_object_set_new(json_object_get(root, "plan"), "matrix",
                            json_matrix(job));
}

int plan_json(const struct plan_job *job, bool layout, FILE *stream)
{
    const int ndim = dtensor_mesh_ndim(job->mesh);
    int64_t sizes[DTENSOR_MAX_DIMS];
    json_t *root;
    int failed;

    for (int m = 0; m < ndim; m++)
        sizes[m] = dtensor_mesh_dim_size(job->mesh, m);
    root = json_pack("{si ss so so ss so so}", "schema", 1,
                     "version", dtensor_version(),
                     "mesh", json_numbers(sizes, ndim),
                     "shape", json_numbers(job->from.shape, job->from.ndim),
                     "dtype", dtensor_dtype_name(job->from.dtype),
                     "from", json_placements(&job->from),
                     "gpu_memory", plan_json_paths(job->mesh));
    if (job->plan)
        json_plan(job, root);
    if (layout) {
        json_object_set_new(root, "layout_from", json_layout(&job->from));
        if (job->plan)
            json_object_set_new(root, "layout_to", json_layout(&job->to));
    }
    failed = json_dumpf(root, stream, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    fputc('\n', stream);
    json_decref(root);
    return failed ? PLAN_BAD : PLAN_GOOD;
}

/* ----------------------------------------------------------- operators --- */

static json_t *json_tensor(const struct dtensor_spec *spec)
{
    return json_pack("{so ss so}", "shape", json_numbers(spec->shape,
                                                         spec->ndim),
                     "dtype", dtensor_dtype_name(spec->dtype),
                     "placements", json_placements(spec));
}

static json_t *json_inputs(const struct dtensor_op_call *call,
                           const struct dtensor_spec want[])
{
    json_t *list = json_array();

    for (int i = 0; i < call->nin; i++) {
        json_t *one = json_tensor(&call->in[i]);

        json_object_set_new(one, "wanted", json_placements(&want[i]));
        json_array_append_new(list, one);
    }
    return list;
}

/* The mesh dimensions of a bit set. */
static json_t *json_dims(unsigned set)
{
    json_t *list = json_array();

    for (int m = 0; set >> m; m++)
        if (set >> m & 1)
            json_array_append_new(list, json_integer(m));
    return list;
}

int plan_op_json(const struct dtensor_op_call *call,
                 const struct dtensor_spec want[],
                 const struct dtensor_spec out[],
                 const struct dtensor_op_info *info, FILE *stream)
{
    const struct dtensor_mesh *mesh = call->in[0].mesh;
    int64_t sizes[DTENSOR_MAX_DIMS];
    json_t *outputs = json_array(), *root;
    int failed;

    for (int m = 0; m < dtensor_mesh_ndim(mesh); m++)
        sizes[m] = dtensor_mesh_dim_size(mesh, m);
    for (int i = 0; i < info->nout; i++)
        json_array_append_new(outputs, json_tensor(&out[i]));
    root = json_pack("{si ss ss so so so sf so sI sb ss}", "schema", 1,
                     "version", dtensor_version(), "op", call->op, "mesh",
                     json_numbers(sizes, dtensor_mesh_ndim(mesh)), "inputs",
                     json_inputs(call, want), "outputs", outputs,
                     "predicted_us", info->predicted_us, "reduces",
                     json_dims(info->reduces), "scratch",
                     (json_int_t)info->scratch_bytes, "kernels",
                     info->kernels, "why", info->why);
    failed = json_dumpf(root, stream, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    fputc('\n', stream);
    json_decref(root);
    return failed ? PLAN_BAD : PLAN_GOOD;
}

#else

int plan_json(const struct plan_job *job, bool layout, FILE *stream)
{
    (void)job;
    (void)layout;
    (void)stream;
    return PLAN_BAD;                 /* options.c has refused --json before */
}

int plan_op_json(const struct dtensor_op_call *call,
                 const struct dtensor_spec want[],
                 const struct dtensor_spec out[],
                 const struct dtensor_op_info *info, FILE *stream)
{
    (void)call;
    (void)want;
    (void)out;
    (void)info;
    (void)stream;
    return PLAN_BAD;
}
#endif

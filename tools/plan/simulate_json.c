/* simulate_json.c - a simulation for programs
 *
 * "ways" has what the table has.  If one way was played, it also has its
 * critical path and the busiest links.
 */
#include "config.h"
#include "tools/plan/plan.h"

#ifdef HAVE_JANSSON
#include "tools/plan/json.h"

static json_t *json_path(const struct dtensor_simulation *result)
{
    json_t *list = json_array();

    for (int i = 0; i < result->npath; i++) {
        const struct dtensor_simulated_event *event = &result->path[i];

        json_array_append_new(list, json_pack("{si si si sf sf}",
            "rank", event->rank, "peer", event->peer, "step", event->step,
            "start_us", event->start_ns / 1e3, "end_us", event->end_ns / 1e3));
    }
    return list;
}

static json_t *json_links(const struct dtensor_simulation *result)
{
    json_t *list = json_array();

    for (int l = 0; l < result->nlinks; l++)
        json_array_append_new(list, json_pack("{ss si sf}",
            "kind", result->link[l].kind, "number", result->link[l].number,
            "busy_us", result->link[l].busy_ns / 1e3));
    return list;
}

static json_t *json_calls(const struct dtensor_simulation *result)
{
    json_t *list = json_array();

    for (int i = 0; i < result->ncalls; i++)
        json_array_append_new(list, json_real(result->call_ns[i] / 1e3));
    return list;
}

static json_t *json_way(const struct plan_simulated *way, bool details)
{
    json_t *one = json_pack("{ss sf sf si sI sI sb}", "name", way->name,
        "simulated_us", way->result.call_ns[0] / 1e3,
        "predicted_us", way->predicted_ns / 1e3, "played", way->result.ranks,
        "steps", (json_int_t)way->result.steps,
        "messages", (json_int_t)way->result.messages, "taken", way->taken);

    if (way->result.ncalls > 1)
        json_object_set_new(one, "calls_us", json_calls(&way->result));
    if (details) {
        json_object_set_new(one, "critical_path", json_path(&way->result));
        json_object_set_new(one, "links", json_links(&way->result));
    }
    return one;
}

int plan_simulate_json(const struct plan_job *job,
                       const struct plan_options *opt,
                       const struct plan_simulated ways[], int n,
                       FILE *stream)
{
    json_t *list = json_array(), *root;
    int failed;

    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_way(&ways[i],
                                             plan_simulates_one(opt)));
    root = json_pack("{si ss si ss}", "schema", 1,
                     "version", dtensor_version(),
                     "ranks", dtensor_mesh_size(job->mesh),
                     "topology", opt->topology ? opt->topology : "flat");
    if (job->plan)
        json_object_update_new(root, json_pack("{ss ss ss}", "from", opt->from,
                               "to", opt->to, "shape", opt->shape));
    else
        json_object_update_new(root, json_pack("{ss sI}", "collective",
                               plan_collectives[job->call.coll], "bytes",
                               (json_int_t)job->size));
    json_object_set_new(root, "ways", list);
    failed = json_dumpf(root, stream, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    fputc('\n', stream);
    json_decref(root);
    return failed ? PLAN_BAD : PLAN_GOOD;
}

#else

int plan_simulate_json(const struct plan_job *job,
                       const struct plan_options *opt,
                       const struct plan_simulated ways[], int n,
                       FILE *stream)
{
    (void)job;
    (void)opt;
    (void)ways;
    (void)n;
    (void)stream;
    return PLAN_BAD;                 /* options.c has refused --json before */
}
#endif

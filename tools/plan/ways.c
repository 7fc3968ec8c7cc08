/* ways.c - what a collective would cost, by every algorithm
 *
 *   $ dtensor-plan allreduce --size 1M --mesh 16 --per-host 4
 *
 * A time is the sum of waiting for signals, posting messages, moving bytes, and
 * reducing and copying.  The reason for a choice is the part by which it is
 * most faster than the next algorithm.
 */
#include "config.h"
#include "tools/plan/plan.h"

#include <inttypes.h>
#include <string.h>

#ifdef HAVE_JANSSON
#include "tools/plan/json.h"
#endif

enum ways_part { WAITING, MESSAGES, MOVING, LOCAL, NPARTS };

static const char *const part_names[NPARTS] = {
    [WAITING] = "waiting", [MESSAGES] = "messages", [MOVING] = "moving",
    [LOCAL] = "folding"
};

static const enum ways_part part_of[DTENSOR_NCOSTS] = {
    [DTENSOR_COST_INTRA_HOPS] = WAITING, [DTENSOR_COST_INTER_HOPS] = WAITING,
    [DTENSOR_COST_INTRA_MESSAGES] = MESSAGES,
    [DTENSOR_COST_INTER_MESSAGES] = MESSAGES,
    [DTENSOR_COST_INTRA_BYTES] = MOVING, [DTENSOR_COST_INTER_BYTES] = MOVING,
    [DTENSOR_COST_FOLDED] = LOCAL, [DTENSOR_COST_COPIED] = LOCAL
};

const char *const plan_collectives[DTENSOR_NCOLLECTIVES + 1] = {
    [DTENSOR_ALLREDUCE] = "allreduce", [DTENSOR_REDUCE] = "reduce",
    [DTENSOR_BROADCAST] = "broadcast", [DTENSOR_ALLGATHER] = "allgather",
    [DTENSOR_REDUCE_SCATTER] = "reduce_scatter",
    [DTENSOR_ALL_TO_ALL] = "all_to_all", [DTENSOR_GATHER] = "gather",
    [DTENSOR_SCATTER] = "scatter", [DTENSOR_BARRIER] = "barrier"
};

int plan_collective(const char *name)
{
    for (int c = 0; c < DTENSOR_NCOLLECTIVES; c++)
        if (strcmp(plan_collectives[c], name) == 0)
            return c;
    return -1;
}

static double way_part(const struct dtensor_way *way, enum ways_part part)
{
    double ns = 0;

    for (int c = 0; c < DTENSOR_NCOSTS; c++)
        if (part_of[c] == part)
            ns += way->part_ns[c];
    return ns;
}

/* The part by which `way` differs most from `other`, downwards or upwards. */
static enum ways_part way_gain(const struct dtensor_way *way,
                               const struct dtensor_way *other, double sign)
{
    enum ways_part most = WAITING;

    for (int p = 1; p < NPARTS; p++)
        if (sign * (way_part(other, p) - way_part(way, p))
            > sign * (way_part(other, most) - way_part(way, most)))
            most = (enum ways_part)p;
    return most;
}

/* Why, in one line. */
static void ways_reason(const struct plan_job *job, char *buf, size_t size)
{
    const struct dtensor_way *ways = job->ways, *taken = ways, *other;
    enum ways_part gain, loss;
    double more;
    int at;

    while (!taken->taken)
        taken++;
    other = taken == ways ? ways + 1 : ways;
    if (job->nways == 1) {
        snprintf(buf, size, "%s, since nothing else can carry it out",
                 taken->name);
        return;
    }
    if (taken->tuned && taken != ways) {
        snprintf(buf, size, "%s, since [tuning] says so; %s would take %.2f us "
                 "less", taken->name, other->name,
                 (taken->ns - other->ns) / 1e3);
        return;
    }
    gain = way_gain(taken, other, 1);
    loss = way_gain(taken, other, -1);
    more = way_part(taken, loss) - way_part(other, loss);
    at = snprintf(buf, size, "%s, %.2f us less than %s: %.2f us less %s",
                  taken->name, (other->ns - taken->ns) / 1e3, other->name,
                  (way_part(other, gain) - way_part(taken, gain)) / 1e3,
                  part_names[gain]);
    if (more >= 5)
        snprintf(buf + at, size - (size_t)at, " for %.2f us more %s",
                 more / 1e3, part_names[loss]);
}

void plan_ways_text(const struct plan_job *job, FILE *stream)
{
    char why[200];

    fprintf(stream, "%s of %" PRIu64 " bytes over %d rank%s\n\n%-14s %12s",
            plan_collectives[job->call.coll], job->size,
            dtensor_mesh_size(job->mesh),
            dtensor_mesh_size(job->mesh) == 1 ? "" : "s", "algorithm", "us");
    for (int p = 0; p < NPARTS; p++)
        fprintf(stream, " %11s", part_names[p]);
    fputc('\n', stream);
    for (int i = 0; i < job->nways; i++) {
        const struct dtensor_way *way = &job->ways[i];

        fprintf(stream, "%-14s %12.2f", way->name, way->ns / 1e3);
        for (int p = 0; p < NPARTS; p++)
            fprintf(stream, " %11.2f", way_part(way, (enum ways_part)p) / 1e3);
        fprintf(stream, "%s\n", way->taken ? "  taken" : "");
    }
    ways_reason(job, why, sizeof why);
    fprintf(stream, "\ntakes %s\n", why);
    dtensor_mesh_path(job->mesh, stream);
}

#ifdef HAVE_JANSSON
int plan_ways_json(const struct plan_job *job, FILE *stream)
{
    static const char *const amounts[DTENSOR_NCOSTS] = {
        "intra_hops", "intra_messages", "intra_bytes", "inter_hops",
        "inter_messages", "inter_bytes", "folded_bytes", "copied_bytes"
    };
    json_t *list = json_array(), *root;
    char why[200];
    int rc;

    for (int i = 0; i < job->nways; i++) {
        const struct dtensor_way *way = &job->ways[i];
        json_t *one = json_pack("{s:s, s:f, s:b, s:b}", "algorithm", way->name,
                                "us", way->ns / 1e3, "taken", way->taken,
                                "tuned", way->tuned);

        for (int c = 0; c < DTENSOR_NCOSTS; c++)
            json_object_set_new(one, amounts[c], json_real(way->amount[c]));
        for (int p = 0; p < NPARTS; p++)
            json_object_set_new(one, part_names[p],
                json_real(way_part(way, (enum ways_part)p) / 1e3));
        json_array_append_new(list, one);
    }
    ways_reason(job, why, sizeof why);
    root = json_pack("{s:i, s:s, s:I, s:i, s:s, s:o, s:o}", "schema", 1,
                     "collective", plan_collectives[job->call.coll], "bytes",
                     (json_int_t)job->size, "ranks",
                     dtensor_mesh_size(job->mesh), "takes", why, "ways", list,
                     "gpu_memory", plan_json_paths(job->mesh));
    rc = root ? json_dumpf(root, stream, JSON_INDENT(2)) : -1;
    json_decref(root);
    fputc('\n', stream);
    return rc == 0 ? PLAN_GOOD : PLAN_BAD;
}
#else
int plan_ways_json(const struct plan_job *job, FILE *stream)
{
    (void)job;
    (void)stream;
    return PLAN_BAD;
}
#endif

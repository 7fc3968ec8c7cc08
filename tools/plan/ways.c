/* ways.c - what a collective would cost, by every algorithm
 *
 *   $ dtensor-plan allreduce --size 1M --mesh 16 --per-host 4
 *
 * A time is the sum of waiting for signals, posting messages, moving bytes, and
 * reducing and copying.  The reason for a choice is what the next algorithm
 * would take, and the part of that in which they differ most.
 */
#include "config.h"
#include "tools/draw/bytes.h"
#include "tools/plan/plan.h"

#include <math.h>
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

/* "algorithm ring; tree would take 9.65 ms, 7.41 ms of it more moving" */
static void ways_reason(const struct plan_job *job, char *buf, size_t size)
{
    const struct dtensor_way *ways = job->ways, *taken = ways, *other;
    enum ways_part part;
    char time[32], more[32];
    bool slower;
    int at;

    while (!taken->taken)
        taken++;
    other = taken == ways ? ways + 1 : ways;
    at = snprintf(buf, size, "algorithm %s%s", taken->name,
                  taken->tuned ? ", which [tuning] names" : "");
    if (job->nways == 1) {
        snprintf(buf + at, size - (size_t)at, "; nothing else can carry it "
                 "out");
        return;
    }
    if (fabs(other->ns - taken->ns) < 0.005 * taken->ns) {
        snprintf(buf + at, size - (size_t)at, "; %s would take as long",
                 other->name);
        return;
    }
    slower = other->ns > taken->ns;
    part = way_gain(taken, other, slower ? 1 : -1);
    draw_time(fabs(way_part(other, part) - way_part(taken, part)) / 1e3, more,
              sizeof more);
    snprintf(buf + at, size - (size_t)at, "; %s would take %s, with %s %s of "
             "%s", other->name, draw_time(other->ns / 1e3, time, sizeof time),
             more, slower ? "more" : "less", part_names[part]);
}

/* "An allreduce of 1.00 MiB over 16 ranks takes about 1.74 ms by ring, ..." */
static void ways_sentence(const struct plan_job *job, FILE *stream)
{
    const char *name = plan_collectives[job->call.coll];
    const struct dtensor_way *taken = job->ways;
    char bytes[32], time[32], why[200];

    while (!taken->taken)
        taken++;
    fprintf(stream, "A%s %s", strchr("aeiou", name[0]) ? "n" : "", name);
    if (job->size > 0)
        fprintf(stream, " of %s", draw_bytes((double)job->size, bytes,
                                             sizeof bytes));
    ways_reason(job, why, sizeof why);
    fprintf(stream, " over %d rank%s takes about %s: %s.\n",
            dtensor_mesh_size(job->mesh),
            dtensor_mesh_size(job->mesh) == 1 ? "" : "s",
            draw_time(taken->ns / 1e3, time, sizeof time), why);
}

void plan_ways_text(const struct plan_job *job, FILE *stream)
{
    char time[32];

    ways_sentence(job, stream);
    fprintf(stream, "\n%-14s %10s", "algorithm", "time");
    for (int p = 0; p < NPARTS; p++)
        fprintf(stream, " %10s", part_names[p]);
    fputc('\n', stream);
    for (int i = 0; i < job->nways; i++) {
        const struct dtensor_way *way = &job->ways[i];

        fprintf(stream, "%-14s %10s", way->name,
                draw_time(way->ns / 1e3, time, sizeof time));
        for (int p = 0; p < NPARTS; p++)
            fprintf(stream, " %10s",
                    draw_time(way_part(way, (enum ways_part)p) / 1e3, time,
                              sizeof time));
        fprintf(stream, "%s\n", way->taken ? "  taken" : "");
    }
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

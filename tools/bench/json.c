/* json.c - all results and facts, for programs
 *
 * The object is built in memory with libjansson, which escapes and formats,
 * and written at the end; "schema" is 1 until a key changes its meaning.
 * tests/tools/bench-schema.json describes it.
 */
#include "config.h"
#include "tools/bench/job.h"
#include "tools/bench/measure.h"
#include "tools/bench/options.h"
#include "tools/bench/pairs.h"
#include "tools/bench/pattern.h"
#include "tools/bench/report.h"
#include "tools/bench/session.h"
#include "tools/bench/tests.h"
#include "dtensor.h"

#ifdef HAVE_JANSSON
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>

struct json {
    FILE *stream;
    json_t *root, *results;       /* borrowed from root                       */
};

bool report_has_json(void)
{
    return true;
}

static json_t *json_hosts(const struct facts *facts)
{
    json_t *hosts = json_array();

    for (int i = 0; i < facts->nhosts; i++)
        json_array_append_new(hosts, json_string(facts->host[i]));
    return hosts;
}

static json_t *json_facts(const struct facts *facts, const struct bench *b)
{
    return json_pack("{si ss ss ss ss ss si so ss ss ss ss ss ss*}",
                     "schema", 1, "version", facts->version, "build",
                     facts->build, "date", facts->date, "cluster",
                     facts->cluster, "launcher", facts->launcher, "ranks",
                     facts->nranks, "hosts", json_hosts(facts), "mesh",
                     b->opt->mesh ? b->opt->mesh : "world", "cpu", facts->cpu,
                     "kernel", facts->kernel, "memory", facts->memory,
                     "options", facts->options, "warning",
                     facts->warning[0] ? facts->warning : NULL);
}

static void *json_open(FILE *stream, const struct facts *facts,
                       const struct bench *b)
{
    struct json *json = malloc(sizeof *json);

    if (!json)
        return NULL;
    json->stream = stream;
    json->root = json_facts(facts, b);
    json->results = json_array();
    if (json_object_set_new(json->root, "results", json->results) != 0) {
        json_decref(json->root);
        free(json);
        return NULL;
    }
    return json;
}

static void json_row(void *state, const struct bench_result *result)
{
    const struct bench_case *c = result->c;
    struct json *json = state;

    json_array_append_new(json->results, json_pack(
        "{ss ss sI sI ss ss sb si s{sf sf sf sf} sf sf sf ss sI}",
        "test", c->test->name, "dim", result->dim,
        "bytes", (json_int_t)c->bytes, "count", (json_int_t)c->count,
        "dtype", dtensor_dtype_name(c->dtype), "redop",
        c->redop == PATTERN_NO_OP ? "none" : dtensor_redop_name(c->redop),
        "repro", c->repro, "ranks", result->ranks, "time_us",
        "min", result->time_us.min, "p50", result->time_us.p50,
        "p99", result->time_us.p99, "max", result->time_us.max,
        "algbw_GBps", result->algbw, "busbw_GBps", result->busbw,
        "bound_GBps", result->bound, "plan", result->plan,
        "wrong", (json_int_t)result->wrong));
}

/* n rows of n numbers; null on the diagonal. */
static json_t *json_matrix(const double *cell, int n)
{
    json_t *matrix = json_array();

    for (int i = 0; i < n; i++) {
        json_t *row = json_array();

        for (int j = 0; j < n; j++)
            json_array_append_new(row, i == j ? json_null()
                                  : json_real(cell[i * n + j]));
        json_array_append_new(matrix, row);
    }
    return matrix;
}

static json_t *json_outliers(const struct pairs *pairs)
{
    static const char *const names[] = { "latency_us", "bandwidth_GBps" };
    json_t *list = json_array();
    struct outlier *outlier;
    int n = outliers_find(pairs, &outlier);

    for (int k = 0; k < n; k++)
        json_array_append_new(list, json_pack(
            "{ss si si ss ss sf sf}", "of", names[outlier[k].what],
            "from", pairs->rank[outlier[k].i], "to", pairs->rank[outlier[k].j],
            "from_host", pairs->host[outlier[k].i],
            "to_host", pairs->host[outlier[k].j],
            "value", outlier[k].value, "median", outlier[k].median));
    free(outlier);
    return list;
}

static void json_pairs(void *state, const struct pairs *pairs)
{
    json_t *ranks = json_array(), *hosts = json_array();
    struct json *json = state;

    for (int i = 0; i < pairs->n; i++) {
        json_array_append_new(ranks, json_integer(pairs->rank[i]));
        json_array_append_new(hosts, json_string(pairs->host[i]));
    }
    json_object_set_new(json->root, "fabric", json_pack(
        "{so so so so so}", "ranks", ranks, "hosts", hosts,
        "latency_us", json_matrix(pairs->latency_us, pairs->n),
        "bandwidth_GBps", json_matrix(pairs->rate, pairs->n),
        "outliers", json_outliers(pairs)));
}

static int json_close(void *state, const struct summary *summary)
{
    struct json *json = state;
    json_t *tail = json_pack("{sI sf sf ss?}",
                             "wrong", (json_int_t)summary->wrong,
                             "average_busbw_GBps", summary->average_busbw,
                             "elapsed_s", summary->elapsed_s,
                             "error", summary->error);
    int failed;

    if (tail && summary->startup_ms >= 0)
        json_object_set_new(tail, "startup_ms",
                            json_real(summary->startup_ms));
    failed = json_object_update(json->root, tail);
    if (!failed)
        failed = json_dumpf(json->root, json->stream,
                            JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    fputc('\n', json->stream);
    json_decref(tail);
    json_decref(json->root);
    free(json);
    return failed ? (errno ? errno : EIO) : 0;
}

#else

bool report_has_json(void)
{
    return false;
}

static void *json_open(FILE *stream, const struct facts *facts,
                       const struct bench *b)
{
    (void)stream;
    (void)facts;
    (void)b;
    return NULL;                  /* options.c has refused --json before */
}

static void json_row(void *state, const struct bench_result *result)
{
    (void)state;
    (void)result;
}

static void json_pairs(void *state, const struct pairs *pairs)
{
    (void)state;
    (void)pairs;
}

static int json_close(void *state, const struct summary *summary)
{
    (void)state;
    (void)summary;
    return 0;
}
#endif

const struct report_form report_json = {
    "json", json_open, json_row, json_pairs, json_close
};

/* json.c - all results and facts, for programs
 *
 * The object is built in memory with libjansson, which escapes and formats,
 * and written at the end; "schema" is 1 until a key changes its meaning.
 * tests/bench-schema.json describes it.
 */
#include "config.h"
#include "tools/bench/bench.h"

#ifdef HAVE_JANSSON
#include <errno.h>
#include <jansson.h>
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
        "{ss ss sI sI ss ss si s{sf sf sf sf} sf sf sf ss sI}",
        "test", c->test->name, "dim", result->dim,
        "bytes", (json_int_t)c->bytes, "count", (json_int_t)c->count,
        "dtype", dtensor_dtype_name(c->dtype), "redop",
        c->redop == PATTERN_NO_OP ? "none" : dtensor_redop_name(c->redop),
        "ranks", result->ranks, "time_us",
        "min", result->time_us.min, "p50", result->time_us.p50,
        "p99", result->time_us.p99, "max", result->time_us.max,
        "algbw_GBps", result->algbw, "busbw_GBps", result->busbw,
        "bound_GBps", result->bound, "plan", result->plan,
        "wrong", (json_int_t)result->wrong));
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

static int json_close(void *state, const struct summary *summary)
{
    (void)state;
    (void)summary;
    return 0;
}
#endif

const struct report_form report_json = {
    "json", json_open, json_row, json_close
};

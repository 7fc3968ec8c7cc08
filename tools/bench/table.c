/* table.c - the table on stdout
 *
 * Lines that are not results begin with `#`, columns are separated by blanks,
 * and no column contains one, so that `awk '!/^#/ { print $3, $8 }'` plots
 * bytes against p50.
 */
#include "tools/bench/job.h"
#include "tools/bench/measure.h"
#include "tools/bench/options.h"
#include "tools/bench/pairs.h"
#include "tools/bench/pattern.h"
#include "tools/bench/report.h"
#include "tools/bench/session.h"
#include "tools/bench/tests.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct table {
    FILE *stream;
    bool comments;
    double before_us;             /* p50 of the row before                    */
};

static void table_line(const struct table *t, const char *label,
                       const char *text)
{
    fprintf(t->stream, "# %-9s %s\n", label, text);
}

static void table_hosts(const struct table *t, const struct facts *facts)
{
    fprintf(t->stream, "# ranks     %d on %d host%s:", facts->nranks,
            facts->nhosts, facts->nhosts == 1 ? "" : "s");
    for (int i = 0; i < facts->nhosts && i < 8; i++)
        fprintf(t->stream, " %s", facts->host[i]);
    fprintf(t->stream, "%s\n", facts->nhosts > 8 ? " ..." : "");
}

static void table_meaning(const struct table *t)
{
    fputs("# times     of the slowest rank in each iteration; algbw and busbw "
          "from p50; GB = 1e9 bytes\n"
          "# busbw     bytes that must come into a rank / time; factors as "
          "in nccl-tests\n"
          "# bound     the same bytes / best time of a plain copy of them, "
          "all ranks at once, in the same loop\n"
          "#\n", t->stream);
}

static void table_columns(const struct table *t)
{
    fprintf(t->stream, "# %-12s %-8s %11s %11s %5s %5s %9s %9s %9s %9s %7s "
            "%7s %7s %6s %s\n", "test", "dim", "bytes", "count", "type",
            "redop", "min", "p50", "p99", "max", "algbw", "busbw", "bound",
            "wrong", "plan");
    fprintf(t->stream, "# %-12s %-8s %11s %11s %5s %5s %9s %9s %9s %9s %7s "
            "%7s %7s\n", "", "", "(B)", "(elements)", "", "", "(us)", "(us)",
            "(us)", "(us)", "(GB/s)", "(GB/s)", "(GB/s)");
}

static void table_header(const struct table *t, const struct facts *facts)
{
    fprintf(t->stream, "# dtensor-bench %s (%s)  %s\n", facts->version,
            facts->build, facts->date);
    fprintf(t->stream, "# cluster   %s, started by %s\n", facts->cluster,
            facts->launcher);
    table_hosts(t, facts);
    table_line(t, "cpu", facts->cpu);
    table_line(t, "kernel", facts->kernel);
    table_line(t, "memory", facts->memory);
    table_line(t, "options", facts->options);
    if (facts->warning[0])
        fprintf(t->stream, "# warning: %s\n", facts->warning);
    table_meaning(t);
}

static void *table_open(FILE *stream, const struct facts *facts,
                        const struct bench *b)
{
    struct table *t = malloc(sizeof *t);

    if (!t)
        return NULL;
    t->stream = stream;
    t->comments = !b->opt->quiet;
    if (t->comments)
        table_header(t, facts);
    if (t->comments && b->opt->ntests && !b->opt->loop)
        table_columns(t);
    fflush(stream);
    return t;
}

/* "allreduce direct shm 2 ranks (1.2 us < ring: 3.4 us)" is
 * "direct/shm(1.2us<ring:3.4us)", and "redistribute S(0) -> S(1): exchange shm
 * 2 ranks, 1.0 MiB" is "exchange/shm": what other columns do not say, without
 * blanks.  The plan of allgatherv begins with "allgather".
 */
static void table_plan(const char *plan, const char *test, char *text,
                       size_t size)
{
    const char *why = strstr(plan, " ("), *colon = strstr(plan, ": ");
    size_t end, at, word = strcspn(plan, " ");

    if (colon && (!why || colon < why))
        plan = colon + 2;
    else if (strncmp(plan, test, word) == 0)
        plan += word;
    plan += strspn(plan, " ");
    end = strcspn(plan, ",0123456789");
    while (end > 0 && plan[end - 1] == ' ')
        end--;
    snprintf(text, size, "%.*s", end ? (int)end : 1, end ? plan : "-");
    for (char *p = text; *p; p++)
        if (*p == ' ')
            *p = '/';
    at = strlen(text);
    for (; why && *why && at + 1 < size; why++)
        if (*why != ' ')
            text[at++] = *why;
    text[at] = '\0';
}

static void table_row(void *state, const struct bench_result *result)
{
    struct table *t = state;
    const struct bench_case *c = result->c;
    char plan[120], repro[40] = "";

    table_plan(result->plan, c->test->name, plan, sizeof plan);
    if (c->repro)
        snprintf(repro, sizeof repro, " repro %.2f times",
                 t->before_us > 0 ? result->time_us.p50 / t->before_us : 0);
    t->before_us = result->time_us.p50;
    fprintf(t->stream, "%-14s %-8s %11llu %11llu %5s %5s %9.2f %9.2f %9.2f "
            "%9.2f %7.2f %7.2f %7.2f %6llu %s%s\n", c->test->name, result->dim,
            (unsigned long long)c->bytes, (unsigned long long)c->count,
            dtensor_dtype_name(c->dtype), c->redop == PATTERN_NO_OP
            ? "none" : dtensor_redop_name(c->redop), result->time_us.min,
            result->time_us.p50, result->time_us.p99, result->time_us.max,
            result->algbw, result->busbw, result->bound,
            (unsigned long long)result->wrong, plan, repro);
    fflush(t->stream);
}

static void table_pairs(void *state, const struct pairs *pairs)
{
    const struct table *t = state;

    outliers_write(pairs, t->stream);
    fflush(t->stream);
}

static int table_close(void *state, const struct summary *summary)
{
    struct table *t = state;

    if (t->comments && summary->error)
        fprintf(t->stream, "# stopped: %s\n", summary->error);
    if (t->comments)
        fprintf(t->stream, "# wrong results %llu   average busbw %.2f GB/s   "
                "elapsed %.1f s\n", (unsigned long long)summary->wrong,
                summary->average_busbw, summary->elapsed_s);
    if (t->comments)
        fprintf(t->stream, "# copied    %llu bytes by the CPUs of all ranks on "
                "their way in the calls; 0 is zero copy\n",
                (unsigned long long)summary->copied_bytes);
    free(t);
    return 0;
}

const struct report_form report_table = {
    "table", table_open, table_row, table_pairs, table_close
};

/* table.c - the table on stdout
 *
 * Lines that are not results begin with `#`, columns are separated by blanks,
 * and no column contains one, so `awk '!/^#/ { print $3, $8 }'` plots bytes
 * against p50.  A row has at most 100 columns.  The algorithm or route is
 * printed in a `#` line before the first row that used it.
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

enum { TABLE_COLUMNS = 14, TABLE_CELL = 80, TABLE_PLAN = 160 };

struct table {
    FILE *stream;
    bool comments;
    double before_us;             /* p50 of the row before                    */
    char plan[TABLE_PLAN];        /* of the row before                        */
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

/* Where columns end; a word that is longer takes from the blanks after it. */
static const int table_ends[TABLE_COLUMNS] = {
    10, 16, 26, 36, 41, 46, 53, 60, 67, 74, 80, 86, 92, 98
};

/* The first two begin where the one before ends, the others end at theirs. */
static void table_cells(const struct table *t, char cell[][TABLE_CELL])
{
    char line[TABLE_COLUMNS * TABLE_CELL];
    int used = 0;

    for (int i = 0; i < TABLE_COLUMNS; i++) {
        int at = i == 0 ? 0 : i == 1 ? table_ends[0] + 1
               : table_ends[i] - (int)strlen(cell[i]);

        if (i > 0 && at <= used)
            at = used + 1;
        used += sprintf(line + used, "%*s%s", at - used, "", cell[i]);
    }
    fprintf(t->stream, "%s\n", line);
}

static void table_columns(const struct table *t)
{
    char names[][TABLE_CELL] = { "# test", "dim", "bytes", "count", "type",
                                 "op", "min", "p50", "p99", "max", "algbw",
                                 "busbw", "bound", "wrong" };
    char units[][TABLE_CELL] = { "#", "", "(B)", "(elems)", "", "", "(us)",
                                 "(us)", "(us)", "(us)", "GB/s", "GB/s",
                                 "GB/s", "" };

    table_cells(t, names);
    table_cells(t, units);
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
    t->plan[0] = '\0';
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

/* A line where another plan begins; the times in it may change. */
static void table_say_plan(struct table *t, const struct bench_result *result)
{
    const char *test = result->c->test->name;
    char plan[TABLE_PLAN - 40], line[TABLE_PLAN];

    table_plan(result->plan, test, plan, sizeof plan);
    snprintf(line, sizeof line, "%s %s", test, plan);
    if (t->comments && (strcspn(line, "(") != strcspn(t->plan, "(") ||
                        strncmp(line, t->plan, strcspn(line, "(")) != 0))
        fprintf(t->stream, "# plan %s\n", line);
    strcpy(t->plan, line);
}

/* Microseconds and GB/s with four digits or so. */
static void table_number(double value, char cell[TABLE_CELL])
{
    snprintf(cell, TABLE_CELL, "%.*f", value < 99.995 ? 2
             : value < 9999.95 ? 1 : 0, value);
}

static void table_row(void *state, const struct bench_result *result)
{
    const struct bench_case *c = result->c;
    const double number[] = { result->time_us.min, result->time_us.p50,
                              result->time_us.p99, result->time_us.max,
                              result->algbw, result->busbw, result->bound };
    char cell[TABLE_COLUMNS][TABLE_CELL];
    struct table *t = state;

    table_say_plan(t, result);
    if (c->repro && t->comments)
        fprintf(t->stream, "# repro %.2f times the row above\n",
                t->before_us > 0 ? result->time_us.p50 / t->before_us : 0);
    t->before_us = result->time_us.p50;
    snprintf(cell[0], TABLE_CELL, "%s", c->test->name);
    snprintf(cell[1], TABLE_CELL, "%.60s", result->dim);
    snprintf(cell[2], TABLE_CELL, "%llu", (unsigned long long)c->bytes);
    snprintf(cell[3], TABLE_CELL, "%llu", (unsigned long long)c->count);
    snprintf(cell[4], TABLE_CELL, "%s", dtensor_dtype_name(c->dtype));
    snprintf(cell[5], TABLE_CELL, "%s", c->redop == PATTERN_NO_OP
             ? "none" : dtensor_redop_name(c->redop));
    for (int i = 0; i < 7; i++)
        table_number(number[i], cell[6 + i]);
    snprintf(cell[13], TABLE_CELL, "%llu", (unsigned long long)result->wrong);
    table_cells(t, cell);
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

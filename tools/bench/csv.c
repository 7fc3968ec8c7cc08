/* csv.c - one line per result, for spreadsheets
 *
 * The first line names the columns.  The plan may contain commas and is
 * quoted; nothing else needs quoting.
 */
#include "tools/bench/job.h"
#include "tools/bench/measure.h"
#include "tools/bench/pattern.h"
#include "tools/bench/report.h"
#include "tools/bench/session.h"
#include "tools/bench/tests.h"
#include "dtensor.h"

static void *csv_open(FILE *stream, const struct facts *facts,
                      const struct bench *b)
{
    (void)facts;
    (void)b;
    fputs("test,dim,bytes,count,dtype,redop,repro,ranks,time_us_min,"
          "time_us_p50,time_us_p99,time_us_max,algbw_GBps,busbw_GBps,"
          "bound_GBps,wrong,plan\n", stream);
    return stream;
}

static void csv_quoted(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (; *text; text++)
        fprintf(stream, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', stream);
}

static void csv_row(void *state, const struct bench_result *result)
{
    const struct bench_case *c = result->c;
    FILE *stream = state;

    fprintf(stream, "%s,", c->test->name);
    csv_quoted(stream, result->dim);
    fprintf(stream, ",%llu,%llu,%s,%s,%d,%d,%.3f,%.3f,%.3f,%.3f,"
            "%.6g,%.6g,%.6g,%llu,",
            (unsigned long long)c->bytes, (unsigned long long)c->count,
            dtensor_dtype_name(c->dtype), c->redop == PATTERN_NO_OP
            ? "none" : dtensor_redop_name(c->redop), c->repro,
            result->ranks, result->time_us.min, result->time_us.p50,
            result->time_us.p99, result->time_us.max, result->algbw,
            result->busbw, result->bound, (unsigned long long)result->wrong);
    csv_quoted(stream, result->plan);
    fputc('\n', stream);
}

static int csv_close(void *state, const struct summary *summary)
{
    (void)state;
    (void)summary;
    return 0;
}

const struct report_form report_csv = {
    "csv", csv_open, csv_row, NULL, csv_close
};

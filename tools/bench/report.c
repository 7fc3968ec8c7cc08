/* report.c - results in all requested forms
 *
 * A form is three functions: open, row, close.  Rank 0 writes the table to
 * stdout, and CSV and JSON to the named files; one of these may replace the
 * table on stdout.  Other ranks have no form, so the same code runs everywhere
 * and only rank 0 writes.
 */
#include "tools/bench/job.h"
#include "tools/bench/measure.h"
#include "tools/bench/options.h"
#include "tools/bench/pairs.h"
#include "tools/bench/report.h"
#include "tools/bench/session.h"
#include "tools/bench/tests.h"
#include "tools/draw/write.h"
#include "dtensor.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static void report_add(struct report *r, const struct report_form *form,
                       const char *path, FILE *stream)
{
    r->out[r->nout].form = form;
    r->out[r->nout].path = path;
    r->out[r->nout++].stream = stream;
}

/* Does that form go to stdout, in place of the table? */
static bool report_is_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

/* Add a form that goes to a file; a NULL path was not asked for. */
static int report_add_file(struct report *r, const struct report_form *form,
                           const char *path, struct dtensor_error *err)
{
    FILE *stream;

    if (!path)
        return 0;
    if (report_is_stdout(path)) {
        report_add(r, form, NULL, stdout);
        return 0;
    }
    stream = fopen(path, "w");
    if (!stream)
        return session_fail(err, DTENSOR_EINVAL, "--%s %s: cannot write it: "
                            "%s", form->name, path, strerror(errno));
    report_add(r, form, path, stream);
    return 0;
}

static int report_start(struct report *r, const struct facts *facts,
                        const struct bench *b, struct dtensor_error *err)
{
    for (int i = 0; i < r->nout; i++) {
        r->out[i].state = r->out[i].form->open(r->out[i].stream, facts, b);
        if (!r->out[i].state)
            return session_fail(err, DTENSOR_ENOMEM, "no memory for --%s",
                                r->out[i].form->name);
    }
    return 0;
}

static void report_abandon(struct report *r)
{
    const struct summary none = { .startup_ms = -1,
                                  .error = "not started" };

    for (int i = 0; i < r->nout; i++) {
        if (r->out[i].state)
            r->out[i].form->close(r->out[i].state, &none);
        if (r->out[i].path)
            fclose(r->out[i].stream);
    }
    r->nout = 0;
}

int report_open(struct report *r, const struct facts *facts,
                const struct bench *b, struct dtensor_error *err)
{
    const bool table = !report_is_stdout(b->opt->csv)
                    && !report_is_stdout(b->opt->json)
                    && !report_is_stdout(b->opt->svg);
    int rc = 0;

    memset(r, 0, sizeof *r);
    if (b->rank != 0)
        return 0;
    if (table)
        report_add(r, &report_table, NULL, stdout);
    rc = report_add_file(r, &report_csv, b->opt->csv, err);
    if (rc == 0)
        rc = report_add_file(r, &report_json, b->opt->json, err);
    if (rc == 0)
        rc = report_add_file(r, &report_svg, b->opt->svg, err);
    if (rc == 0)
        rc = report_start(r, facts, b, err);
    if (rc)
        report_abandon(r);
    r->progress = isatty(STDERR_FILENO) && r->nout > 0;
    r->comments = !b->opt->quiet && table;
    return rc;
}

/* A pipe says so before anything is written to it. */
int report_unread(const struct report *r, struct dtensor_error *err)
{
    struct pollfd out = { .fd = STDOUT_FILENO };

    if (r->nout > 0 && poll(&out, 1, 0) > 0 && out.revents & POLLERR)
        return session_fail(err, SESSION_UNREAD, "nobody reads stdout");
    return 0;
}

void report_progress(struct report *r, int i, int n,
                     const struct bench_case *c)
{
    if (!r->progress)
        return;
    fprintf(stderr, "\r\033[K[%d/%d] %s %s %llu bytes\r", i + 1, n,
            c->test->name, dtensor_dtype_name(c->dtype),
            (unsigned long long)c->bytes);
    fflush(stderr);
}

static void report_clear(const struct report *r)
{
    if (r->progress)
        fputs("\r\033[K", stderr);
}

void report_row(struct report *r, const struct bench_result *result)
{
    report_clear(r);
    for (int i = 0; i < r->nout; i++)
        r->out[i].form->row(r->out[i].state, result);
}

void report_pairs(struct report *r, const struct pairs *pairs)
{
    report_clear(r);
    for (int i = 0; i < r->nout; i++)
        if (r->out[i].form->pairs)
            r->out[i].form->pairs(r->out[i].state, pairs);
}

/* Are `#` lines written, by this rank? */
static bool report_says(const struct report *r)
{
    return r->stdout_only || (r->nout > 0 && r->comments);
}

void report_picture(struct report *r, const struct picture *pic)
{
    if (!report_says(r) || pic->nwords == 0)
        return;
    report_clear(r);
    draw_write(pic, false, "", "# ", stdout);
    fflush(stdout);
}

void report_note(struct report *r, const char *fmt, ...)
{
    va_list ap;

    if (!report_says(r))
        return;
    report_clear(r);
    printf("# ");
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
}

int report_close(struct report *r, const struct summary *summary,
                 struct dtensor_error *err)
{
    int rc = 0, failed;

    report_clear(r);
    for (int i = 0; i < r->nout; i++) {
        FILE *stream = r->out[i].stream;

        failed = r->out[i].form->close(r->out[i].state, summary);
        if (!failed && (ferror(stream) || fflush(stream) != 0))
            failed = errno ? errno : EIO;
        if (r->out[i].path && fclose(stream) != 0)
            failed = errno;
        if (failed && rc == 0)
            rc = session_fail(err, failed == EPIPE && !r->out[i].path
                              ? SESSION_UNREAD : DTENSOR_ESYS,
                              "%s: cannot write it: %s",
                              r->out[i].path ? r->out[i].path : "stdout",
                              strerror(failed));
    }
    r->nout = 0;
    return rc;
}

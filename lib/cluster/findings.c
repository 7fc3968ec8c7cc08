/* findings.c - errors and warnings of a cluster file, in the form of a compiler
 *
 * `pair.ini:6: error: unknown key "rank" in [nodes]; did you mean "ranks"?`:
 * editors can jump to the line.  A phase collects at most 20 findings and then
 * reports them in the order of their lines.
 */
#include "cluster/findings.h"
#include "base/error.h"
#include "cluster/file.h"
#include "dtensor.h"

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

/* Warnings fill at most half of the array, so that the first error is kept. */
static void findings_add(struct dtn_findings *findings, int line, bool warning,
                         const char *fmt, va_list ap)
{
    int i = findings->n;

    if (!warning)
        findings->nerrors++;
    if (i >= (warning ? DTN_MAX_FINDINGS / 2 : DTN_MAX_FINDINGS))
        return;
    findings->line[i] = line;
    findings->is_warning[i] = warning;
    vsnprintf(findings->text[i], sizeof findings->text[i], fmt, ap);
    findings->n++;
}

void dtn_finding(struct dtn_findings *findings, int line, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    findings_add(findings, line, false, fmt, ap);
    va_end(ap);
}

void dtn_finding_warn(struct dtn_findings *findings, int line, const char *fmt,
                      ...)
{
    va_list ap;

    va_start(ap, fmt);
    findings_add(findings, line, true, fmt, ap);
    va_end(ap);
}

static void findings_report(const struct dtn_findings *findings,
                            const char *line)
{
    if (findings->report)
        findings->report(line, findings->arg);
}

/* Index of the finding with the lowest line that is not reported yet.  Of two
 * on the same line it is the one found first.
 */
static int findings_earliest(const struct dtn_findings *findings,
                             const bool done[])
{
    int best = -1;

    for (int i = 0; i < findings->n; i++)
        if (!done[i] &&
            (best < 0 || findings->line[i] < findings->line[best]))
            best = i;
    return best;
}

int dtn_findings_flush(struct dtn_findings *findings, struct dtensor_error *err)
{
    bool done[DTN_MAX_FINDINGS] = { false };
    char text[PATH_MAX + DTN_WHY_SIZE + 64], where[16];
    int nerrors = findings->nerrors, nshown = 0;

    for (int k = 0; k < findings->n; k++) {
        int i = findings_earliest(findings, done);

        done[i] = true;
        where[0] = '\0';
        if (findings->line[i] > 0)
            snprintf(where, sizeof where, "%d:", findings->line[i]);
        snprintf(text, sizeof text, "%s:%s %s: %s", findings->path, where,
                 findings->is_warning[i] ? "warning" : "error",
                 findings->text[i]);
        findings_report(findings, text);
        if (!findings->is_warning[i] && nshown++ == 0)
            dtn_fail(err, DTENSOR_ECONF, "%s", text);
    }
    if (nerrors > nshown) {
        snprintf(text, sizeof text, "%s: error: %d more; correct these first",
                 findings->path, nerrors - nshown);
        findings_report(findings, text);
    }
    findings->n = 0;
    findings->nerrors = 0;
    return nerrors ? DTENSOR_ECONF : 0;
}

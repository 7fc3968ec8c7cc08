/* findings.h - what is wrong in a cluster file */
#ifndef DTN_CLUSTER_FINDINGS_H
#define DTN_CLUSTER_FINDINGS_H

#include "base/compiler.h"
#include "cluster/file.h"
#include "dtensor.h"

#include <stdbool.h>

#define DTN_MAX_FINDINGS 20

/* Collected during a phase, then reported in the order of their lines. */
struct dtn_findings {
    const char *path;
    dtensor_report_f *report;      /* NULL: nobody listens                    */
    void *arg;
    int n;                         /* kept in line[] and text[]               */
    int nerrors;                   /* all, kept or not                        */
    int line[DTN_MAX_FINDINGS];    /* 0: of the file as a whole               */
    bool is_warning[DTN_MAX_FINDINGS];
    char text[DTN_MAX_FINDINGS][DTN_WHY_SIZE];
};

/* Add an error, "WHAT; expected WHAT". */
void dtn_finding(struct dtn_findings *findings, int line, const char *fmt, ...)
    DTN_PRINTF(3, 4);
void dtn_finding_warn(struct dtn_findings *findings, int line, const char *fmt,
                      ...) DTN_PRINTF(3, 4);

/* Report and forget them; the first error goes to *err.  0 or ECONF. */
int dtn_findings_flush(struct dtn_findings *findings,
                       struct dtensor_error *err);

#endif

/* findings.h - errors and warnings of a cluster file */
#ifndef DTN_CLUSTER_FINDINGS_H
#define DTN_CLUSTER_FINDINGS_H

#include "base/compiler.h"
#include "cluster/file.h"
#include "dtensor.h"

#include <stdbool.h>

#define DTN_MAX_FINDINGS 20

/* Collected during a phase, then reported in the order of their lines. */
struct dtn_findings {
    const char *path;              /* of the cluster file, for messages       */
    dtensor_report_f *report;      /* gets each line of text, or NULL         */
    void *arg;                     /* argument of `report`                    */
    int n;                         /* findings in line[] and text[]           */
    int nerrors;                   /* errors, also those not kept             */
    int line[DTN_MAX_FINDINGS];    /* from 1; 0: the file as a whole          */
    bool is_warning[DTN_MAX_FINDINGS]; /* a warning, else an error            */
    char text[DTN_MAX_FINDINGS][DTN_WHY_SIZE]; /* words without path and line */
};

/* Add an error, "FACT; expected VALUES", or a warning. */
void dtn_finding(struct dtn_findings *findings, int line, const char *fmt, ...)
    DTN_PRINTF(3, 4);
void dtn_finding_warn(struct dtn_findings *findings, int line, const char *fmt,
                      ...) DTN_PRINTF(3, 4);

/* Report and remove all findings; the first error goes to *err.  0 or ECONF. */
int dtn_findings_flush(struct dtn_findings *findings,
                       struct dtensor_error *err);

#endif

/* report.h - facts and results, in several forms */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "tools/bench/bench.h"
#include "tools/draw/picture.h"
#include "dtensor.h"

#include <stdbool.h>

struct bench;
struct bench_case;
struct bench_result;
struct pairs;

struct facts {
    const char *version;          /* of the library                           */
    const char *build;            /* what the library can do                  */
    const char *launcher;         /* how ranks were started                   */
    const char *cluster;          /* name of the cluster                      */
    const char *memory;           /* where buffers come from                  */
    char date[32];                /* when the run began                       */
    char kernel[200];             /* of this host                             */
    char cpu[120];                /* model of the CPU                         */
    char options[400];            /* options that shape the numbers           */
    char warning[200];            /* "" or what makes times doubtful          */
    int nranks;                   /* ranks of the world                       */
    int nhosts;                   /* number of hosts                          */
    char (*host)[64];             /* [nhosts], in order of first rank         */
};

/* Collective.  Owns: facts_fini(). */
int facts_init(struct facts *facts, struct bench *b,
               struct dtensor_error *err);
void facts_fini(struct facts *facts);

/* What ends a report. */
struct summary {
    uint64_t wrong;               /* wrong elements in all rows               */
    uint64_t copied_bytes;        /* by all CPUs in all calls                 */
    double average_busbw;         /* GB/s, over the rows that move bytes      */
    double elapsed_s;             /* seconds of the whole run                 */
    double startup_ms;            /* below 0: not asked for                   */
    const char *error;            /* NULL: the run is complete                */
};

/* One form of output.  Only rank 0 has any. */
struct report_form {
    const char *name;             /* "table", "csv" or "json"                */
    /* begin; the state for the other functions, or NULL */
    void *(*open)(FILE *stream, const struct facts *facts,
                  const struct bench *b);
    /* write a result */
    void (*row)(void *state, const struct bench_result *result);
    void (*pairs)(void *state, const struct pairs *pairs);     /* or NULL     */
    int (*close)(void *state, const struct summary *summary);  /* 0 or errno  */
};
extern const struct report_form report_table, report_csv, report_json,
                                report_svg;

/* Was this tool built with libjansson? */
bool report_has_json(void);

#define REPORT_MAX 4
struct report {
    struct {
        const struct report_form *form;   /* how to write                     */
        FILE *stream;                     /* where to                         */
        const char *path;                 /* of a file; NULL: stdout          */
        void *state;                      /* what open() returned             */
    } out[REPORT_MAX];            /* the forms that were asked for            */
    int nout;                     /* number of them                           */
    bool progress;                /* stderr is a terminal                     */
    bool comments;                /* `#` lines on stdout                      */
    bool stdout_only;             /* of --dry-run: only `#` lines             */
};

int report_open(struct report *r, const struct facts *facts,
                const struct bench *b, struct dtensor_error *err);
/* 0, or SESSION_UNREAD. */
int report_unread(const struct report *r, struct dtensor_error *err);
void report_row(struct report *r, const struct bench_result *result);
void report_pairs(struct report *r, const struct pairs *pairs);
void report_progress(struct report *r, int i, int n,
                     const struct bench_case *c);
/* Between the other `#` lines. */
void report_picture(struct report *r, const struct picture *pic);
void report_note(struct report *r, const char *fmt, ...) BENCH_PRINTF(2, 3);
int report_close(struct report *r, const struct summary *summary,
                 struct dtensor_error *err);

#endif

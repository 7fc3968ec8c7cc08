/* options.h - the command line */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "tools/bench/calibrate.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_test;

#define BENCH_MAX_TESTS 32

/* Numbers are int64_t, so that the table can set any of them. */
struct bench_options {
    uint64_t given;               /* bit i: row i of the table was given      */
    int64_t min_bytes;            /* -b: smallest message, bytes              */
    int64_t max_bytes;            /* -e: largest message, bytes               */
    int64_t step_bytes;           /* -i: bytes between two messages; 0: by    */
                                  /* factor                                   */
    int64_t step_factor;          /* -f: ratio of two messages                */
    int64_t iters;                /* -n: timed iterations                     */
    int64_t warmup;               /* -w: iterations before them               */
    int64_t check;                /* -c: check every n-th iteration; 0: none  */
    int64_t min_time_ns;          /* --min-time of a row, ns                  */
    int64_t dtype;                /* DTENSOR_NDTYPES: all of them             */
    int64_t redop;                /* DTENSOR_NREDOPS: all of them             */
    int64_t root;                 /* -r: position in the mesh                 */
    int64_t registered;           /* -R: 1 dtensor_alloc(), 0 malloc()        */
    int64_t local;                /* --local: ranks to start; 0: none         */
    int64_t loop;                 /* --loop: calls; 0: measure                */
    int64_t nonblocking;          /* 1: start and wait                        */
    int64_t persistent;           /* 1: create once, then start and wait      */
    int64_t draw;                 /* 1: draw the layouts                      */
    int64_t repro;                /* 1: measure under repro too               */
    int64_t dry_run;              /* 1: list the cases, start nothing         */
    int64_t tolerance;            /* percent below the baseline               */
    int64_t startup;              /* 1: print the time to start               */
    int64_t check_fabric;         /* 1: measure every pair of ranks           */
    int64_t calibrate;            /* 1: print a [tuning] section              */
    int64_t quiet;                /* 1: result lines only                     */
    int64_t help;                 /* 1: print the help, and end               */
    int64_t version;              /* 1: print the version, and end            */
    const char *cluster;          /* -C: file; NULL: DTN_CLUSTER              */
    const char *mesh;             /* -m: name or shape; NULL: all ranks       */
    const char *dim;              /* -D: names of dimensions; NULL: all       */
    const char *shape;            /* --shape; NULL: by size                   */
    const char *from;             /* --from; NULL: S(0)                       */
    const char *to;               /* --to; NULL: S(1)                         */
    const char *json;             /* --json: file, or "-"; NULL: none         */
    const char *svg;              /* --svg: file, or "-"; NULL: none          */
    const char *baseline;         /* --baseline: file; NULL: none             */
    const char *csv;              /* --csv: file, or "-"; NULL: none          */
    int ntests;                   /* number of tests                          */
    const struct bench_test *test[BENCH_MAX_TESTS];
                                  /* the tests, in order                      */
};

/* Read the command line.  false: *why says in a line what is wrong with it. */
bool options_parse(struct bench_options *opt, int argc, char *argv[],
                   char *why, size_t why_size);
void options_help(FILE *stream);

/* The options that shape the numbers, as one would type them. */
void options_format(const struct bench_options *opt, char *text, size_t size);

#endif

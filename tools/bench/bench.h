/* bench.h - the parts of dtensor-bench
 *
 * options.c      the one table of options: getopt, defaults, --help
 * launch.c       --local: the tool starts its own ranks
 * session.c      context, meshes and buffers of a run; agreeing on a code
 * sweep.c        options -> the list of cases to run
 * tests.c        the table of tests: calls, busbw factors, expected results
 * pattern.c      element values whose reductions are exact in any order
 * value.c        small integers in and out of every dtype
 * flat.c         a case of a collective: buffers, filling, verifying
 * redistribute.c a case of redistribute
 * cross.c        how many bytes a redistribution must bring into a rank
 * measure.c      the timed loop
 * stats.c        min, p50, p99, max
 * soak.c         --loop and --startup
 * pairs.c        --check-fabric: every two ranks by themselves
 * outliers.c     which pairs are unlike the others, and the matrices
 * facts.c        what the header says of this run
 * report.c       results to table.c, csv.c and json.c
 * calibrate.c    what messages and bytes cost here, for [tuning]
 * rng.c          random numbers, printed or timed; rng.h lists its parts
 * main.c         all of it in order
 *
 * Only <dtensor.h>, libc and (json.c) libjansson are used.
 */
#ifndef BENCH_H
#define BENCH_H

#include "dtensor.h"

#include <stdbool.h>

#define BENCH_COUNT(array) (sizeof(array) / sizeof(array)[0])
#define BENCH_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Exit codes, the same on all ranks where they can still agree. */
enum bench_exit {
    BENCH_OK = 0,
    BENCH_WRONG = 1,              /* an element of a result was wrong         */
    BENCH_USAGE = 2,              /* command line or cluster file             */
    BENCH_LOST = 3,               /* a peer, a deadline or memory was lost    */
    BENCH_UNREAD = 141            /* nobody reads stdout: 128 + SIGPIPE       */
};

struct bench_job;
struct bench_test;

/* ----------------------------------------------------------- options.c --- */

#define BENCH_MAX_TESTS 32

/* Numbers are int64_t, so that the table can set any of them. */
struct bench_options {
    int64_t min_bytes, max_bytes, step_bytes, step_factor;
    int64_t iters, warmup, check, min_time_ns;
    int64_t dtype;                /* DTENSOR_NDTYPES: all of them             */
    int64_t redop;                /* DTENSOR_NREDOPS: all of them             */
    int64_t root, registered, local, loop;
    int64_t nonblocking, persistent;
    int64_t draw, repro, startup, check_fabric, calibrate, quiet, help, version;
    const char *cluster, *mesh, *dim;
    const char *shape, *from, *to;
    const char *json, *csv;
    int ntests;
    const struct bench_test *test[BENCH_MAX_TESTS];
};

/* Read the command line.  false: *why says in a line what is wrong with it. */
bool options_parse(struct bench_options *opt, int argc, char *argv[],
                   char *why, size_t why_size);
void options_help(FILE *stream);

/* The options that shape the numbers, as one would type them. */
void options_format(const struct bench_options *opt, char *text, size_t size);

/* "1000x1000" to 1000, 1000; how many numbers, or 0 when it is none such. */
int options_shape(const char *text, int64_t shape[DTENSOR_MAX_DIMS]);

/* ------------------------------------------------------------ launch.c --- */

/* Fork `n` ranks.  Each returns its rank with its DTN_ variables set; the
 * parent waits for all and returns -1 with the exit code in *codep: 0, or
 * that of the first rank that failed, after which the rest is ended.
 */
int launch_local(int n, int *codep);

/* CLOCK_MONOTONIC at which the launcher began to start ranks, as it says in
 * DTN_LAUNCH_NS; false, leaving *nsp alone, when it says nothing of use.
 */
bool launch_time_ns(int64_t *nsp);

/* ----------------------------------------------------------- session.c --- */

/* One rank's run. */
struct bench {
    const struct bench_options *opt;
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *all;    /* every rank, one dimension           */
    const struct dtensor_mesh *mesh;   /* what the tests run on               */
    char dim[2 * DTENSOR_NAME_MAX];    /* its name in the results             */
    int rank, nranks;                  /* in the world                        */
    int group;                         /* ranks of `mesh`                     */
    int position;                      /* of this rank in it, -1: outside     */
    bool told;                         /* another rank says what went wrong   */
    volatile uint64_t sink;            /* where buffers are read to           */
};

/* Call session_close() whether it succeeds or not. */
int session_open(struct bench *b, const struct bench_options *opt,
                 struct dtensor_error *err);
void session_close(struct bench *b);

/* Make the largest of all ranks' values everyone's. */
int session_max(struct bench *b, double value[], size_t n,
                struct dtensor_error *err);
int session_sum(struct bench *b, int64_t *value, struct dtensor_error *err);

/* Besides a negative enum dtensor_errcode: the reader of stdout has ended, as
 * head does.  That ends a run and is no error.
 */
#define SESSION_UNREAD (-1000)

/* Did every rank come here with rc 0?  If not, fail here too. */
int session_agree(struct bench *b, int rc, struct dtensor_error *err);

/* A buffer of the kind -R asks for, all of it touched. */
int session_alloc(struct bench *b, size_t size, void **memp,
                  struct dtensor_error *err);
void session_free(struct bench *b, void *mem);

/* Read it all, in words of 8 bytes. */
void session_touch(struct bench *b, const void *mem, size_t size);

int64_t session_now_ns(void);                          /* CLOCK_MONOTONIC    */
enum bench_exit session_exit_code(int errcode);

/* Set *err and return `code`. */
int session_fail(struct dtensor_error *err, int code, const char *fmt, ...)
    BENCH_PRINTF(3, 4);

/* ------------------------------------------------------------- value.c --- */

/* Element i of an array of `dtype`: an integer that the type represents
 * exactly in, any value out.
 */
void value_store(enum dtensor_dtype dtype, void *array, size_t i, int64_t v);
double value_load(enum dtensor_dtype dtype, const void *array, size_t i);

/* The largest integer up to which the type (or we) represent all: 256 for
 * bf16, 2048 for f16, 127 for i8.
 */
int64_t value_limit(enum dtensor_dtype dtype);

/* Does the type have the reduction?  Floats have no bit operations, complex
 * numbers no order, bool no average.
 */
bool value_op_fits(enum dtensor_dtype dtype, enum dtensor_redop op);

/* --------------------------------------------------------- calibrate.c --- */

/* Time calls over the mesh; rank 0 writes a [tuning] section. */
int calibrate(struct bench *b, FILE *stream, struct dtensor_error *err);

/* ----------------------------------------------------------- pattern.c --- */

#define PATTERN_PERIOD 1021       /* prime: no block length is a multiple     */
#define PATTERN_REDUCED (-1)      /* the source "reduction over all sources"  */
#define PATTERN_NO_OP DTENSOR_NREDOPS

/* What `nsources` ranks put in and what reductions over them give. */
struct patterns {
    enum dtensor_dtype dtype;
    enum dtensor_redop op;
    int nsources;
    size_t elem_bytes;
    unsigned char *image;         /* [nsources + 1][2 * PATTERN_PERIOD]       */
};

/* Every value is a multiple of `scale` (1 or more).  false: out of memory. */
bool patterns_init(struct patterns *p, enum dtensor_dtype dtype,
                   enum dtensor_redop op, int nsources, int scale);
void patterns_fini(struct patterns *p);

/* Elements index..index+count-1 of what `source` holds in iteration `iter`:
 * written, or compared with `got`; the latter returns how many are wrong, and
 * in *firstp (if any) the first, counted from 0.
 */
void pattern_fill(const struct patterns *p, int source, int64_t iter,
                  uint64_t index, size_t count, void *out);
size_t pattern_check(const struct patterns *p, int source, int64_t iter,
                     uint64_t index, size_t count, const void *got,
                     size_t *firstp);
double pattern_value(const struct patterns *p, int source, int64_t iter,
                     uint64_t index);

/* ---------------------------------------------------------------- jobs --- */

/* One row of the table to be. */
struct bench_case {
    const struct bench_test *test;
    enum dtensor_dtype dtype;
    enum dtensor_redop redop;     /* PATTERN_NO_OP: the test reduces nothing  */
    bool repro;                   /* the case before, under repro             */
    uint64_t bytes;               /* as nccl-tests counts them: see tests.c   */
    uint64_t count;               /* of the call; of unequal blocks the mean  */
    int ndim;                     /* redistribute: the global shape           */
    int64_t shape[DTENSOR_MAX_DIMS];
};

/* A case made ready to run on this rank.  `verify` returns how many elements
 * of the result of iteration `iter` are wrong and prints the first if `say`.
 */
struct job_ops {
    void (*fill)(struct bench_job *job, int64_t iter);
    int (*call)(struct bench_job *job, struct dtensor_error *err);
    void (*read)(struct bench_job *job);
    int (*verify)(struct bench_job *job, int64_t iter, bool say,
                  uint64_t *wrongp, struct dtensor_error *err);
    int (*soak)(struct bench_job *job, struct dtensor_error *err);
    void (*close)(struct bench_job *job);
};

struct bench_job {
    const struct job_ops *ops;
    struct bench *b;
    const struct bench_case *c;
    double incoming_bytes;        /* what must come into one rank             */
};

/* Print "rank 3 [i]: got 1.5, expected 2" on stderr. */
void job_say_wrong(const struct bench_job *job, const char *index, double got,
                   double expected);

/* ------------------------------------------------------------- tests.c --- */

#define TEST_GROUP (-1)           /* as many blocks as the group has ranks    */

/* The part of a result that came from one source. */
struct segment {
    int source;                   /* position, or PATTERN_REDUCED             */
    uint64_t from;                /* index of its first element in `in` there */
    size_t at;                    /* ... and in `out` here                    */
    size_t count;
};

enum test_flags {
    TEST_REDUCES = 1,             /* takes a redop                            */
    TEST_IN_PLACE = 2,            /* out is in, and only the root fills it    */
    TEST_UNEVEN = 4               /* blocks have unequal sizes                */
};

struct flat;
struct bench_test {
    const char *name;
    enum dtensor_collective coll; /* DTENSOR_NCOLLECTIVES: it is none         */
    unsigned flags;               /* enum test_flags                          */
    int in_blocks, out_blocks;    /* 0, 1 (the own) or TEST_GROUP             */
    double (*factor)(int group);  /* busbw = algbw x factor; NULL: the job's  */
    int (*open)(struct bench *b, const struct bench_case *c,
                struct bench_job **jobp, struct dtensor_error *err);
    int (*call)(struct flat *f, struct dtensor_error *err);
    bool (*expect)(const struct flat *f, int s, struct segment *seg);
};

extern const struct bench_test bench_tests[];
extern const int bench_ntests;

const struct bench_test *test_find(const char *name);

/* The count argument for `bytes`, at least 1, and the bytes it makes. */
void test_size(const struct bench_test *test, uint64_t bytes,
               size_t elem_bytes, int group, struct bench_case *c);

/* Elements of block r at position p of the group. */
size_t test_block(const struct flat *f, int p, int r);

/* -------------------------------------------------------------- flat.c --- */

struct flat {
    struct bench_job job;
    void *in, *out;
    size_t in_elems, out_elems, elem_bytes;
    struct patterns patterns;
    struct dtensor_call call;
    size_t *counts;               /* [group] this position's blocks           */
    struct dtensor_persistent *persistent;     /* --persistent, or NULL       */
};

int flat_open(struct bench *b, const struct bench_case *c,
              struct bench_job **jobp, struct dtensor_error *err);

/* ------------------------------------------------------ redistribute.c --- */

int redistribute_open(struct bench *b, const struct bench_case *c,
                      struct bench_job **jobp, struct dtensor_error *err);

/* The specs of the case: --from and --to, or the defaults for the mesh. */
int redistribute_specs(struct bench *b, const struct bench_case *c,
                       struct dtensor_spec *from, struct dtensor_spec *to,
                       struct dtensor_error *err);

/* ------------------------------------------------------------- cross.c --- */

/* Elements common to two boxes. */
int64_t cross_overlap(int ndim, const int64_t shape_a[],
                      const int64_t offset_a[], const int64_t shape_b[],
                      const int64_t offset_b[]);

/* Elements that must come into a rank which has `have` elements, needs `need`
 * of which it has `both`, each the reduction of `terms` ranks' terms.
 */
double cross_incoming(double have, double need, double both, int terms);

/* Bytes into all ranks together, and into the one that gets most. */
void cross_bytes(const struct dtensor_spec *from,
                 const struct dtensor_spec *to, double *totalp,
                 double *busiestp);

/* ------------------------------------------------------------- sweep.c --- */

/* All cases the options ask for, in order.  The caller frees *casesp. */
int sweep_make(const struct bench *b, struct bench_case **casesp, int *np,
               struct dtensor_error *err);

/* ------------------------------------------------------------- stats.c --- */

struct stats {
    double min, p50, p99, max;
};

/* The nearest-rank percentile of sorted values: the smallest value such that
 * at least `percent` of all are no larger.
 */
double stats_percentile(const double sorted[], size_t n, double percent);

/* Sorts `value`. */
void stats_of(double value[], size_t n, struct stats *stats);

/* ----------------------------------------------------------- measure.c --- */

struct bench_result {
    const struct bench_case *c;
    const char *dim;
    int ranks;
    struct stats time_us;
    double algbw, busbw, bound;   /* GB/s                                     */
    uint64_t wrong;
    uint64_t copied_bytes;        /* by all CPUs in all timed calls           */
    char plan[200];
};

int measure(struct bench_job *job, struct bench_result *result,
            struct dtensor_error *err);

/* -------------------------------------------------------------- soak.c --- */

/* What a process holds. */
struct footprint {
    int64_t rss_kib;
    int64_t fds;
};
void soak_footprint(struct footprint *fp);

/* Growth of the rank that grew most between 10 % of --loop and its end. */
int soak_run(struct bench_job *job, struct footprint *growth,
             uint64_t *wrongp, struct dtensor_error *err);

/* Milliseconds from the launch to the end of a first allreduce, of the slowest
 * rank.
 */
int soak_startup(struct bench *b, int64_t launch_ns, double *msp,
                 struct dtensor_error *err);

/* ------------------------------------------------------------- pairs.c --- */

enum pairs_what { PAIRS_LATENCY, PAIRS_RATE, PAIRS_NWHATS };

/* What every two of n ranks measured. */
struct pairs {
    int n;
    int *rank;                    /* [n] world ranks                          */
    char (*host)[64];             /* [n]                                      */
    double *latency_us;           /* [n * n], symmetric                       */
    double *rate;                 /* [n * n] GB/s from row to column          */
};

/* The position that `position` of n meets in a round, 0..pairs_rounds(n) - 1,
 * or -1.  In all rounds together every two meet once.
 */
int pairs_opponent(int n, int round, int position);
int pairs_rounds(int n);

/* Collective.  Owns: pairs_fini(), in any case. */
int pairs_measure(struct pairs *pairs, struct bench *b,
                  struct dtensor_error *err);
void pairs_fini(struct pairs *pairs);

/* ---------------------------------------------------------- outliers.c --- */

struct outlier {
    enum pairs_what what;
    int i, j;                     /* positions                                */
    double value, median;         /* of the pair, of all of its kind          */
};

bool pairs_same_host(const struct pairs *pairs, int i, int j);

/* The median over the pairs in one host, or over those between hosts. */
double pairs_median(const struct pairs *pairs, enum pairs_what what,
                    bool same_host);
bool pairs_outlier(enum pairs_what what, double value, double median);

/* All outliers; returns how many.  The caller frees *outliersp. */
int outliers_find(const struct pairs *pairs, struct outlier **outliersp);

/* The position that is in most of them, when that is more than half of its own
 * pairs; else -1.
 */
int outliers_culprit(const struct pairs *pairs, const struct outlier *outliers,
                     int n, enum pairs_what what);

/* Both matrices, and the outliers in words. */
void outliers_write(const struct pairs *pairs, FILE *out);

/* ------------------------------------------------------------- facts.c --- */

struct facts {
    const char *version, *build, *launcher, *cluster, *memory;
    char date[32], kernel[200], cpu[120], options[400], warning[200];
    int nranks, nhosts;
    char (*host)[64];             /* [nhosts], in order of first rank         */
};

/* Collective.  Owns: facts_fini(). */
int facts_init(struct facts *facts, struct bench *b,
               struct dtensor_error *err);
void facts_fini(struct facts *facts);

/* ------------------------------------------------------------ report.c --- */

/* What ends a report. */
struct summary {
    uint64_t wrong;
    uint64_t copied_bytes;
    double average_busbw;         /* GB/s, over the rows that move bytes      */
    double elapsed_s;
    double startup_ms;            /* below 0: not asked for                   */
    const char *error;            /* NULL: the run is complete                */
};

/* One form of output.  Only rank 0 has any. */
struct report_form {
    const char *name;
    void *(*open)(FILE *stream, const struct facts *facts,
                  const struct bench *b);
    void (*row)(void *state, const struct bench_result *result);
    void (*pairs)(void *state, const struct pairs *pairs);     /* or NULL     */
    int (*close)(void *state, const struct summary *summary);  /* 0 or errno  */
};
extern const struct report_form report_table, report_csv, report_json;

/* Was this tool built with libjansson? */
bool report_has_json(void);

#define REPORT_MAX 3
struct report {
    struct {
        const struct report_form *form;
        FILE *stream;
        const char *path;
        void *state;
    } out[REPORT_MAX];
    int nout;
    bool progress;                /* stderr is a terminal                     */
    bool comments;                /* `#` lines on stdout                      */
};

int report_open(struct report *r, const struct facts *facts,
                const struct bench *b, struct dtensor_error *err);
/* 0, or SESSION_UNREAD. */
int report_unread(const struct report *r, struct dtensor_error *err);
void report_row(struct report *r, const struct bench_result *result);
void report_pairs(struct report *r, const struct pairs *pairs);
void report_progress(struct report *r, int i, int n,
                     const struct bench_case *c);
void report_note(struct report *r, const char *fmt, ...) BENCH_PRINTF(2, 3);
int report_close(struct report *r, const struct summary *summary,
                 struct dtensor_error *err);

/* --------------------------------------------------------------- rng.c --- */

/* `dtensor-bench rng ...`, from argv[0] "rng" on; returns the exit code. */
int rng_main(int argc, char *argv[]);

#endif

/* op.h - the parts of dtensor-bench op
 *
 * op_options.c  the command line
 * op_cases.c    what can be measured, and the tensors for it
 * op.c          measuring
 * op_report.c   the table, JSON, and what they say of the targets
 * op_products.c products of many shapes beside the BLAS
 */
#ifndef BENCH_OP_H
#define BENCH_OP_H

#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "dtensor.h"

#include <stdbool.h>

struct op_options {
    int64_t ndim;                 /* of `shape`                               */
    int64_t shape[DTENSOR_MAX_DIMS];      /* global shape of the first input  */
    enum dtensor_dtype dtype;     /* of floats                                */
    int64_t ranks;                /* to start                                 */
    int64_t iters;                /* times that each case is measured         */
    const char *first;            /* placement of the first input             */
    const char *others;           /* and of others of two dimensions          */
    const char *json;             /* file, or "-"; NULL: none                 */
    bool repro;                   /* measure under repro                      */
    bool products;                /* products of many shapes instead          */
    bool help;                    /* print the help, and end                  */
    int ncases;                   /* number of cases                          */
    const struct op_case **cases; /* [ncases] in the order asked for          */
};

enum op_kind {
    OP_MOVES,                     /* bound: a copy of all its bytes           */
    OP_MULTIPLIES,                /* bound: the BLAS                          */
    OP_CALLS,                     /* the call itself; no bound                */
    OP_FINDS, OP_DECIDES          /* dtensor_op_infer(): asked before; new    */
};

/* What is measured, such as { "softmax", "softmax", "x", "dim=1" }. */
struct op_case {
    const char *name;             /* on the command line                      */
    const char *op;               /* the operator                             */
    const char *inputs;           /* a letter each: see op_cases.c            */
    const char *args;             /* of dtensor_op_args_parse()               */
    enum op_kind kind;            /* what is told of it                       */
    bool new_tensor;              /* dtensor_op(), not dtensor_op_into()      */
};
extern const struct op_case op_cases[];
extern const int op_ncases;

enum { OP_INPUTS = 3 };

/* A case that is ready to run on this rank. */
struct op_ready {
    const struct op_case *what;   /* its row                                  */
    struct dtensor_op_args args;  /* its arguments                            */
    int nin;                      /* inputs                                   */
    struct dtensor *in[OP_INPUTS];        /* [nin]                            */
    struct dtensor *out;          /* the output                               */
    struct dtensor_spec spec[OP_INPUTS];  /* OP_FINDS, OP_DECIDES: [nin]      */
    double bytes;                 /* of all local parts                       */
    double flops;                 /* of this rank's share of a product        */
};

/* One row. */
struct op_result {
    const struct op_case *what;   /* its case                                 */
    struct stats us;              /* microseconds of a call                   */
    double bound_us;              /* least time of the bound; 0: it has none  */
    double bytes, flops;          /* as in op_ready                           */
};

/* false: *why says in a line what is wrong with it. */
bool op_options_parse(struct op_options *opt, int argc, char *argv[],
                      char *why, size_t why_size);
void op_options_help(FILE *stream);

/* Make the tensors of a case; op_ready_fini() whether it succeeds or not. */
int op_ready_init(struct op_ready *r, struct dtensor_ctx *ctx,
                  const struct op_options *opt, const struct op_case *what,
                  struct dtensor_error *err);
void op_ready_fini(struct op_ready *r);

/* Only rank 0 calls them.  op_report_json() returns false if the file cannot be
 * written.
 */
void op_report_header(const struct op_options *opt, FILE *stream);
void op_report_row(const struct op_options *opt, const struct op_result *row,
                   FILE *stream);
void op_report_targets(const struct op_options *opt,
                       const struct op_result rows[], FILE *stream);
bool op_report_json(const struct op_options *opt,
                    const struct op_result rows[]);

/* Measure products of many shapes, of opt->dtype, and print them. */
int op_products(struct dtensor_ctx *ctx, const struct op_options *opt,
                struct dtensor_error *err);

/* `dtensor-bench op ...`, from argv[0] "op" on; returns the exit code. */
int op_main(int argc, char *argv[]);

#endif

/* plan.h - the parts of dtensor-plan
 *
 * ../dtensor-plan.c   all of it in order
 * options.c   the table of options: getopt and --help
 * job.c       from the options to a context, two specs and a plan
 * text.c      for people: steps, bytes matrix, cost, alternatives
 * layout.c    which rank holds what, as text
 * json.c      both for programs; its parts for other files are in json.h
 * op.c        which placements an operator takes
 * module.c    what each module of a plan moves; its parts are in model.h
 * ways.c      what a collective would cost, by every algorithm
 * winners.c   which algorithm is the fastest, by bytes and ranks
 * simulate.c  what it takes on a machine that is described, step by step;
 *             simulate_json.c for programs
 * beside.c    what runs at the same time
 * picture.c   as SVG or text: a mesh, a tensor, before and after, a schedule
 *
 * Only <dtensor.h>, ../draw, libc and (json.c) libjansson are used.
 */
#ifndef TOOLS_PLAN_H
#define TOOLS_PLAN_H

#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define PLAN_COUNT(array) (sizeof(array) / sizeof(array)[0])

#define PLAN_WAYS_MAX 32

enum plan_exit {
    PLAN_GOOD = 0,
    PLAN_BAD = 2,                 /* something is wrong with the request      */
    PLAN_UNREAD = 141             /* stdout has no reader: 128 + SIGPIPE      */
};

extern const char plan_program[];

/* ----------------------------------------------------------- options.c --- */

struct plan_options {
    uint64_t given;               /* bit i: row i of the table was given      */
    const char *mesh;             /* sizes or a name; NULL: not given, as all */
    const char *to_mesh;          /* sizes or a name; NULL: the same          */
    const char *names;            /* of the mesh dimensions                   */
    const char *cluster;          /* cluster file                             */
    const char *from;             /* placements before                        */
    const char *to;               /* placements after                         */
    const char *shape;            /* global shape                             */
    const char *dtype;            /* type of an element                       */
    const char *route;            /* the route to take                        */
    const char *max_scratch;      /* limit of scratch memory                  */
    const char *per_host;         /* ranks on each host                       */
    const char *collective;       /* its name, instead of from, to and shape  */
    const char *size;             /* bytes of its largest buffer              */
    const char *winners;          /* numbers of ranks: who is fastest on them */
    const char *op;               /* an operator, instead of all that         */
    const char *args;             /* its arguments, "dim=0"                   */
    const char *module;           /* a plan of the cluster file, instead      */
    char *const *inputs;          /* placements of inputs of the operator; or */
                                  /* the modules of a model                   */
    int ninputs;                  /* entries of inputs                        */
    bool constant;                /* the input of a model needs no gradient   */
    bool json;                    /* print JSON                               */
    const char *algorithm;        /* of a collective: the one to draw         */
    bool simulate;                /* a collective, step by step               */
    const char *topology;         /* links between hosts                      */
    const char *noise;            /* interruptions of CPUs                    */
    const char *slow;             /* ranks whose CPUs are slower              */
    const char *failed;           /* links that are down                      */
    const char *beside;           /* what runs at the same time               */
    const char *trace;            /* file for a trace of the simulation       */
    bool svg;                     /* draw SVG                                 */
    bool draw;                    /* draw text                                */
    bool matrix;                  /* bytes of every pair, of many ranks too   */
    bool layout;                  /* list what each rank holds                */
    bool help;                    /* print the help, and end                  */
    bool version;                 /* print the version, and end               */
};

/* 0, or PLAN_BAD after saying on stderr what is wrong. */
int plan_options_read(int argc, char **argv, struct plan_options *opt);
void plan_help(FILE *stream);

/* The collectives, and which of them has a name; -1: none. */
extern const char *const plan_collectives[DTENSOR_NCOLLECTIVES + 1];
int plan_collective(const char *name);

/* Can this build write JSON? */
bool plan_has_json(void);

/* One line on stderr and a hint; returns PLAN_BAD. */
int plan_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --------------------------------------------------------------- job.c --- */

#define PLAN_BESIDE_MAX 16

/* One thing that runs at the same time as what is simulated. */
struct plan_beside {
    struct dtensor_simulated asked;           /* it, of the two below         */
    struct dtensor_call call;                 /* a collective                 */
    struct dtensor_plan *plan;                /* a redistribute, or NULL      */
};

struct plan_job {
    struct dtensor_ctx *ctx;                  /* a context that only plans    */
    const struct dtensor_mesh *mesh;          /* all ranks of both specs      */
    const struct dtensor_mesh *to_mesh;       /* that of `to`; NULL: the same */
    struct dtensor_spec from;                 /* before                       */
    struct dtensor_spec to;                   /* after                        */
    struct dtensor_plan *plan;                /* NULL: there is only `from`   */
    struct dtensor_call call;                 /* a collective                 */
    int per_host;                             /* ranks on a host; 0: all, or  */
                                              /* what the cluster file says   */
    uint64_t size;                            /* bytes of its largest buffer  */
    int nways;                                /* algorithms; 0: no collective */
    struct dtensor_way ways[PLAN_WAYS_MAX];   /* their predicted times        */
    int nbeside;                              /* what runs at the same time   */
    struct plan_beside beside[PLAN_BESIDE_MAX]; /* each                       */
    char *beside_text;                        /* its words, cut               */
};

/* PLAN_GOOD, or PLAN_BAD after saying what is wrong; _close() in any case. */
int plan_job_open(const struct plan_options *opt, struct plan_job *job);
void plan_job_close(struct plan_job *job);

/* A collective of so many bytes in its largest buffer, for job.c and beside.c.
 */
int plan_call(const struct plan_options *opt, const struct dtensor_mesh *mesh,
              const char *name, const char *size, struct dtensor_call *call,
              uint64_t *bytesp);

/* A collective has a multiple of so many bytes in its largest buffer, which of
 * some is a block for each rank.
 */
size_t plan_call_unit(const struct dtensor_call *call, int ranks);

/* A plan from --from, --to, --shape and --route. */
int plan_redistribute(const struct plan_options *opt,
                      const struct dtensor_mesh *mesh,
                      struct dtensor_plan **planp);

/* beside.c: --beside into an open job; _close() before that of the job, in any
 * case.
 */
int plan_beside_open(const struct plan_options *opt, struct plan_job *job);
void plan_beside_close(struct plan_job *job);

/* "8192x8192" into at most 8 numbers; how many, or -1.  "" is none: a scalar.
 */
int plan_numbers(const char *text, int64_t number[DTENSOR_MAX_DIMS]);

/* The cost of a route, from a plan that is made with it.  false: there is no
 * such route, *whyp says why.
 */
bool plan_job_cost(const struct plan_job *job, enum dtensor_route route,
                   struct dtensor_plan_info *info, const char **whyp);

extern const char *const plan_routes[DTENSOR_NROUTES + 1];

/* -------------------------------------------------------------- output --- */

/* The most ranks of which every pair is shown. */
#define PLAN_MATRIX_MAX 64

void plan_text(const struct plan_job *job, bool matrix, FILE *stream);
void plan_layout(const struct dtensor_spec *spec, FILE *stream);

/* The runs of a rank along a dimension, for free(); NULL: out of memory. */
struct dtensor_run *plan_runs(const struct dtensor_spec *spec, int rank,
                              int dim, int64_t *np);

int plan_json(const struct plan_job *job, bool layout, FILE *stream);
int plan_op_json(const struct dtensor_op_call *call,
                 const struct dtensor_spec want[],
                 const struct dtensor_spec out[],
                 const struct dtensor_op_info *info, FILE *stream);
int plan_op(const struct plan_job *job, const struct plan_options *opt,
            FILE *stream);
int plan_module(const struct plan_job *job, const struct plan_options *opt,
                FILE *stream);
void plan_ways_text(const struct plan_job *job, FILE *stream);
int plan_ways_json(const struct plan_job *job, FILE *stream);
int plan_simulate(const struct plan_job *job, const struct plan_options *opt,
                  FILE *stream);

/* A way to do it that was played: an algorithm or a route. */
struct plan_simulated {
    const char *name;             /* of it                                    */
    double predicted_ns;          /* by the formula                           */
    bool taken;                   /* by a run                                 */
    struct dtensor_simulation result;         /* what was played              */
};
int plan_simulate_json(const struct plan_job *job,
                       const struct plan_options *opt,
                       const struct plan_simulated ways[], int n,
                       FILE *stream);

/* Is one way played, with details? */
static inline bool plan_simulates_one(const struct plan_options *opt)
{
    return opt->collective ? opt->algorithm != NULL
                           : strcmp(opt->route, "auto") != 0;
}

/* simulate_trace.c: the visitor of dtensor_simulate() that writes Trace Event
 * Format, which Perfetto reads, to a FILE; _begin() and _end() frame it.
 */
void plan_trace_begin(FILE *stream);
dtensor_simulated_f plan_trace_event;
void plan_trace_end(FILE *stream);

/* winners.c: needs no open job. */
int plan_winners(const struct plan_options *opt, FILE *stream);

int plan_picture(const struct plan_job *job, const struct plan_options *opt,
                 FILE *stream);

#endif

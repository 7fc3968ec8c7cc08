/* model.h - a model and the plan of a cluster file that is laid over it
 *
 * model.c         from the command line to a tree of modules
 * module.c        what each module moves, and all of it as text
 * module_json.c   the same for programs
 */
#ifndef TOOLS_PLAN_MODEL_H
#define TOOLS_PLAN_MODEL_H

#include "tools/plan/plan.h"

enum { PLAN_PARAMS = 2, PLAN_MOVES = 8, PLAN_PATH = 256 };

/* A redistribute that a call of a module makes. */
struct plan_move {
    const char *of;               /* "input", "output", or a parameter        */
    struct dtensor_plan *plan;    /* what is done                             */
};

/* A module: its dtensor_module_arg(). */
struct plan_unit {
    struct dtensor_op_args args;  /* of its operator                          */
    int nparams;                  /* parameters                               */
    const char *param_name[PLAN_PARAMS];        /* their names                */
    struct dtensor_spec param[PLAN_PARAMS];     /* how they lie               */
    char path[PLAN_PATH];         /* in the model; of the top "."             */
    char style[32];               /* that it got from the plan, or ""         */
    struct dtensor_spec out;      /* its output                               */
    int nmoves;                   /* redistributes                            */
    struct plan_move move[PLAN_MOVES]; /* in their order                      */
    unsigned reduces;             /* its operator reduces by itself           */
    double reduces_us;            /* and that takes so long                   */
};

/* Redistributes of a kind. */
struct plan_total {
    const char *what;             /* "allreduce"                              */
    int calls;                    /* redistributes that send something        */
    uint64_t bytes;               /* of all ranks                             */
    double us;                    /* predicted                                */
};

enum { PLAN_KINDS = 8 };

struct plan_model {
    const char *plan;             /* its name                                 */
    struct dtensor_module *top;   /* the tree                                 */
    const struct dtensor_mesh *mesh; /* on which it is laid                   */
    struct dtensor_spec in;       /* the input of the model                   */
    int nkinds;                   /* entries of total                         */
    struct plan_total total[PLAN_KINDS]; /* by kind                           */
};

/* PLAN_GOOD, or PLAN_BAD after saying what is wrong; _close() in any case. */
int plan_model_open(const struct plan_job *job, const struct plan_options *opt,
                    struct plan_model *model);
void plan_model_close(struct plan_model *model);

int plan_model_say(const char *path, const struct dtensor_error *err);
int plan_model_json(const struct plan_model *model, FILE *stream);

#endif

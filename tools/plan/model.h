/* model.h - a model and the plan of a cluster file that is laid over it
 *
 * model.c         from the command line to a tree of modules
 * styles.c        what the plan does to a module, as data
 * module.c        what each module moves, and all of it as text
 * module_json.c   the same for programs
 */
#ifndef TOOLS_PLAN_MODEL_H
#define TOOLS_PLAN_MODEL_H

#include "tools/plan/plan.h"

enum { PLAN_PARAMS = 2, PLAN_MOVES = 8, PLAN_PATH = 256 };

/* What a plan does to a module; the texts are in `line`. */
struct plan_style {
    char line[2048];              /* of dtensor_cluster_show(), in pieces     */
    const char *name;             /* of the style; NULL: the module has none  */
    const char *input;            /* layouts, "S(-1) or R"                    */
    const char *output;           /* layouts, "as it comes"                   */
    const char *params;           /* "linear: weight S(0), bias S(0); ..."    */
};

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
    struct plan_style style;      /* that it got from the plan                */
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
    char *text;                   /* the lines of that plan                   */
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

/* The lines of a plan, for free(); NULL: it was said why. */
char *plan_styles_read(const char *cluster, const char *plan);

/* The style of the module at `path`; style->name is NULL if it has none. */
void plan_style_find(const char *text, const char *path,
                     struct plan_style *style);

/* One of two layouts, style->input or output, for modules of `type`. */
const char *plan_style_layout(const struct plan_style *style,
                              const char *layouts, const char *type,
                              char word[80]);
/* The placement of a parameter. */
const char *plan_style_param(const struct plan_style *style, const char *type,
                             const char *param, char word[80]);

int plan_model_say(const char *path, const struct dtensor_error *err);
int plan_model_json(const struct plan_model *model, FILE *stream);

#endif

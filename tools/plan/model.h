/* model.h - a model and the plan of a cluster file that is laid over it
 *
 * model.c         from the command line to a tree of modules
 * wire.c          which modules give a module its inputs
 * module.c        what each module moves, and all of it as text
 * module_json.c   the same for programs
 */
#ifndef TOOLS_PLAN_MODEL_H
#define TOOLS_PLAN_MODEL_H

#include "tools/plan/plan.h"

enum { PLAN_PATH = 96, PLAN_INPUTS = 8 };

/* A module: its dtensor_module_arg(). */
struct plan_unit {
    struct dtensor_op_args args;  /* of its operator; first, as the library   */
                                  /* looks for them here                      */
    int heads;                    /* of the kind "heads"                      */
    int nin;                      /* inputs                                   */
    int in[PLAN_INPUTS];          /* children of its parent that give them;   */
                                  /* PLAN_IN: the input of the parent         */
    char path[PLAN_PATH];         /* in the model; of the top "."             */
    struct dtensor_spec out;      /* its output                               */
    uint64_t kept;                /* bytes that its calls keep for the        */
                                  /* backward on the first rank; of the top   */
                                  /* all                                      */
};
enum { PLAN_IN = -1 };

struct plan_model {
    const char *plan;             /* its name                                 */
    struct dtensor_ctx *ctx;      /* of the modules                           */
    struct dtensor_module *top;   /* the tree                                 */
    int nunits;                   /* modules                                  */
    const struct dtensor_mesh *mesh; /* on which it is laid                   */
    struct dtensor *in;           /* the input of the model                   */
    bool constant;                /* which needs no gradient                  */
    struct dtensor_tape *tape;    /* of the forward                           */
};

/* PLAN_GOOD, or PLAN_BAD after saying what is wrong; _close() in any case. */
int plan_model_open(const struct plan_job *job, const struct plan_options *opt,
                    struct plan_model *model);
void plan_model_close(struct plan_model *model);

int plan_model_say(const char *path, const struct dtensor_error *err);
int plan_model_json(const struct plan_model *model, FILE *stream);

/* wire.c: read "q,k,in" for a module that will be the next child of `parent`;
 * NULL: the child before it, or the parent's input.
 */
int plan_wire_read(const struct dtensor_module *parent, const char *word,
                   const char *names, struct plan_unit *unit);

/* The forward functions of modules that have children, and of "heads". */
dtensor_forward_f plan_forward_wired, plan_forward_heads;

/* moves.c: bytes that all parameters take on the first rank. */
uint64_t plan_param_bytes(const struct plan_model *model);

/* The scope of the counters in which calls of a module count. */
const char *plan_scope_of(const struct dtensor_module *module);

/* The next line of the counters, from *ip on, that moves something for a scope;
 * "all": gradients.  False: there is none.
 */
bool plan_move_next(const struct plan_model *model, const char *scope, int *ip,
                    struct dtensor_debug_line *line);

/* "reduce-scatter", "backward" */
const char *plan_kind_name(int kind);
const char *plan_direction_name(enum dtensor_direction direction);

#endif

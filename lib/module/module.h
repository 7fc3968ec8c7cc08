/* module.h - a module, as the files of this room see it
 *
 * module.c   making trees, and the parts of a module
 * path.c     names, paths, finding and walking
 * forward.c  what a module computes that has no function of its own
 * call.c     calls, with hooks
 * print.c    the tree as text
 * place.c    parameters, placed on a mesh all together or not at all
 * distribute.c  by a function that chooses placements
 * style.c    tensor-parallel styles, of modules
 * parallel.c the modules that patterns name get styles
 * plan.c     the same, from a plan of the cluster file
 */
#ifndef DTN_MODULE_MODULE_H
#define DTN_MODULE_MODULE_H

#include "dtensor.h"

#include <stdbool.h>

struct dtn_styled;

struct dtn_param {
    char name[DTENSOR_NAME_MAX + 1]; /* unique in the module                  */
    struct dtensor *tensor;       /* owned by the module                      */
};

struct dtn_hook {
    dtensor_hook_f *fn;           /* what it does                             */
    void *arg;                    /* its argument                             */
};

/* Where hooks stand. */
enum dtn_side { DTN_SIDE_INPUT, DTN_SIDE_OUTPUT, DTN_SIDES };

struct dtensor_module {
    struct dtensor_ctx *ctx;      /* held until the module is destroyed       */
    struct dtensor_module *parent; /* NULL: none                              */
    char name[DTENSOR_NAME_MAX + 1]; /* in the parent                         */
    char type[DTENSOR_NAME_MAX + 1]; /* what it is                            */
    dtensor_forward_f *forward;   /* never NULL                               */
    void *arg;                    /* the program's                            */
    const struct dtensor_mesh *mesh; /* over which it was distributed         */
    struct dtn_styled *styled;    /* its style, owned; NULL: none             */
    struct dtensor_module **children; /* [nchildren] in the order added       */
    int nchildren;                /* children                                 */
    int children_capacity;        /* of the array                             */
    struct dtn_param *params;     /* [nparams] in the order first given       */
    int nparams;                  /* parameters                               */
    int params_capacity;          /* of the array                             */
    struct dtn_hook *hooks[DTN_SIDES]; /* in the order added                  */
    int nhooks[DTN_SIDES];        /* entries of each                          */
    int hooks_capacity[DTN_SIDES]; /* of each array                           */
};

/* The forward function of a module of that type; NULL: there is none. */
dtensor_forward_f *dtn_forward_of(const char *type);

/* Room for one more hook on each side.  False: not enough memory. */
bool dtn_hooks_reserve(struct dtensor_module *module);

/* Add a hook for which there is room. */
void dtn_hook_put(struct dtensor_module *module, enum dtn_side side,
                  dtensor_hook_f *fn, void *arg);

/* Is it 1 to 32 letters, digits, "-" or "_"? */
bool dtn_module_name_ok(const char *name);

/* "up", "layers.0.up" or, of the top, "the module", for messages. */
#define DTN_PATH_SIZE 256
char *dtn_module_text(const struct dtensor_module *module,
                      char text[DTN_PATH_SIZE]);

#endif

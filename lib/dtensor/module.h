/* dtensor/module.h - modules: a model as a tree
 *
 * A module has parameters, children, and a function that computes its outputs.
 * Children and parameters have names: "layers.0.up" is the child "up" of the
 * child "0" of the child "layers" of a model, and "weight" its parameter.  A
 * program makes and calls the tree; a plan of such names distributes it.
 */
#ifndef DTENSOR_MODULE_H
#define DTENSOR_MODULE_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------- modules --- */

struct dtensor_module;

/* The arguments of a forward function. */
struct dtensor_forward {
    struct dtensor_module *module;   /* that is called                        */
    int nin;                         /* inputs                                */
    int nout;                        /* outputs                               */
    const struct dtensor *const *in; /* [nin] the inputs                      */
    struct dtensor **out;            /* [nout] for the outputs; NULL at first */
};

/* Make the outputs from the inputs, with operators and with the children of the
 * module; 0, or a negative code and a text in *err, which is there even if the
 * caller of the module gave none.  On failure the outputs that it made are
 * destroyed by the caller.
 */
typedef int dtensor_forward_f(const struct dtensor_forward *call,
                              struct dtensor_error *err);

/* Make a module without a parent.  `type` is any word that says what it is, and
 * `arg` is passed on to `forward`.  If `forward` is NULL, `type` must be one
 * of
 *
 *   sequential   its children one after another, in the order they were added
 *   embedding    dtensor_embedding() of its parameter and the input
 *   linear, layer_norm, rms_norm, relu, gelu, softmax ...  the operator of that
 *                name, on the inputs and then the parameters, in the order they
 *                were given; `arg` is its struct dtensor_op_args, or NULL
 *
 * where a norm is over as many dimensions as its first parameter has.
 *
 * Collective: no.   Blocks: no.
 * Owns:   *modulep is the caller's, for dtensor_module_destroy(); `arg` stays
 *         the caller's.
 * Errors: EINVAL  no context; no type, or too long; `forward` is NULL and there
 *                 is no such operator: names similar ones;  ENOMEM
 * Semantics: torch.nn.Module, Sequential, Linear, Embedding and so on.
 */
int dtensor_module_create(struct dtensor_ctx *ctx, const char *type,
                          dtensor_forward_f *forward, void *arg,
                          struct dtensor_module **modulep,
                          struct dtensor_error *err);

/* Take the module out of its parent, and free it with its children and all
 * their parameters; NULL is a no-op.
 */
void dtensor_module_destroy(struct dtensor_module *module);

/* Add a child, or give a parameter.  A name is 1 to 32 letters, digits, "-" or
 * "_", and no other child or no other parameter of the module has it; a
 * parameter that is given again takes the place of the one before, which is
 * destroyed.
 *
 * Collective: no.   Blocks: no.
 * Owns:   `child` and `t` are the module's from then on.
 * Errors: EINVAL  the name; `child` has a parent, or is one of the modules
 *                 above; another context;  ENOMEM
 * Semantics: Module.add_module, register_parameter.
 */
int dtensor_module_add(struct dtensor_module *module, const char *name,
                       struct dtensor_module *child,
                       struct dtensor_error *err);
int dtensor_module_set(struct dtensor_module *module, const char *name,
                       struct dtensor *t, struct dtensor_error *err);

/* A parameter by its name, NULL: none; and parameter `i` with its name in
 * *namep, NULL after the last one.
 *
 * Owns:   the module, until the parameter is given again or distributed.
 */
struct dtensor *dtensor_module_param(const struct dtensor_module *module,
                                     const char *name);
struct dtensor *dtensor_module_param_at(const struct dtensor_module *module,
                                        int i, const char **namep);

/* The child `i`, NULL after the last one; the module above, NULL: none.
 *
 * Owns:   its parent.
 */
struct dtensor_module *dtensor_module_child(const struct dtensor_module *module,
                                            int i);
struct dtensor_module *dtensor_module_parent(const struct dtensor_module *m);

/* The module at `path` below this one, "layers.0.up"; "" is itself.
 *
 * Collective: no.   Blocks: no.
 * Owns:   its parent.
 * Errors: EINVAL  no such module: says where the path ends, and the children
 *                 that are there
 * Semantics: Module.get_submodule.
 */
int dtensor_module_find(struct dtensor_module *module, const char *path,
                        struct dtensor_module **foundp,
                        struct dtensor_error *err);

/* Its name, "" without a parent; its type; its `arg`; the mesh over which it
 * was distributed, NULL: it was not.
 *
 * Owns:   the module; the mesh is the context's.
 */
const char *dtensor_module_name(const struct dtensor_module *module);
const char *dtensor_module_type(const struct dtensor_module *module);
void *dtensor_module_arg(const struct dtensor_module *module);
const struct dtensor_mesh *dtensor_module_mesh(const struct dtensor_module *m);

/* The tensor-parallel style that dtensor_parallelize() gave it, "colwise
 * output=R"; NULL: none.  The layout to which it brings input `i`, or output
 * `i` if `output` is 1; NULL: they stay as they come, or there is no style.
 * The placement that it gives a parameter; NULL: R, or there is no style.
 *
 * Owns:   the module, until its style is given up.
 * Semantics: its own.
 */
const char *dtensor_module_style(const struct dtensor_module *module);
const char *dtensor_module_layout(const struct dtensor_module *module,
                                  int output, int i);
const char *dtensor_module_placement(const struct dtensor_module *module,
                                     const char *param);

/* Write its path from the top, "layers.0.up", at most `size` bytes with a final
 * NUL; return the length it would have had, as snprintf does.
 */
int dtensor_module_path(const struct dtensor_module *module, char *text,
                        size_t size);

/* Call `visit` for the module and all below it, each before its children, until
 * it returns another value than 0, which is the result.
 *
 * Collective: no.   Blocks: no.
 * Errors: EINVAL  no `visit`;  and what `visit` returns
 * Semantics: Module.named_modules.
 */
typedef int dtensor_visit_f(struct dtensor_module *module, void *arg,
                            struct dtensor_error *err);
int dtensor_module_walk(struct dtensor_module *module, dtensor_visit_f *visit,
                        void *arg, struct dtensor_error *err);

/* Print the tree: a line for each module, with its type and its parameters.
 *
 * Collective: no.   Blocks: no.
 * Errors: ESYS  cannot write to `stream`
 * Semantics: Module.__repr__, with placements.
 */
int dtensor_module_print(const struct dtensor_module *module, FILE *stream,
                         struct dtensor_error *err);

/* --------------------------------------------------------- calling them --- */

/* Compute the outputs of a module: hooks on its inputs, its forward function,
 * hooks on its outputs.  apply() is that of the module at `path` below this
 * one, with one input and one output.  The text of an error begins with the
 * path of the module that failed.
 *
 * Collective: yes - all ranks of the mesh of the inputs, as their operators.
 * Blocks: as dtensor_op().
 * Owns:   out[0] to out[nout - 1] and *outp are the caller's, for
 *         dtensor_destroy(); untouched on failure.
 * Errors: EINVAL  apply(): no such module; an input is NULL; the forward
 *                 function left out an output; a hook made a tensor of another
 *                 shape or dtype;  and those of dtensor_op(), of the forward
 *                 function and of hooks
 * Semantics: Module.__call__.
 */
int dtensor_module_call(struct dtensor_module *module, int nin,
                        const struct dtensor *const in[], int nout,
                        struct dtensor *out[], struct dtensor_error *err);
int dtensor_module_apply(struct dtensor_module *module, const char *path,
                         const struct dtensor *in, struct dtensor **outp,
                         struct dtensor_error *err);

/* The arguments of a hook. */
struct dtensor_hook {
    struct dtensor_module *module;  /* that is called                         */
    void *arg;                      /* that was given with the hook           */
    int n;                          /* inputs, or outputs                     */
    const struct dtensor *const *t; /* [n] the inputs, or the outputs         */
    struct dtensor **made;          /* [n] for what replaces them; NULL at    */
                                    /* first                                  */
};

/* A hook may replace t[i] by a new tensor of the same shape and dtype, made[i];
 * if made[i] stays NULL, t[i] is kept.  If the hook fails, the call fails.
 * Owns: the new tensors become the library's.
 */
typedef int dtensor_hook_f(const struct dtensor_hook *call,
                           struct dtensor_error *err);

/* Add a hook on the inputs, or on the outputs.  Hooks run in the order in which
 * they were added; each gets what the one before has left.
 *
 * Collective: no.   Blocks: no.
 * Owns:   `arg` stays the caller's, as long as the module is called.
 * Errors: EINVAL  no hook;  ENOMEM
 * Semantics: Module.register_forward_pre_hook, register_forward_hook.
 */
int dtensor_module_on_input(struct dtensor_module *module,
                            dtensor_hook_f *hook, void *arg,
                            struct dtensor_error *err);
int dtensor_module_on_output(struct dtensor_module *module,
                             dtensor_hook_f *hook, void *arg,
                             struct dtensor_error *err);

/* --------------------------------------------------- spread over a mesh --- */

/* Choose the placements of a parameter on the mesh, such as "S(0)".  The text
 * must be valid until the call returns.  NULL: R along all mesh dimensions.
 */
typedef const char *dtensor_partition_f(const struct dtensor_module *module,
                                        const char *param, void *arg);

/* How a tree of modules is distributed. */
struct dtensor_distribution {
    dtensor_partition_f *partition; /* asked for each parameter of the tree;  */
                               /* NULL: all are R                             */
    dtensor_hook_f *input;     /* on the inputs of the top; or NULL           */
    dtensor_hook_f *output;    /* on the outputs of the top; or NULL          */
    void *arg;                 /* of the three, the caller's as long as the   */
                               /* module is called                            */
    int root;                  /* mesh position whose values are distributed; */
                               /* -1: each rank uses its own, nothing is sent */
};

/* Distribute the parameters of a module, and of all below it, over a mesh; NULL
 * is the mesh entered last.  Each parameter has to be whole on every rank of
 * the mesh: R on a mesh that contains it.  Parameters get new tensors all
 * together; after a failure the tree is as before.  `how` NULL is all R, with
 * root -1.
 *
 * Collective: yes - all ranks of the mesh, if `root` is not -1; else nothing is
 *         sent, but all ranks must make the same call.
 * Blocks: as dtensor_distribute().
 * Owns:   new tensors are the module's; pointers to the old ones are void.
 * Errors: EINVAL  a module of the tree is distributed already; placements that
 *                 a parameter cannot have; one that is not whole; the root; no
 *                 mesh was entered;  and those of dtensor_distribute()
 * Semantics: distribute_module.
 */
int dtensor_distribute_module(struct dtensor_module *module,
                              const struct dtensor_mesh *mesh,
                              const struct dtensor_distribution *how,
                              struct dtensor_error *err);

/* An entry of a plan: modules, and what is done with them.
 *
 * A pattern is names joined by dots, each with the wildcards of fnmatch(3):
 * "layers.*.up", "layers.[0-3].up".  A wildcard does not match a dot.  "" is
 * the module itself.  The styles are
 *
 *   colwise [output=LAYOUT]    linear, embedding: sharded along their output:
 *                              input R, output S(-1)
 *   rowwise [output=LAYOUT]    sharded along their input: linear has input
 *                              S(-1), embedding R; output R, of terms
 *   sequence [dim=N]           parameters R, input S(N), default S(1): norms
 *                              and the like on sharded sequences
 *   prepare [input=LAYOUT,...] [output=LAYOUT,...]
 *                              only brings inputs and outputs to layouts, one
 *                              for each; "-" leaves one as it is
 *
 * where a layout is a placement.  Hooks redistribute tensors that have other
 * placements.
 */
struct dtensor_style {
    const char *pattern;       /* of the paths of modules                     */
    const char *style;         /* such as "rowwise output=S(1)"               */
};

/* Give modules below `module` the styles of a plan of `n` entries, on a mesh of
 * one dimension; NULL is the mesh entered last.  Parameters without a style
 * become R on the mesh.  Each parameter must be whole on every rank of the
 * mesh.  `root` is the position whose values are distributed; -1: each rank
 * uses its own.  A second plan may give styles to modules that have none.
 * After a failure the tree is unchanged.
 *
 * Collective, blocks, owns: as dtensor_distribute_module().
 * Errors: EINVAL  the mesh has several dimensions; no such style or option;
 *                 a layout that the style cannot take; a pattern matches no
 *                 module: names the nearest; two styles for one module, or a
 *                 type that the style does not take;  and those of
 *                 dtensor_distribute_module()
 * Semantics: parallelize_module, with ColwiseParallel, RowwiseParallel,
 *         SequenceParallel, PrepareModuleInput, PrepareModuleOutput.
 */
int dtensor_parallelize(struct dtensor_module *module,
                        const struct dtensor_mesh *mesh, int n,
                        const struct dtensor_style plan[], int root,
                        struct dtensor_error *err);

/* The same by [plan "NAME"] of the cluster file, whose patterns and styles are
 * these.  `mesh` NULL is the mesh and the dimension that the plan names, or the
 * mesh entered last if it names none.
 *
 * Collective, blocks, owns: as dtensor_distribute_module().
 * Errors: EINVAL  no such plan: names the nearest;  and those of
 *                 dtensor_parallelize()
 * Semantics: parallelize_module, its plan a name instead of a dict.
 */
int dtensor_parallelize_plan(struct dtensor_module *module,
                             const struct dtensor_mesh *mesh, const char *plan,
                             int root, struct dtensor_error *err);

/* Check whether the plan of the cluster file fits the modules below `module`.
 * Nothing is changed.  `report`, which may be NULL, is called once for each
 * entry that does not fit, in the order of the file, with a text such as
 * "pair.ini:12: error: up: matches no module ..."; *err is the first of them.
 *
 * Collective: no.   Blocks: no.
 * Errors: EINVAL  an entry does not fit; no such plan; the mesh has several
 *                 dimensions;  ENOMEM
 * Semantics: its own.
 */
int dtensor_parallelize_check(struct dtensor_module *module,
                              const struct dtensor_mesh *mesh,
                              const char *plan, dtensor_report_f *report,
                              void *arg, struct dtensor_error *err);

#ifdef __cplusplus
}
#endif
#endif

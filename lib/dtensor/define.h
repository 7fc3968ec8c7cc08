/* dtensor/define.h - operators of the program
 *
 * A program can give the library an operator: a rule in letters, from which
 * follows how its inputs and outputs may lie; a function that computes the
 * parts of one rank; and how it is differentiated.  From then on it is called
 * as those of the library are, and its inputs are redistributed as its rule
 * says.  A name that the library has is overridden.
 */
#ifndef DTENSOR_DEFINE_H
#define DTENSOR_DEFINE_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The part of a tensor that this rank has, for a local function. */
struct dtensor_op_part {
    const struct dtensor_spec *spec; /* how the whole lies                    */
    int64_t shape[DTENSOR_MAX_DIMS]; /* of the part, in elements              */
    int64_t count;             /* its elements; may be 0                      */
    void *data;                /* them, row-major, in memory of the host      */
};

/* A call, for a local function. */
struct dtensor_op_run {
    const char *op;            /* the name of the operator                    */
    const struct dtensor_op_args *args; /* what else it was told              */
    int nin;                   /* number of inputs                            */
    int nout;                  /* number of outputs that are asked for        */
    const struct dtensor_op_part *in; /* [nin] not to be written              */
    const struct dtensor_op_part *out; /* [nout] of any content               */
    void *arg;                 /* of the definition                           */
};

/* Compute the parts of the outputs; 0, or a negative code and why. */
typedef int dtensor_local_f(const struct dtensor_op_run *run,
                               struct dtensor_error *err);

/* A call that is differentiated. */
struct dtensor_op_gradient {
    const char *op;            /* the name of the operator                    */
    const struct dtensor_op_args *args; /* what else it was told              */
    int nin;                   /* number of inputs                            */
    int nout;                  /* number of outputs                           */
    const struct dtensor *const *in; /* [nin] as they were; NULL: not kept    */
    const struct dtensor *const *out; /* [nout] the same                      */
    const struct dtensor *const *grad; /* [nout] gradients of the outputs,    */
                               /* which lie as these, R where these are P;    */
                               /* NULL: 0                                     */
    const int *wanted;         /* [nin] 1: the gradient of this is asked for  */
    void *arg;                 /* of the definition                           */
};

/* Make in[i], the gradient of input i, of its shape and dtype on its mesh, for
 * those that are wanted; NULL stays for 0.  They are the library's then.  0, or
 * a negative code and why.
 */
typedef int dtensor_backward_f(const struct dtensor_op_gradient *gradient,
                                  struct dtensor *in[],
                                  struct dtensor_error *err);

/* Inputs that can have an expression. */
#define DTENSOR_OP_GRADS 4

/* An operator of the program.  All texts are copied.
 *
 * `letters` has for each input and output the letters of its dimensions,
 * "mk,kn->mn".  A letter may be cut; if the output lacks it, each rank has a
 * term of the output, to be reduced by `reduce`; inputs without it are whole.
 * A capital letter is never cut.  A letter that only the output has is
 * args.count elements.  "*" before the letters are all dimensions left over,
 * broadcast; "*!" the same, but those of args.dim are never cut; "*-" those
 * without args.dim, or with size 1 if args.keep is set; "*&i" those with the
 * letter i in the place of args.dim.  "+" in place of "," between inputs
 * separates the terms of a sum, "*k,nk+n->*n".
 *
 * `terms` says which reductions pass, "s.>s .s>s": of each input and output
 * s sum, a average, x maximum, n minimum, p product, . none; L is s and a,
 * A is s, a, x and n.  NULL: inputs are reduced first.
 *
 * `types` has a letter for the dtype of each input and output, the last one
 * for all that follow, "t>t", which NULL is.  t is the first input's; n if it
 * has to be a number, r one that is not complex, f a float; b is bool, i an
 * index, of an output i64; c args.dtype; ? any.
 *
 * `grad` has for each input its gradient as an expression of operators, NULL
 * for 0: "mul(g,b)" is the gradient of the output times input 1.  g and h are
 * the gradients of outputs 0 and 1, a b c d the inputs, y z the outputs, 0a is
 * zeros like input 0; V, P are args.value and args.p, other numbers stand for
 * themselves, for scale, shift and pow.  spread(x) is a reduction of input 0
 * as large as that, turn(x) has its last two dimensions exchanged, cast(x) is
 * of the dtype of the input.  What was broadcast is summed.
 */
struct dtensor_op_def {
    const char *name;          /* at most 31 letters, digits and _            */
    const char *letters;       /* see above; NULL: the rule of the library    */
    const char *terms;         /* see above                                   */
    const char *types;         /* see above                                   */
    enum dtensor_redop reduce; /* of a letter that is cut and not in an       */
                               /* output: SUM, AVG, MAX, MIN or PROD          */
    int least;                 /* inputs that it needs; 0: all of `letters`   */
    dtensor_local_f *local; /* NULL: the library's                         */
    const char *grad[DTENSOR_OP_GRADS]; /* see above; all NULL: as `backward` */
    dtensor_backward_f *backward; /* instead of `grad`; NULL: if the       */
                               /* library has the name as there, else none    */
    const char *keeps;         /* what `backward` reads, "a b y"; NULL: all   */
    void *arg;                 /* for both functions                          */
};

/* Register an operator, or override one, for this context, until its end.
 *
 * Collective: yes - every rank of the world, with the same texts: they are
 *         compared.  In a context that only plans: no.
 * Blocks: until all ranks have called.
 * Owns:   nothing of `def` is kept but its functions and `arg`.
 * Errors: EINVAL  a text is wrong, or NULL and the library has no operator of
 *                 that name: says which;  a rank registers another one, or one
 *                 that it refuses: err->rank names it, on all ranks
 *         ENOMEM;  and those of dtensor_allreduce()
 * Semantics: register_sharding; torch.library.custom_op; autograd.Function.
 */
int dtensor_op_register(struct dtensor_ctx *ctx,
                        const struct dtensor_op_def *def,
                        struct dtensor_error *err);

#ifdef __cplusplus
}
#endif
#endif

/* dtensor/define.h - operators of the program
 *
 * A program can define an operator by three things: a rule in letters, from
 * which the placements of its inputs and outputs follow; a function that
 * computes the parts of one rank; and its gradient.  Then it is called like the
 * operators of the library, and its inputs are redistributed by its rule.  If
 * the library has an operator of that name, it is overridden.
 */
#ifndef DTENSOR_DEFINE_H
#define DTENSOR_DEFINE_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The part of a tensor that this rank has, for a local function. */
struct dtensor_op_part {
    const struct dtensor_spec *spec; /* of the tensor                         */
    int64_t shape[DTENSOR_MAX_DIMS]; /* of the part, in elements              */
    int64_t count;             /* its elements; may be 0                      */
    void *data;                /* elements, row-major, in host memory         */
};

/* A call, for a local function. */
struct dtensor_op_run {
    const char *op;            /* the name of the operator                    */
    const struct dtensor_op_args *args; /* its arguments                      */
    int nin;                   /* number of inputs                            */
    int nout;                  /* number of outputs to make                   */
    const struct dtensor_op_part *in; /* [nin] read only                      */
    const struct dtensor_op_part *out; /* [nout] to fill; any content         */
    void *arg;                 /* of the definition                           */
};

/* Compute the parts of the outputs; 0, or a negative code and a text in *err,
 * which is there even if the caller of the operator gave none.
 */
typedef int dtensor_local_f(const struct dtensor_op_run *run,
                            struct dtensor_error *err);

/* A call that is differentiated. */
struct dtensor_op_gradient {
    const char *op;            /* the name of the operator                    */
    const struct dtensor_op_args *args; /* its arguments                      */
    int nin;                   /* number of inputs                            */
    int nout;                  /* number of outputs                           */
    const struct dtensor *const *in; /* [nin] inputs; NULL: not kept          */
    const struct dtensor *const *out; /* [nout] outputs; NULL: not kept       */
    const struct dtensor *const *grad; /* [nout] gradients of the outputs,    */
                               /* with their placements, R for P; NULL stands */
                               /* for 0                                       */
    const int *wanted;         /* [nin] 1: make the gradient of this input    */
    void *arg;                 /* of the definition                           */
};

/* Make in[i], the gradient of each wanted input i, with its shape and dtype, on
 * its mesh; leave NULL for a gradient of 0.  Owns: they become the library's.
 * Returns 0, or a negative code and a text in *err, as a local function.
 */
typedef int dtensor_backward_f(const struct dtensor_op_gradient *gradient,
                               struct dtensor *in[],
                               struct dtensor_error *err);

/* Inputs that can have an expression. */
#define DTENSOR_OP_GRADS 4

/* An operator of the program.  All texts are copied.
 *
 * `letters` names the dimensions of each input and output, "mk,kn->mn".  A
 * mesh dimension may shard a letter.  If the output lacks that letter, each
 * rank computes a term of the output (see `reduce`); inputs that lack it are R.
 * A capital letter is never sharded.  A letter that only the output has is
 * args.count elements.  "*" before the letters is all remaining dimensions,
 * broadcast; "*!" the same, but those of args.dim are never sharded; "*-" those
 * except args.dim, or with size 1 there if args.keep is set; "*&i" those with
 * letter i in place of args.dim.  "+" instead of "," between inputs
 * separates the terms of a sum, "*k,nk+n->*n".
 *
 * `terms` lists which inputs may be Partial, "s.>s .s>s": for each input and
 * output s sum, a average, x maximum, n minimum, p product, . R; L is s and a,
 * A is s, a, x and n.  NULL: Partial inputs are reduced first.
 *
 * `types` has a letter for the dtype of each input and output; the last one
 * holds for all that follow; NULL is "t>t".  t is the first input's dtype; n
 * that, a number; r that, not complex; f that, a float; b is bool; i an index,
 * as output i64; c args.dtype; ? any.
 *
 * `grad` has the gradient of each input as an expression of operators, NULL
 * for 0: "mul(g,b)" is the gradient of the output times input 1.  g and h are
 * the gradients of outputs 0 and 1, a b c d the inputs, y z the outputs, 0a is
 * zeros like input 0; V, P are args.value and args.p, and other numbers are
 * constants for scale, shift and pow.  spread(x) expands a reduction of input 0
 * to its shape, turn(x) exchanges the last two dimensions, cast(x) converts to
 * the dtype of the input.  Gradients of broadcast inputs are summed.
 */
struct dtensor_op_def {
    const char *name;          /* at most 31 letters, digits and _            */
    const char *letters;       /* see above; NULL: the rule of the library    */
    const char *terms;         /* see above                                   */
    const char *types;         /* see above                                   */
    enum dtensor_redop reduce; /* of the terms, if a sharded letter is not in */
                               /* an output: SUM, AVG, MAX, MIN or PROD       */
    int least;                 /* fewest inputs; 0: all of `letters`          */
    dtensor_local_f *local;    /* NULL: the library's                         */
    const char *grad[DTENSOR_OP_GRADS]; /* see above; all NULL: as `backward` */
    dtensor_backward_f *backward; /* instead of `grad`; NULL: that of the     */
                               /* library's operator of this name, or none    */
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

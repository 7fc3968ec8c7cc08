/* rules.h - how operators are differentiated, as data */
#ifndef DTN_TAPE_RULES_H
#define DTN_TAPE_RULES_H

#include "tape/tape.h"
#include "dtensor.h"

enum { DTN_BACKWARD_IN = 4 };     /* inputs that have an expression           */
enum { DTN_OWN_OPERANDS = 32 };   /* inputs and outputs of a backward that    */
                                  /* the program gave                         */

struct dtn_express;

/* Compute grad[i] for the inputs i that have a value; it may make others. */
typedef int dtn_backward_f(const struct dtn_express *e,
                           struct dtensor *grad[], struct dtensor_error *err);

/* How an operator is differentiated.
 *
 * `grad` has an expression for each input: "mul(g,b)" is the operator mul of
 * the gradient of output 0 and input 1.  In it
 *   g, h        the gradients of outputs 0 and 1, zeros if there is none
 *   a b c d     the inputs, as they were passed
 *   y z         the outputs 0 and 1
 *   0a          zeros like input 0
 *   2.5, V, P   a number for scale, shift or pow: itself; args.value; args.p.
 *               Q is p - 1; M the part of a mean that an element is, 1/n; U and
 *               W 2/(n - 1) and 1/(n - 1); D 1/(1 - p),
 *               0 if p is 1
 *   spread(x)   x with the shape of input 0, of which it is a reduction
 *   along(x)    x with dimensions of 1 where input 0 was reduced
 *   turn(x)     the last two dimensions of x exchanged
 *   cast(x)     to the dtype of the input whose gradient it is
 *   name(x,..)  an operator, with the arguments of the call
 * NULL: the output does not depend on it, or not smoothly.  What is named is
 * kept when the call is noted.  Where an input was broadcast the result is
 * summed to its shape.
 */
struct dtn_backward {
    const char *op;               /* its name, or NAME/WORD of a variant      */
    const char *grad[DTN_BACKWARD_IN]; /* of inputs 0 and up, see above       */
    dtn_backward_f *all;          /* instead of expressions; or NULL          */
    const char *keeps;            /* ALL: the letters that it reads; NULL:    */
                                  /* none; "*": all operands; "2": the inputs */
                                  /* from 2 on                                */
    const char *(*variant)(const struct dtn_note *note); /* WORD of the row   */
                                  /* that holds for a call; or NULL           */
};

/* A backward that the program gave. */
struct dtn_own_backward {
    struct dtn_backward row;      /* first, so that it leads here             */
    dtensor_backward_f *function; /* of row.all; NULL: by expressions      */
    void *arg;                    /* for it                                   */
};

/* That of an operator that the program registered, for free(); NULL: it has
 * registered none of that name, or left its backward to the library.
 *   Errors: ENOMEM
 */
int dtn_own_backward_of(const struct dtensor_ctx *ctx, const char *op,
                        struct dtn_own_backward **ownp,
                        struct dtensor_error *err);

/* A function of the program.   Errors: ENOMEM */
int dtn_own_backward_make(dtensor_backward_f *function, const char *keeps,
                          void *arg, struct dtn_own_backward **ownp,
                          struct dtensor_error *err);

/* The row of a call that is noted; NULL: it has none. */
const struct dtn_backward *dtn_backward_of(const struct dtn_note *note);

/* Does no gradient pass, so that the outputs are constants? */
bool dtn_backward_stops(const struct dtn_backward *backward);

/* Functions of the table: shapes.c, rows.c, again.c, attention.c */
dtn_backward_f dtn_back_cat, dtn_back_stack, dtn_back_split, dtn_back_unbind,
    dtn_back_select, dtn_back_slice, dtn_back_pad, dtn_back_permute,
    dtn_back_view, dtn_back_expand, dtn_back_repeat, dtn_back_redistribute,
    dtn_back_index, dtn_back_index_select, dtn_back_index_put,
    dtn_back_index_put_add, dtn_back_embedding, dtn_back_norm,
    dtn_back_cross_entropy, dtn_back_attention, dtn_back_order,
    dtn_back_sharded_attention;

#endif

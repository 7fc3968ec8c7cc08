/* dtensor/tape.h - gradients
 *
 * A tape notes the calls that compute something from watched tensors, such as
 * the parameters of a model.  Then it computes the gradient of a result, such
 * as a loss, for each watched tensor.  A step of training is: begin, compute
 * the loss, end, backward, read the gradients.  The backward runs operators
 * too, so their rules give the placements of gradients; at the end the gradient
 * of a watched tensor gets the placements of that tensor.
 */
#ifndef DTENSOR_TAPE_H
#define DTENSOR_TAPE_H

#include "define.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- tapes --- */

/* A tape of a context.   Semantics: GradientTape of TensorFlow, autograd of
 * PyTorch.
 */
struct dtensor_tape;

/* Make an empty tape.
 *
 * Collective: no.   Blocks: no.
 * Owns:   *tapep is the caller's, for dtensor_tape_destroy().
 * Errors: EINVAL  ctx or tapep is NULL;  ENOMEM
 * Semantics: its own.
 */
int dtensor_tape_create(struct dtensor_ctx *ctx, struct dtensor_tape **tapep,
                        struct dtensor_error *err);

/* Free the tape with all that it holds; an active tape is ended first.  NULL is
 * a no-op.
 */
void dtensor_tape_destroy(struct dtensor_tape *tape);

/* Watch a tensor: the next backward and all later ones compute its gradient.
 * It may be the result of a noted call.  The tape holds the tensor, so the
 * program may destroy it before the tape.  Watching it again does
 * nothing.
 *
 * Collective: no - but all ranks of its mesh must watch the same ones, in the
 *         same order.
 * Blocks: no.
 * Errors: EINVAL  it has no gradient: it is no float, or complex; or it is of
 *                 another context;  ENOMEM
 * Semantics: Tensor.requires_grad_, retain_grad.
 */
int dtensor_tape_watch(struct dtensor_tape *tape, const struct dtensor *t,
                       struct dtensor_error *err);

/* begin makes the tape active: from now on operators, redistributes, clones and
 * dropout of this context are noted if an input depends on a watched tensor.
 * The tape holds what the backward needs, even if the program destroys it.
 * end stops that; begin may be called again to note more.  Only one tape of a
 * context can be active.  The first begin after a backward forgets all notes
 * and gradients.
 *
 * Not seen are writes through the pointer of dtensor_to_local(), and what is
 * computed from it.
 *
 * Collective: no - but all ranks must make the same calls.
 * Blocks: no.
 * Errors: EINVAL  begin: a tape is active; end: this one is not;  ENOMEM
 * Semantics: its own.
 */
int dtensor_tape_begin(struct dtensor_tape *tape, struct dtensor_error *err);
int dtensor_tape_end(struct dtensor_tape *tape, struct dtensor_error *err);

/* How the tape holds what a backward needs of an input that an operator has
 * redistributed.
 */
enum dtensor_keep {
    DTENSOR_KEEP_PASSED,       /* as it was passed: no copy; the backward     */
                               /* redistributes it again                      */
    DTENSOR_KEEP_USED          /* as the operator read it: a copy, which the  */
                               /* backward need not redistribute              */
};

/* Set that for the calls that are noted from now on; at first it is
 * DTENSOR_KEEP_PASSED.  Even with DTENSOR_KEEP_USED an input is held as it was
 * passed if no rank had to send data for it, or if the program itself called
 * the redistribute.  A copy belongs to the tape, so the program may then change
 * the input in place.
 *
 * Collective: no - but all ranks must choose the same.   Blocks: no.
 * Errors: EINVAL  tape is NULL, or there is no such choice
 * Semantics: its own; FSDP's reshard_after_forward is such a choice.
 */
int dtensor_tape_keep(struct dtensor_tape *tape, enum dtensor_keep keep,
                      struct dtensor_error *err);

/* A computation of the program itself: it read local parts or whole arrays of
 * the inputs, and made the outputs.
 */
struct dtensor_tape_call {
    const char *name;          /* for dtensor_tape_print() and errors         */
    int nin;                   /* number of inputs                            */
    int nout;                  /* number of outputs; with inputs at most 32   */
    const struct dtensor *const *in; /* [nin] what it read                    */
    struct dtensor *const *out; /* [nout] what it made                        */
    dtensor_backward_f *backward; /* makes the gradients of the inputs        */
    const char *keeps;         /* what it reads, "a b y": inputs a to d,      */
                               /* outputs y and z; NULL: all; static storage  */
    void *arg;                 /* for `backward`                              */
};

/* Note such a computation, so that gradients flow through it.  Typically it
 * reads arrays of dtensor_to_local() or dtensor_full_tensor(), and makes
 * tensors by dtensor_from_local() or dtensor_distribute().  If it is not noted,
 * its outputs are constants, or leaves if they are watched.
 *
 * The backward gets the gradient of each output in the placements of the
 * output, with R for P, so dtensor_to_local() of it is the gradient of the
 * part.  It makes the gradient of each input with any placements: S(0) for a
 * part of S(0), R for a term of P(sum), R for a whole array, or P(sum) if each
 * rank computed with a part of that array.
 *
 * Collective: no - but all ranks must make the same calls.
 * Blocks: no.
 * Errors: EINVAL  the call: says what is wrong with it; the tape is not
 *                 active;  ENOMEM
 * Semantics: autograd.Function; local_map; the grad_placements of to_local
 *         are those that the backward chooses.
 */
int dtensor_tape_note(struct dtensor_tape *tape,
                      const struct dtensor_tape_call *call,
                      struct dtensor_error *err);

/* Compute the gradient of `loss`, an output of a noted call, for all watched
 * tensors.  `grad` is the gradient with respect to `loss`, a tensor of its
 * shape and dtype on its mesh; NULL stands for 1 if `loss` has one
 * element.
 *
 * Kept tensors are freed during the backward, so the notes serve for one
 * backward only.  An active tape is ended.  The operators that the backward
 * runs may redistribute, even if dtensor_op_implied() is REFUSED.  If a tensor
 * has several uses, their gradients are added in the placements that they have.
 * At the end the gradients of watched tensors are redistributed, in one batch,
 * to the placements of these tensors, with R for Partial.
 *
 * Collective: yes - all ranks of the mesh.   Blocks: until this rank has its
 *         gradients and no peer needs others.
 * Errors: EINVAL  there was a backward; `loss` does not depend on a watched
 *                 tensor, or has several elements and `grad` is NULL; `grad`
 *                 does not fit; a tensor that is needed was changed in place
 *                 since the call that is differentiated; an operator has no
 *                 backward: says which;  and those of dtensor_op()
 * Semantics: Tensor.backward, once.
 */
int dtensor_tape_backward(struct dtensor_tape *tape,
                          const struct dtensor *loss,
                          const struct dtensor *grad,
                          struct dtensor_error *err);

/* The gradient of a watched tensor after the backward; NULL if the loss does
 * not depend on it, or if it is not watched.
 *
 * Owns: the tape, until dtensor_tape_clear(), destroy, or the begin after the
 *       backward.
 */
const struct dtensor *dtensor_tape_grad(const struct dtensor_tape *tape,
                                        const struct dtensor *t);

/* Free all notes and gradients.  Watched tensors stay watched. */
void dtensor_tape_clear(struct dtensor_tape *tape);

/* The bytes of this rank's parts of the tensors that the tape keeps for the
 * backward.  Each tensor counts once; watched tensors do not count.  `path`
 * NULL: of all calls; else of the tensors that a call of the module at this
 * path was the first to keep, without the modules below it; "" is no module.
 * After the backward 0.  In a context that only plans, those of the first rank.
 *
 * Collective: no.   Blocks: no.
 * Errors: EINVAL  tape or bytesp is NULL;  ENOMEM
 * Semantics: its own.
 */
int dtensor_tape_bytes(const struct dtensor_tape *tape, const char *path,
                       uint64_t *bytesp, struct dtensor_error *err);

/* Print the noted calls: results, inputs, and what is kept for the backward;
 * after it also the placements of each gradient, computed and final.
 *
 * Collective: no.   Blocks: no.
 * Errors: ESYS  cannot write to `stream`
 * Semantics: its own.
 */
int dtensor_tape_print(const struct dtensor_tape *tape, FILE *stream,
                       struct dtensor_error *err);

#ifdef __cplusplus
}
#endif
#endif

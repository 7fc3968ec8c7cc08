/* dtensor/tape.h - gradients
 *
 * A tape notes what is computed from tensors that are watched, such as the
 * parameters of a model, and computes the gradient of a result, such as a loss,
 * for each of them.  A step of training is: begin, compute the loss, end,
 * backward, take the gradients.  Forward and backward run the same operators,
 * so that gradients lie as the rules of operators say; those of watched tensors
 * end where these tensors lie.
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

/* Take the tape out of force, if it is, and free it with all that it holds;
 * NULL is a no-op.
 */
void dtensor_tape_destroy(struct dtensor_tape *tape);

/* Watch a tensor: gradients are computed for it, from this backward on until
 * the tape is destroyed.  It may be the result of a noted call.  The tape holds
 * the tensor, which may be destroyed before the tape.  Watching it again does
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

/* Put the tape in force: from now on operators, redistributes, clones and
 * dropout of this context are noted if they read something that depends on a
 * watched tensor.  The tape holds what the backward needs, also after
 * dtensor_destroy().  end: not any more.  Between them and again after it more
 * can be noted.  After a backward, begin forgets what was noted and the
 * gradients before.
 *
 * Not seen are writes through the pointer of dtensor_to_local(), and what is
 * computed from it.
 *
 * Collective: no - but all ranks must make the same calls.
 * Blocks: no.
 * Errors: EINVAL  begin: a tape is in force; end: this one is not;  ENOMEM
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

/* Choose that for the calls that are noted from now on; at first it is
 * DTENSOR_KEEP_PASSED.  With DTENSOR_KEEP_USED an input that no rank has sent
 * anything for is still held as it was passed, as are redistributes that the
 * program calls.  Such a copy is the tape's, so that the input may be changed
 * in place.
 *
 * Collective: no - but all ranks must choose the same.   Blocks: no.
 * Errors: EINVAL  tape is NULL, or there is no such choice
 * Semantics: its own; FSDP's reshard_after_forward is such a choice.
 */
int dtensor_tape_keep(struct dtensor_tape *tape, enum dtensor_keep keep,
                      struct dtensor_error *err);

/* A call that the program made itself: from the parts of the inputs, or from
 * whole arrays, to the parts of the outputs.
 */
struct dtensor_tape_call {
    const char *name;          /* for dtensor_tape_print() and errors         */
    int nin;                   /* number of inputs                            */
    int nout;                  /* number of outputs; with inputs at most 32   */
    const struct dtensor *const *in; /* [nin] what it read                    */
    struct dtensor *const *out; /* [nout] what it made                        */
    dtensor_backward_f *backward; /* makes the gradients of the inputs     */
    const char *keeps;         /* what that reads, "a b y": inputs a to d,    */
                               /* outputs y and z; NULL: all; static storage  */
    void *arg;                 /* for `backward`                              */
};

/* Note such a call, so that gradients pass it: what dtensor_to_local() or
 * dtensor_full_tensor() gave was computed with, and dtensor_from_local() or
 * dtensor_distribute() made tensors of the result.  Without it these are ends:
 * outputs are constants, or leaves if they are watched.
 *
 * The backward gets the gradient of each output as the output lies, R where
 * that is P, so that dtensor_to_local() of it is the gradient of the part.  It
 * makes the gradient of each input with any placements: that of a part of S(0)
 * is S(0), of a term P(sum) that is added up R, of a whole array R, or P(sum)
 * if each rank has computed with a part of it.
 *
 * Collective: no - but all ranks must make the same calls.
 * Blocks: no.
 * Errors: EINVAL  the call: says what is wrong with it; the tape is not in
 *                 force;  ENOMEM
 * Semantics: autograd.Function; local_map; the grad_placements of to_local
 *         are those that the backward chooses.
 */
int dtensor_tape_note(struct dtensor_tape *tape,
                      const struct dtensor_tape_call *call,
                      struct dtensor_error *err);

/* Compute the gradient of `loss`, a result of a noted call, for all watched
 * tensors.  `grad` is the gradient of what the program computes from `loss`, a
 * tensor of its shape and dtype on its mesh; NULL is 1, if `loss` has one
 * element.
 *
 * What the calls have kept is freed on the way, so that there is one backward
 * for what was noted; if the tape is in force it is not any more.  The
 * operators that it runs may redistribute, whatever dtensor_op_implied() says.
 * The gradients of several uses of a tensor are added as they lie, those of
 * watched tensors brought to the placements of these, R where they are Partial,
 * in one batch at the end.
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

/* The gradient of a watched tensor, after the backward; NULL if the loss does
 * not depend on it, or it is not watched.
 *
 * Owns: the tape, until dtensor_tape_clear(), destroy, or the begin after the
 *       backward.
 */
const struct dtensor *dtensor_tape_grad(const struct dtensor_tape *tape,
                                        const struct dtensor *t);

/* Forget what was noted, and the gradients; what is watched stays watched. */
void dtensor_tape_clear(struct dtensor_tape *tape);

/* The bytes of this rank's parts of what the tape keeps for the backward: each
 * tensor once, without those that are watched.  `path` NULL: of all calls; else
 * of tensors that a call of the module at this path was the first to keep,
 * without the modules below it; "" is no module.  After the backward, 0.  In a
 * context that only plans: what the first rank of the meshes would hold.
 *
 * Collective: no.   Blocks: no.
 * Errors: EINVAL  tape or bytesp is NULL;  ENOMEM
 * Semantics: its own.
 */
int dtensor_tape_bytes(const struct dtensor_tape *tape, const char *path,
                       uint64_t *bytesp, struct dtensor_error *err);

/* Print the noted calls: results, inputs, and what is kept for the backward;
 * after it also how each gradient lay, and where it was brought.
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

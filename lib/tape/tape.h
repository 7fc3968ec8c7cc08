/* tape.h - what a tape holds
 *
 * record.c    notes calls
 * backward.c  walks them from the last to the first
 * kept.c      the memory of what is kept
 * leaves.c    what is watched, and its gradients
 * own.c       backwards that the program gave
 * call.c      dtensor_tape_note()
 */
#ifndef DTN_TAPE_TAPE_H
#define DTN_TAPE_TAPE_H

#include "tape/values.h"
#include "tensor/recorder.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_backward;
struct dtn_own_backward;

/* A tensor that a noted call has read or written. */
struct dtn_noted {
    struct dtensor_spec spec;     /* how it lay                               */
    int value;                    /* of tape->values; -1: a constant          */
    struct dtensor *kept;         /* held for the backward; NULL: not needed  */
    uint64_t content;             /* its number then                          */
};

/* A noted call. */
struct dtn_note {
    char op[32];                  /* its name                                 */
    char where[96];               /* path of the module that made it, maybe   */
                                  /* cut; "": none                            */
    uint64_t scope;               /* of the counters, then; 0: they were off  */
    const struct dtn_backward *backward; /* NULL: it has none                 */
    struct dtn_own_backward *own; /* BACKWARD is of the program: it, for      */
                                  /* free(); else NULL                        */
    struct dtensor_op_args args;  /* what else it was told                    */
    int nin;                      /* inputs: operand[0] and up                */
    int nout;                     /* outputs: operand[nin] and up             */
    struct dtn_noted operand[]; /* [nin + nout]                             */
};

/* A watched tensor. */
struct dtn_leaf {
    struct dtensor *t;            /* held                                     */
    int value;                    /* of tape->values; -1: not yet             */
    struct dtensor *grad;         /* after a backward; or NULL                */
    struct dtensor_spec came;     /* how that lay before it was brought home  */
};

/* Redistributes of gradients to where their tensors lie. */
struct dtn_homing {
    struct dtensor_batch *batch;  /* NULL: none yet                           */
    int n;                        /* of the batch; entries of from, to        */
    struct dtensor_spec *from;    /* [n] one block with to                    */
    struct dtensor_spec *to;      /* [n]                                      */
};

struct dtensor_tape {
    struct dtn_recorder recorder; /* first, so that it leads to the tape      */
    struct dtensor_ctx *ctx;      /* held                                     */
    bool done;                    /* there was a backward                     */
    enum dtensor_keep keep;       /* of calls that are noted                  */
    struct dtn_values values;     /* all that depends on a leaf               */
    struct dtn_note **notes;      /* [nnotes] in order                        */
    int nnotes, notes_room;       /* in use; allocated                        */
    struct dtn_leaf *leaves;      /* [nleaves] in the order of watching       */
    int nleaves, leaves_room;     /* in use; allocated                        */
    struct dtn_homing homing;     /* of the last backward                     */
};

/* The dtn_recorder.record of a tape. */
int dtn_tape_record(struct dtn_recorder *recorder,
                    const struct dtn_called *called,
                    struct dtensor_error *err);

/* Does an input depend on a leaf? */
bool dtn_tape_depends(const struct dtensor_tape *tape,
                      const struct dtn_called *called);

/* Note a call that does.  `own` is a backward of the program, which is the
 * tape's then, also on failure; NULL: that of the library.   Errors: ENOMEM
 */
int dtn_tape_record_own(struct dtensor_tape *tape,
                        const struct dtn_called *called,
                        struct dtn_own_backward *own,
                        struct dtensor_error *err);

/* note.c: let go of what a note keeps; free it after that. */
void dtn_note_release(struct dtn_note *note);
void dtn_note_free(struct dtn_note *note);

/* leaves.c: give all leaves a value that have none.   Errors: ENOMEM */
int dtn_leaves_enter(struct dtensor_tape *tape, struct dtensor_error *err);

/* Bring the gradients of the values to the leaves.   Errors: of redistributes
 */
int dtn_leaves_collect(struct dtensor_tape *tape, struct dtensor_error *err);
void dtn_leaves_forget(struct dtensor_tape *tape);
void dtn_leaves_destroy(struct dtensor_tape *tape);

#endif

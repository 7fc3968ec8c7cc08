/* bound.h - a decision made ready to run on this rank */
#ifndef DTN_OP_BOUND_H
#define DTN_OP_BOUND_H

#include "math/array.h"
#include "op/cache.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parts begin at multiples of this, in bytes. */
enum { DTN_OP_ALIGN = 64 };
static inline size_t dtn_op_aligned(size_t bytes)
{
    return (bytes + DTN_OP_ALIGN - 1) / DTN_OP_ALIGN * DTN_OP_ALIGN;
}

struct dtn_local;

/* An input of a decision. */
struct dtn_op_input {
    bool moves;                   /* it is redistributed before               */
    bool sends;                   /* and some rank sends something for it     */
    size_t at;                    /* MOVES: where it lies in the scratch, in  */
                                  /* bytes                                    */
    size_t bytes;                 /* of this rank's part, moved               */
};

struct dtn_op_bound {
    const struct dtn_local *local;               /* what computes it          */
    bool moves;                   /* some input does                          */
    bool sends;                   /* some rank sends for some input           */
    bool warned;                  /* of that, by DTENSOR_IMPLIED_WARNED       */
    const struct dtensor_mesh *among;            /* the ranks over which the  */
                                  /* local function reduces; NULL: none       */
    size_t scratch;               /* bytes, of all inputs that move and of    */
                                  /* what is reduced                          */
    size_t shared;                /* where WORK lies in the scratch, if peers */
                                  /* should reach it; else SIZE_MAX           */
    size_t work;                  /* bytes that `local` works with, and, if   */
                                  /* STAGED, of copies of all parts           */
    bool staged;                  /* tensors are in memory of a device, and   */
                                  /* the CPU computes                         */
    bool kernels;                 /* they are, and kernels do                 */
    struct dtn_op_input *input;   /* [nin]                                    */
    struct dtn_array *in;         /* [nin] data is that of the run            */
    struct dtn_array *out;        /* [nout] the same                          */
    struct dtensor **made;        /* [nout] new outputs of the run            */
    uint64_t *last;               /* [nout] dtensor.first of the outputs that */
                                  /* fitted last; 0: none                     */
    void **place;                 /* [nout] STAGED: where they are            */
};

/* What `d` needs to run on this rank, in d->bound; made once.
 * Errors: EINVAL  the operator is not computed here;  ENOMEM
 */
int dtn_bind(struct dtn_decision *d, struct dtensor_error *err);

/* Bytes that a run works with on this rank beside inputs and outputs; 0 if the
 * operator is not computed here.   Errors: ENOMEM
 */
int dtn_bound_bytes(struct dtn_decision *d, size_t *bytesp,
                    struct dtensor_error *err);

#endif

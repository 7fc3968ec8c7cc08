/* local.h - what an operator does with the parts of one rank */
#ifndef DTN_OP_LOCAL_H
#define DTN_OP_LOCAL_H

#include "math/array.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_local;
struct dtn_op_device;

/* The parts of this rank, for one run.  Inputs lie as the decision wants them;
 * all arrays are packed, but for inputs of DTN_LOCAL_BROADCAST.
 */
struct dtn_parts {
    const char *op;               /* name of the operator                     */
    const struct dtensor_op_args *args;          /* what else it is told      */
    const struct dtensor_spec *want;             /* [nin] of the inputs       */
    const struct dtensor_spec *spec;             /* [nout] of the outputs     */
    int nin;                      /* number of inputs                         */
    int nout;                     /* outputs that the caller asked for        */
    int me;                       /* this rank's position in the mesh         */
    const struct dtensor_mesh *among;            /* the ranks that have parts */
                                  /* of the same rows, over which the local   */
                                  /* function reduces; NULL: rows are whole   */
    const struct dtn_array *in;   /* [nin]                                    */
    const struct dtn_array *out;  /* [nout]; data NULL: an empty part         */
    void *work;                   /* as many bytes as dtn_local.work said     */
    void *room;                   /* see math/room.h; NULL: none              */
    struct dtn_op_device *device; /* where it is computed (device.h); NULL:   */
                                  /* on the CPU                               */
};

/* Compute the outputs.   Errors: EINVAL  an element is no index */
typedef int dtn_local_f(const struct dtn_local *local,
                        const struct dtn_parts *parts,
                        struct dtensor_error *err);

/* Fill the outputs, of which this rank may have no part, for all ranks alike.
 * Errors: EINVAL  of this type or placement there are no random numbers
 */
typedef int dtn_local_fill_f(const struct dtn_local *local,
                             const struct dtn_parts *parts,
                             struct dtensor *const out[],
                             struct dtensor_error *err);

/* Bytes of memory to work with; no data is there yet. */
typedef size_t dtn_local_work_f(const struct dtn_local *local,
                                const struct dtn_parts *parts);

/* Can it be computed for a first input of this type? */
typedef bool dtn_local_takes_f(const struct dtn_local *local,
                               enum dtensor_dtype dtype);

enum {
    DTN_LOCAL_BROADCAST = 1,      /* inputs have the shape of output 0, with  */
                                  /* strides of 0                             */
    DTN_LOCAL_ALIAS = 2           /* an input may be output 0, if both have   */
                                  /* one spec                                 */
};

/* What an operator does on a rank: a function, which of its kind it is, and
 * what holds for it.
 */
struct dtn_local {
    const char *op;               /* name of the operator                     */
    dtn_local_f *run;             /* does it                                  */
    int which;                    /* as `run` understands it                  */
    unsigned flags;               /* DTN_LOCAL_                               */
    dtn_local_takes_f *takes;     /* NULL: all types of the rule              */
    dtn_local_work_f *work;       /* NULL: none                               */
    dtn_local_fill_f *fill;       /* NULL, or it makes the output, not `run`  */
};

/* NULL: nothing can be computed by that name. */
const struct dtn_local *dtn_local_of(const char *op);

/* args->dim[i] of `ndim` dimensions, none negative; it has been checked. */
static inline int dtn_local_dim(const struct dtn_parts *parts, int i, int ndim)
{
    const int dim = parts->args->dim[i];

    return dim < 0 ? dim + ndim : dim;
}

#endif

/* device.h - computing where the tensors are: on the CPU or on a GPU
 *
 * A local function calls these instead of those of lib/math.  Without
 * parts->device they are the same; with it they launch the kernel that does it
 * (cuda/compute.h).  Before a first run the local function is called to be
 * asked: nothing is launched then, no address is looked at, and what has no
 * kernel is noted.
 */
#ifndef DTN_OP_DEVICE_H
#define DTN_OP_DEVICE_H

#include "cuda/compute_rows.h"
#include "math/array.h"
#include "math/norm.h"
#include "math/pointwise.h"
#include "math/reduction.h"
#include "op/local/local.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_launch;
struct dtn_row_loss;
struct dtn_memory;
struct dtn_norm_backward;
struct dtn_order;

struct dtn_op_device {
    const struct dtn_memory *memory;  /* its kind; NULL: it is asked          */
    bool lacks;                   /* ASKED: something has no kernel           */
    size_t bytes;                 /* ASKED: of memory to work with            */
    void *work;                   /* as many, on the device                   */
    size_t taken;                 /* of these by the local function           */
    int rc;                       /* of what was launched: 0, DTN_LAUNCHED or */
                                  /* a code, after which nothing is launched  */
    struct dtn_launches launches; /* being made: 20 KiB, not for the stack of */
                                  /* each function                            */
};

/* Launch it, or note that there is no kernel. */
void dtn_op_launch(struct dtn_op_device *device, bool there,
                   struct dtn_launch *launch);

/* dtn_array_copy(), dtn_array_fill() of an array without gaps, and so on. */
void dtn_op_copy(const struct dtn_parts *parts, const struct dtn_array *out,
                 const struct dtn_array *in);
void dtn_op_fill(const struct dtn_parts *parts, const struct dtn_array *out,
                 double value);
void dtn_op_cast(const struct dtn_parts *parts, const struct dtn_array *out,
                 const struct dtn_array *in);
void dtn_op_where(const struct dtn_parts *parts, const struct dtn_array *out,
                  const struct dtn_array *condition,
                  const struct dtn_array *yes, const struct dtn_array *no);
void dtn_op_pointwise(const struct dtn_parts *parts, enum dtn_pointwise op,
                      const struct dtn_array *out,
                      const struct dtn_array *const in[],
                      const double args[2]);

/* `bytes` to work with, where it computes: on the CPU parts->work.  NULL: it is
 * only asked.
 */
void *dtn_op_room(const struct dtn_parts *parts, size_t bytes);

/* dtn_reduce_dims(), dtn_softmax(), dtn_norm(), dtn_softmax_finish() without
 * logarithm, dtn_cross_entropy(), dtn_extreme(), and gradients; of
 * dtn_norm_backward() `sums` is set here.
 */
void dtn_op_reduce(const struct dtn_parts *parts, enum dtn_reduction_kind kind,
                   const struct dtn_array *out, const struct dtn_array *in,
                   double p);
void dtn_op_softmax(const struct dtn_parts *parts, bool logarithm,
                    const struct dtn_array *out, const struct dtn_array *in,
                    int dim);
void dtn_op_norm(const struct dtn_parts *parts, const struct dtn_norm *norm);
void dtn_op_softmax_finish(const struct dtn_parts *parts,
                           const struct dtn_array *out,
                           const struct dtn_array *in,
                           const struct dtn_array *most,
                           const struct dtn_array *sum, int dim);
void dtn_op_cross_entropy(const struct dtn_parts *parts,
                          const struct dtn_row_loss *of);
void dtn_op_extreme(const struct dtn_parts *parts, bool largest,
                    const struct dtn_array *value,
                    const struct dtn_array *index,
                    const struct dtn_array *in, int dim);
void dtn_op_softmax_backward(const struct dtn_parts *parts, bool logarithm,
                             const struct dtn_array *in_grad,
                             const struct dtn_array *grad,
                             const struct dtn_array *out, int dim);
void dtn_op_norm_backward(const struct dtn_parts *parts,
                          const struct dtn_norm_backward *norm);

/* device_product.c: dtn_matmul(); of the workspace of the CPU it takes
 * parts->work.
 */
void dtn_op_matmul(const struct dtn_parts *parts, const struct dtn_array *out,
                   const struct dtn_array *a, const struct dtn_array *b,
                   unsigned flags);

/* dtn_index_wrong(), dtn_array_gather(), dtn_embedding(), dtn_index_select().
 */
int64_t dtn_op_index_wrong(const struct dtn_parts *parts,
                           const struct dtn_array *index, int64_t size,
                           int64_t *value);
void dtn_op_gather(const struct dtn_parts *parts, const struct dtn_array *out,
                   const struct dtn_array *in, int dim,
                   const struct dtn_array *index, int64_t first);
void dtn_op_embedding(const struct dtn_parts *parts,
                      const struct dtn_array *out,
                      const struct dtn_array *table,
                      const struct dtn_array *index, int64_t first);
void dtn_op_index_select(const struct dtn_parts *parts,
                         const struct dtn_array *out,
                         const struct dtn_array *in, int dim,
                         const struct dtn_array *index, int64_t first);

/* dtn_array_scatter(), dtn_embedding_backward(), dtn_triangle(),
 * dtn_cumulate().
 */
void dtn_op_scatter(const struct dtn_parts *parts, const struct dtn_array *out,
                    int dim, const struct dtn_array *index,
                    const struct dtn_array *from, bool adds);
void dtn_op_embedding_backward(const struct dtn_parts *parts,
                               const struct dtn_array *table,
                               const struct dtn_array *grad,
                               const struct dtn_array *index, int64_t first);
void dtn_op_triangle(const struct dtn_parts *parts, bool lower,
                     int64_t diagonal, const struct dtn_array *out,
                     const struct dtn_array *in);
void dtn_op_cumulate(const struct dtn_parts *parts, bool product,
                     const struct dtn_array *out, const struct dtn_array *in,
                     int dim);

/* dtn_order(); of the CPU's workspace it takes parts->work. */
void dtn_op_order(const struct dtn_parts *parts, const struct dtn_order *order,
                  const struct dtn_array *in);

#endif

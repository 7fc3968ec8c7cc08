/* device.c - all kernels, for nvcc or for the C compiler
 *
 * nvcc makes the image of them that is built into the library.  The C compiler
 * makes their twins: the same functions, a table of which a stand-in for the
 * driver and the tests use.
 */
#include "cuda/copies.h"
#include "cuda/fills.h"
#include "cuda/finish.h"
#include "cuda/folds.h"
#include "cuda/pointwise.h"
#include "cuda/columns.h"
#include "cuda/index.h"
#include "cuda/lines.h"
#include "cuda/orders.h"
#include "cuda/products.h"
#include "cuda/rows.h"

#ifndef __CUDACC__
#include "cuda/twin.h"

const struct dtn_twin dtn_twins[DTN_NKERNELS] = {
#define DTN_ROW(name, args, pointers)                                         \
    { "dtn_" #name, sizeof(struct dtn_##args), pointers, name##_run },
    DTN_KERNELS(DTN_ROW)
};
#endif

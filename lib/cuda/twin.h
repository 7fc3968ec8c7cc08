/* twin.h - the kernels as the C compiler compiled them, for tests
 *
 * A stand-in for the driver runs them where a GPU would run the image.
 */
#ifndef DTN_CUDA_TWIN_H
#define DTN_CUDA_TWIN_H

#include "cuda/kernels.h"

#include <stdint.h>

/* By number, enum dtn_kernel; names and sizes are those of dtn_kernels[]. */
struct dtn_twin {
    const char *name;                  /* of the kernel                       */
    size_t args_bytes;                 /* of its struct                       */
    size_t pointers;                   /* that the struct begins with         */

    /* Run all threads of block `block` of `blocks`, one after the other. */
    void (*run)(const void *args, uint64_t block, uint64_t blocks);
};
extern const struct dtn_twin dtn_twins[DTN_NKERNELS];

#endif

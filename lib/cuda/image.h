/* image.h - the kernels as nvcc compiled them, built into the library */
#ifndef DTN_CUDA_IMAGE_H
#define DTN_CUDA_IMAGE_H

#include <stddef.h>

/* A fatbin: machine code for several GPUs, and PTX for later ones.  A build
 * without nvcc has none; the size is 0 then.
 */
extern const unsigned char dtn_cuda_image[] __attribute__((aligned(16)));
extern const size_t dtn_cuda_image_size;           /* bytes                   */

#endif

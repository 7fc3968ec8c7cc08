/* no_image.c - the image of a build without nvcc: none */
#include "cuda/image.h"

const unsigned char dtn_cuda_image[1] = { 0 };
const size_t dtn_cuda_image_size = 0;

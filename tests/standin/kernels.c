/* kernels.c - kernels by name
 *
 * No image has code for this device, which is what a library that was built
 * without nvcc meets on every device.
 */
#include "tests/standin/standin.h"

CUresult standin_cuLibraryLoadData(CUlibrary *library, const void *image,
                                   CUjit_option *options, void **values,
                                   unsigned noptions,
                                   CUlibraryOption *library_options,
                                   void **library_values,
                                   unsigned nlibrary_options)
{
    CUresult rc = standin_enter_context("cuLibraryLoadData");

    return rc == CUDA_SUCCESS ? CUDA_ERROR_NO_BINARY_FOR_GPU : rc;
}

CUresult standin_cuLibraryUnload(CUlibrary library)
{
    CUresult rc = standin_enter("cuLibraryUnload");

    return rc == CUDA_SUCCESS ? CUDA_ERROR_INVALID_HANDLE : rc;
}

CUresult standin_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library,
                                    const char *name)
{
    CUresult rc = standin_enter("cuLibraryGetKernel");

    return rc == CUDA_SUCCESS ? CUDA_ERROR_NOT_FOUND : rc;
}

CUresult standin_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    CUresult rc = standin_enter("cuKernelGetFunction");

    return rc == CUDA_SUCCESS ? CUDA_ERROR_INVALID_HANDLE : rc;
}

CUresult standin_cuLaunchKernel(CUfunction function, unsigned grid_x,
                                unsigned grid_y, unsigned grid_z,
                                unsigned block_x, unsigned block_y,
                                unsigned block_z, unsigned shared_bytes,
                                CUstream handle, void **params, void **extra)
{
    CUresult rc = standin_enter("cuLaunchKernel");

    return rc == CUDA_SUCCESS ? CUDA_ERROR_INVALID_HANDLE : rc;
}

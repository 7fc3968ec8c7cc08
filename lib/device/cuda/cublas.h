/* cublas.h - the calls of cuBLAS that the library makes
 *
 * As calls.h: DTN_CUBLAS_CALLS(X) is one list, X(name, (types of parameters)),
 * of which the struct of function pointers and the loader are made.  The names
 * are NVIDIA's.  Where its header is installed, a test compiles this file with
 * DTN_CUDA_BY_NVIDIA beside it and compares them.
 */
#ifndef DTN_DEVICE_CUDA_CUBLAS_H
#define DTN_DEVICE_CUDA_CUBLAS_H

#define DTN_CUBLAS_STATUSES(X)                                                \
    X(CUBLAS_STATUS_SUCCESS, 0)                                               \
    X(CUBLAS_STATUS_NOT_INITIALIZED, 1)                                       \
    X(CUBLAS_STATUS_ALLOC_FAILED, 3)                                          \
    X(CUBLAS_STATUS_INVALID_VALUE, 7)                                         \
    X(CUBLAS_STATUS_ARCH_MISMATCH, 8)                                         \
    X(CUBLAS_STATUS_MAPPING_ERROR, 11)                                        \
    X(CUBLAS_STATUS_EXECUTION_FAILED, 13)                                     \
    X(CUBLAS_STATUS_INTERNAL_ERROR, 14)                                       \
    X(CUBLAS_STATUS_NOT_SUPPORTED, 15)                                        \
    X(CUBLAS_STATUS_LICENSE_ERROR, 16)

#define DTN_CUBLAS_NUMBERS(X)                                                 \
    DTN_CUBLAS_STATUSES(X)                                                    \
    X(CUBLAS_OP_N, 0)                                                         \
    X(CUBLAS_OP_T, 1)                                                         \
    X(CUBLAS_GEMM_DEFAULT, -1)                                                \
    X(CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, 16)                   \
    X(CUBLAS_COMPUTE_32F, 68)                                                 \
    X(CUBLAS_COMPUTE_64F, 70)                                                 \
    X(CUDA_R_32F, 0)                                                          \
    X(CUDA_R_64F, 1)                                                          \
    X(CUDA_R_16F, 2)                                                          \
    X(CUDA_R_16BF, 14)

#define DTN_CUBLAS_CALLS(X)                                                   \
    X(cublasCreate_v2, (cublasHandle_t *))                                    \
    X(cublasDestroy_v2, (cublasHandle_t))                                     \
    X(cublasGetVersion_v2, (cublasHandle_t, int *))                           \
    X(cublasSetStream_v2, (cublasHandle_t, cudaStream_t))                     \
    X(cublasSetMathMode, (cublasHandle_t, cublasMath_t))                      \
    X(cublasGemmStridedBatchedEx,                                             \
      (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,   \
       const void *, const void *, cudaDataType, int, long long, const void *, \
       cudaDataType, int, long long, const void *, void *, cudaDataType, int, \
       long long, int, cublasComputeType_t, cublasGemmAlgo_t))

#ifndef DTN_CUDA_BY_NVIDIA
enum {
#define DTN_CUBLAS_NUMBER(name, value) name = (value),
    DTN_CUBLAS_NUMBERS(DTN_CUBLAS_NUMBER)
#undef DTN_CUBLAS_NUMBER
};

typedef struct cublasContext *cublasHandle_t;
typedef struct CUstream_st *cudaStream_t;
typedef unsigned cublasStatus_t;
typedef unsigned cublasOperation_t;
typedef unsigned cublasMath_t;
typedef unsigned cublasComputeType_t;
typedef int cublasGemmAlgo_t;
typedef unsigned cudaDataType;
#endif

#endif

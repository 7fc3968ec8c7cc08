/* cublas.c - a cuBLAS that multiplies in the memory of the stand-in driver
 *
 * By the plainest loops, column by column, as its manual says.  A product is
 * three copies to pinned memory, a host function and a copy back, all of them
 * in the stream, so that it comes after what was enqueued before.
 *
 * DTN_STANDIN_CUBLAS_FAILS is a call that returns an error.  Compiled with
 * STANDIN_OLD it lacks one.
 */
#include "base/narrow.h"
#include "device/cuda/calls.h"
#include "device/cuda/cublas.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

enum { A, B, C, MATRICES };

/* One call: matrices as they are in memory, and a copy of each. */
struct product {
    struct product *next;         /* of the handle                            */
    int m, n, k, batch;           /* of op(A), op(B)                          */
    bool turned[MATRICES];        /* is it op T                               */
    int64_t ld[MATRICES], apart[MATRICES];
    unsigned char *copy[MATRICES]; /* pinned                                  */
    cudaDataType type;            /* of all elements                          */
    double alpha, beta;
};

struct cublasContext {
    CUstream stream;              /* where products go                        */
    struct product *products;     /* whose copies are freed in the end        */
};

static int products;              /* of this process                          */

/* ------------------------------------------------------------ the driver -- */

static struct {
    CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t, CUstream);
    CUresult (*call)(CUstream, CUhostFn, void *);
    CUresult (*alloc)(void **, size_t, unsigned);
    CUresult (*free)(void *);
    CUresult (*wait)(CUstream);
} driver;

typedef CUresult find_f(const char *name, void **fn, int version,
                        cuuint64_t flags, int *why);

static bool driver_find(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    find_f *find = NULL;
    int why;

    if (library)
        *(void **)&find = dlsym(library, "cuGetProcAddress_v2");
    return find && find("cuMemcpyAsync", (void **)&driver.copy, 4000, 0, &why)
                   == 0
        && find("cuLaunchHostFunc", (void **)&driver.call, 10000, 0, &why) == 0
        && find("cuMemHostAlloc", (void **)&driver.alloc, 2020, 0, &why) == 0
        && find("cuMemFreeHost", (void **)&driver.free, 2000, 0, &why) == 0
        && find("cuStreamSynchronize", (void **)&driver.wait, 2000, 0, &why)
           == 0;
}

/* --------------------------------------------------------------- handles -- */

#define DECLARE(name, params) EXPORTED cublasStatus_t name params;
DTN_CUBLAS_CALLS(DECLARE)
EXPORTED int dtn_standin_products(void);

static bool fails(const char *call)
{
    const char *asked = getenv("DTN_STANDIN_CUBLAS_FAILS");

    return asked && strcmp(asked, call) == 0;
}

int dtn_standin_products(void)
{
    return products;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    if (fails("cublasCreate_v2") || !driver_find())
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = calloc(1, sizeof **handle);
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    driver.wait(handle->stream);
    while (handle->products) {
        struct product *p = handle->products;

        handle->products = p->next;
        for (int i = 0; i < MATRICES; i++)
            driver.free(p->copy[i]);
        free(p);
    }
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
    *version = 130000;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

#ifndef STANDIN_OLD
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    return mode == CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION
         ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
#endif

/* -------------------------------------------------------------- products -- */

static size_t type_bytes(cudaDataType type)
{
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

static double element_get(cudaDataType type, const void *array, size_t i)
{
    const uint16_t *narrow = array;

    switch ((int)type) {
    case CUDA_R_64F:  return ((const double *)array)[i];
    case CUDA_R_16F:  return (double)dtn_f16_widen(narrow[i]);
    case CUDA_R_16BF: return (double)dtn_bf16_widen(narrow[i]);
    default:          return (double)((const float *)array)[i];
    }
}

static void element_set(cudaDataType type, void *array, size_t i, double x)
{
    switch ((int)type) {
    case CUDA_R_64F:
        ((double *)array)[i] = x;
        break;
    case CUDA_R_16F:
        ((uint16_t *)array)[i] = dtn_f16_narrow((float)x);
        break;
    case CUDA_R_16BF:
        ((uint16_t *)array)[i] = dtn_bf16_narrow((float)x);
        break;
    default:
        ((float *)array)[i] = (float)x;
    }
}

/* Element (i, j) of op(X), or of C. */
static size_t place(const struct product *p, int x, int b, int64_t i, int64_t j)
{
    const int64_t row = p->turned[x] ? j : i, column = p->turned[x] ? i : j;

    return (size_t)(b * p->apart[x] + column * p->ld[x] + row);
}

static void element_make(const struct product *p, int b, int i, int j)
{
    const size_t to = place(p, C, b, i, j);
    double sum = 0;

    for (int l = 0; l < p->k; l++)
        sum += element_get(p->type, p->copy[A], place(p, A, b, i, l))
             * element_get(p->type, p->copy[B], place(p, B, b, l, j));
    sum *= p->alpha;
    if (p->beta != 0)
        sum += p->beta * element_get(p->type, p->copy[C], to);
    element_set(p->type, p->copy[C], to, sum);
}

static void product_make(void *arg)
{
    const struct product *p = arg;

    for (int b = 0; b < p->batch; b++)
        for (int i = 0; i < p->m; i++)
            for (int j = 0; j < p->n; j++)
                element_make(p, b, i, j);
}

/* Bytes from its first element to its last. */
static size_t extent(const struct product *p, int x)
{
    const int rows = x == B ? p->k : p->m, columns = x == A ? p->k : p->n;

    return (1 + place(p, x, p->batch - 1, rows - 1, columns - 1))
           * type_bytes(p->type);
}

static bool sizes_are_right(const struct product *p)
{
    const int rows[] = { p->turned[A] ? p->k : p->m,
                         p->turned[B] ? p->n : p->k, p->m };
    bool right = p->m > 0 && p->n > 0 && p->k > 0 && p->batch > 0;

    for (int x = 0; x < MATRICES; x++)
        right = right && p->ld[x] >= rows[x];
    return right;
}

static cublasStatus_t product_push(struct cublasContext *handle,
                                   struct product *p,
                                   const void *const at[MATRICES])
{
    CUresult rc = 0;

    p->next = handle->products;
    handle->products = p;
    for (int x = 0; x < MATRICES && rc == 0; x++) {
        rc = driver.alloc((void **)&p->copy[x], extent(p, x), 0);
        if (rc == 0)
            rc = driver.copy((CUdeviceptr)(uintptr_t)p->copy[x],
                             (CUdeviceptr)(uintptr_t)at[x], extent(p, x),
                             handle->stream);
    }
    if (rc == 0)
        rc = driver.call(handle->stream, product_make, p);
    if (rc == 0)
        rc = driver.copy((CUdeviceptr)(uintptr_t)at[C],
                         (CUdeviceptr)(uintptr_t)p->copy[C], extent(p, C),
                         handle->stream);
    products++;
    return rc == 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

static double scale_of(cublasComputeType_t compute, const void *at)
{
    return compute == CUBLAS_COMPUTE_64F ? *(const double *)at
                                         : (double)*(const float *)at;
}

cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m,
    int n, int k, const void *alpha, const void *a, cudaDataType a_type,
    int lda, long long a_apart, const void *b, cudaDataType b_type, int ldb,
    long long b_apart, const void *beta, void *c, cudaDataType c_type, int ldc,
    long long c_apart, int batch, cublasComputeType_t compute,
    cublasGemmAlgo_t algo)
{
    const void *const at[] = { a, b, c };
    const bool wide = c_type == CUDA_R_64F;
    struct product *p;

    if (fails("cublasGemmStridedBatchedEx"))
        return CUBLAS_STATUS_INTERNAL_ERROR;
    if (compute != (cublasComputeType_t)(wide ? CUBLAS_COMPUTE_64F
                                              : CUBLAS_COMPUTE_32F)
        || a_type != c_type || b_type != c_type || algo != CUBLAS_GEMM_DEFAULT)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    p = calloc(1, sizeof *p);
    if (!p)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *p = (struct product){
        .m = m, .n = n, .k = k, .batch = batch,
        .turned = { ta == CUBLAS_OP_T, tb == CUBLAS_OP_T, false },
        .ld = { lda, ldb, ldc }, .apart = { a_apart, b_apart, c_apart },
        .type = c_type, .alpha = scale_of(compute, alpha),
        .beta = scale_of(compute, beta) };
    if (sizes_are_right(p))
        return product_push(handle, p, at);
    free(p);
    return CUBLAS_STATUS_INVALID_VALUE;
}

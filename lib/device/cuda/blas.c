/* blas.c - matrix products by cuBLAS, which is loaded when it is first needed
 *
 * The library is not linked with cuBLAS, which has some hundred megabytes.  The
 * first product loads it: the file that DTN_CUBLAS names, else libcublas.so.13
 * or .12.  Without cuBLAS the library's own kernels multiply, and the log says
 * why.
 *
 * cuBLAS stores matrices column by column; ours are stored row by row.  So
 * cuBLAS sees each of our matrices transposed.  The transpose of a b is the
 * transpose of b times the transpose of a, so b is passed to cuBLAS as the
 * first factor.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "device/cuda/cublas.h"
#include "device/cuda/cuda.h"
#include "device/memory.h"
#include "dtensor.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dtn_cublas {
    const char *name;             /* of the library                           */
#define CUBLAS_FIELD(name, params) cublasStatus_t (*name) params;
    DTN_CUBLAS_CALLS(CUBLAS_FIELD)
#undef CUBLAS_FIELD
};

/* The process has one; it is never unloaded. */
static struct dtn_cublas cublas;
static char missing[300];         /* why there is none; "": there is          */

/* ------------------------------------------------------------- loading --- */

/* Fill in all calls.  false: one of them is missing. */
static bool cublas_fill(void *handle)
{
#define CUBLAS_CALL(call, params)                                             \
    *(void **)&cublas.call = dlsym(handle, #call);                            \
    if (!cublas.call && !missing[0])                                          \
        snprintf(missing, sizeof missing, "%s has no %s (too old)",           \
                 cublas.name, #call);
    DTN_CUBLAS_CALLS(CUBLAS_CALL)
#undef CUBLAS_CALL
    return !missing[0];
}

static void cublas_load(void)
{
    static const char *const usual[] = { "libcublas.so.13", "libcublas.so.12" };
    const char *asked = getenv("DTN_CUBLAS");
    const char *const *names = asked ? &asked : usual;
    const size_t n = asked ? 1 : DTN_COUNT(usual);
    void *handle = NULL;

    if (asked && strcmp(asked, "none") == 0) {
        snprintf(missing, sizeof missing, "DTN_CUBLAS is none");
        return;
    }
    for (size_t i = 0; i < n && !handle; i++) {
        cublas.name = names[i];
        handle = dlopen(cublas.name, RTLD_NOW | RTLD_LOCAL);
        if (!handle && i == 0)
            snprintf(missing, sizeof missing, "%.200s (install cuBLAS, or name "
                     "the file by DTN_CUBLAS)", dlerror());
    }
    if (!handle)
        return;
    missing[0] = '\0';
    if (!cublas_fill(handle))
        dlclose(handle);
}

/* ------------------------------------------------------------- opening --- */

static const char *status_name(cublasStatus_t status)
{
    switch ((int)status) {
#define CUBLAS_NAME(name, value) case value: return #name;
    DTN_CUBLAS_STATUSES(CUBLAS_NAME)
#undef CUBLAS_NAME
    default: return "unknown status";
    }
}

static int blas_result(struct dtn_cuda *cuda, const char *call,
                       cublasStatus_t status)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return 0;
    return dtn_fail(&cuda->failure, status == CUBLAS_STATUS_ALLOC_FAILED
                    ? DTENSOR_ENOMEM : DTENSOR_ESYS, "%s: %s of %s: %s (%d; "
                    "DTN_CUBLAS=none does without it)", cuda->name, call,
                    cublas.name, status_name(status), (int)status);
}

/* No TF32, which is the default; and sums of f16 and bf16 stay f32. */
static int blas_create(struct dtn_cuda *cuda)
{
    int rc = blas_result(cuda, "cublasCreate",
                         cublas.cublasCreate_v2(&cuda->blas));

    if (rc != 0) {
        cuda->blas = NULL;
        return rc;
    }
    rc = blas_result(cuda, "cublasSetStream",
                     cublas.cublasSetStream_v2(cuda->blas, cuda->stream));
    if (rc == 0)
        rc = blas_result(cuda, "cublasSetMathMode", cublas.cublasSetMathMode(
            cuda->blas, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
    return rc;
}

static void blas_open(struct dtn_cuda *cuda)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *why = missing;
    int version = 0;

    pthread_once(&once, cublas_load);
    if (!missing[0]) {
        if (blas_create(cuda) == 0) {
            cublas.cublasGetVersion_v2(cuda->blas, &version);
            dtn_log(cuda->log, DTN_LOG_INFO, "gpu: %s, version %d, multiplies "
                    "matrices on %s", cublas.name, version, cuda->name);
            return;
        }
        dtn_cuda_blas_close(cuda);
        why = cuda->failure.text;
    }
    dtn_log(cuda->log, DTN_LOG_INFO, "gpu: own kernels multiply matrices on "
            "%s: %s", cuda->name, why);
}

void dtn_cuda_blas_close(struct dtn_cuda *cuda)
{
    if (cuda->blas)
        cublas.cublasDestroy_v2(cuda->blas);
    cuda->blas = NULL;
}

/* ------------------------------------------------------------ products --- */

bool dtn_cuda_multiplies(const struct dtn_memory *memory,
                         enum dtensor_dtype dtype)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);

    if (dtype != DTENSOR_F32 && dtype != DTENSOR_F64 && dtype != DTENSOR_F16
        && dtype != DTENSOR_BF16)
        return false;
    if (!cuda->blas_tried && dtn_cuda_enter(cuda) == 0) {
        cuda->blas_tried = true;
        blas_open(cuda);
        dtn_cuda_leave(cuda);
    }
    return cuda->blas != NULL;
}

static cudaDataType type_of(enum dtensor_dtype dtype)
{
    return dtype == DTENSOR_F64 ? CUDA_R_64F : dtype == DTENSOR_F16 ? CUDA_R_16F
         : dtype == DTENSOR_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static cublasStatus_t gemm(struct dtn_cuda *cuda, const struct dtn_gemm *p)
{
    const bool wide = p->dtype == DTENSOR_F64;
    const double one = 1, add = p->adds;
    const float one_f32 = 1, add_f32 = p->adds;
    const cudaDataType type = type_of(p->dtype);

    return cublas.cublasGemmStridedBatchedEx(
        cuda->blas, p->b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
        p->a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, p->n, p->m, p->k,
        wide ? (const void *)&one : &one_f32, p->b.data, type, p->b.stride,
        p->b.apart, p->a.data, type, p->a.stride, p->a.apart,
        wide ? (const void *)&add : &add_f32, p->out.data, type, p->out.stride,
        p->out.apart, p->batch, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
        CUBLAS_GEMM_DEFAULT);
}

int dtn_cuda_multiply(const struct dtn_memory *memory,
                      const struct dtn_gemm *product)
{
    struct dtn_cuda *cuda = dtn_cuda_of(memory);
    int rc = dtn_cuda_enter(cuda);

    if (rc != 0)
        return rc;
    dtn_cuda_given(cuda);
    cuda->running = "a product by cuBLAS";
    rc = blas_result(cuda, "cublasGemmStridedBatchedEx", gemm(cuda, product));
    return dtn_cuda_end(cuda, rc != 0 ? rc : DTN_LAUNCHED);
}

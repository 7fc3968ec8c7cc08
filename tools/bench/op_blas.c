/* op_blas.c - the BLAS that the library has loaded, called directly */
#include "config.h"
#include "tools/bench/op_blas.h"
#include "dtensor.h"

#include <dlfcn.h>
#include <stddef.h>

/* Of cblas.h. */
enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };

typedef void sgemm_f(int order, int ta, int tb, int m, int n, int k,
                     float alpha, const float *a, int lda, const float *b,
                     int ldb, float beta, float *c, int ldc);
typedef void dgemm_f(int order, int ta, int tb, int m, int n, int k,
                     double alpha, const double *a, int lda, const double *b,
                     int ldb, double beta, double *c, int ldc);

static sgemm_f *sgemm;
static dgemm_f *dgemm;

static bool blas_found(void)
{
#ifdef DTN_BLAS
    void *handle = sgemm ? NULL : dlopen(DTN_BLAS, RTLD_NOW | RTLD_NOLOAD);

    if (handle) {
        *(void **)&dgemm = dlsym(handle, "cblas_dgemm");
        *(void **)&sgemm = dlsym(handle, "cblas_sgemm");
        dlclose(handle);
    }
#endif
    return sgemm && dgemm;
}

bool op_blas_multiply(const struct op_gemm *g)
{
    const int ta = g->a_transposed ? TRANSPOSED : AS_IT_IS;
    const int tb = g->b_transposed ? TRANSPOSED : AS_IT_IS;
    const int lda = g->a_transposed ? g->m : g->k;
    const int ldb = g->b_transposed ? g->k : g->n;

    if (!blas_found())
        return false;
    if (g->dtype == DTENSOR_F32)
        sgemm(ROW_MAJOR, ta, tb, g->m, g->n, g->k, 1, g->a, lda, g->b, ldb, 0,
              g->out, g->n);
    else
        dgemm(ROW_MAJOR, ta, tb, g->m, g->n, g->k, 1, g->a, lda, g->b, ldb, 0,
              g->out, g->n);
    return true;
}

/* blas.c - the matrix product of a BLAS that is loaded when it is needed
 *
 * The library is not linked with a BLAS: OpenBLAS starts a thread for each CPU
 * when it is loaded, also in programs that never multiply a matrix.  The first
 * product loads the one that configure found, by its name with version, such as
 * libopenblas.so.0.  If it is not on this machine, the own loops are used.
 *
 * OpenBLAS counts the CPUs of the thread that loads it.  While it is loaded,
 * this thread may run on one CPU only, so it starts no threads; nothing else in
 * the process changes.  If the program has loaded it before, or one of the
 * variables by which users ask for threads is set, it is left as it is.
 */
#include "config.h"
#include "math/blas.h"

#ifdef DTN_BLAS
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

/* Of cblas.h, whose enumerators are these everywhere. */
enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };

typedef void sgemm_f(int order, int ta, int tb, int m, int n, int k,
                     float alpha, const float *a, int lda, const float *b,
                     int ldb, float beta, float *c, int ldc);
typedef void dgemm_f(int order, int ta, int tb, int m, int n, int k,
                     double alpha, const double *a, int lda, const double *b,
                     int ldb, double beta, double *c, int ldc);

static struct {
    sgemm_f *sgemm;
    dgemm_f *dgemm;
} blas;

static bool threads_asked(void)
{
    return getenv("OPENBLAS_NUM_THREADS") || getenv("GOTO_NUM_THREADS") ||
           getenv("OMP_NUM_THREADS") || getenv("BLIS_NUM_THREADS");
}

/* Load it on one CPU. */
static void *blas_open(void)
{
    void *handle = dlopen(DTN_BLAS, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    const int cpu = sched_getcpu();
    cpu_set_t all, one;

    if (handle || threads_asked() || cpu < 0 || cpu >= CPU_SETSIZE ||
        sched_getaffinity(0, sizeof all, &all) != 0)
        return handle ? handle : dlopen(DTN_BLAS, RTLD_NOW | RTLD_LOCAL);
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    handle = dlopen(DTN_BLAS, RTLD_NOW | RTLD_LOCAL);
    sched_setaffinity(0, sizeof all, &all);
    return handle;
}

/* It stays loaded to the end of the process. */
static void blas_load(void)
{
    void *handle = blas_open();

    if (!handle)
        return;
    *(void **)&blas.sgemm = dlsym(handle, "cblas_sgemm");
    *(void **)&blas.dgemm = dlsym(handle, "cblas_dgemm");
}

bool dtn_blas_ok(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, blas_load);
    return blas.sgemm && blas.dgemm;
}

static int transposed(const struct dtn_blas_matrix *matrix)
{
    return matrix->transposed ? TRANSPOSED : AS_IT_IS;
}

void dtn_blas_multiply(const struct dtn_blas_call *c)
{
    const int m = (int)c->m, n = (int)c->n, k = (int)c->k;
    const int ta = transposed(&c->a), tb = transposed(&c->b);
    const int lda = (int)c->a.stride, ldb = (int)c->b.stride;
    const int ldc = (int)c->out.stride;

    if (c->dtype == DTENSOR_F32)
        blas.sgemm(ROW_MAJOR, ta, tb, m, n, k, 1, c->a.data, lda, c->b.data,
                   ldb, (float)c->beta, c->out.data, ldc);
    else
        blas.dgemm(ROW_MAJOR, ta, tb, m, n, k, 1, c->a.data, lda, c->b.data,
                   ldb, c->beta, c->out.data, ldc);
}

#else

bool dtn_blas_ok(void)
{
    return false;
}

/* Never called: there is none. */
void dtn_blas_multiply(const struct dtn_blas_call *call)
{
}

#endif

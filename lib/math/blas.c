/* blas.c - the matrix product of a BLAS that is loaded when it is needed
 *
 * The library is not linked with a BLAS: OpenBLAS starts a thread for each CPU
 * when it is loaded, also in programs that never multiply a matrix.  The first
 * product loads the one that configure found, by its name with version, such as
 * libopenblas.so.0, or the one that DTN_BLAS in the environment names.  If it
 * is not on this machine, or DTN_BLAS is none, the own loops are used.
 *
 * OpenBLAS has kernels for many CPUs.  On one that it does not know, or if
 * OPENBLAS_CORETYPE says so, it takes those of an older one: on a CPU with
 * AVX-512 often those of Haswell, with vectors of half the width.  The name of
 * the kernels says it, and then the own loops are the faster ones.
 *
 * OpenBLAS counts the CPUs of the thread that loads it.  While it is loaded,
 * this thread may run on one CPU only, so it starts no threads; nothing else in
 * the process changes.  If the program has loaded it before, or one of the
 * variables by which users ask for threads is set, it is left as it is.
 */
#include "config.h"

#include "math/blas.h"
#include "math/width.h"
#include "base/compiler.h"
#include "dtensor.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Of cblas.h, whose enumerators are these everywhere. */
enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };

typedef void sgemm_f(int order, int ta, int tb, int m, int n, int k,
                     float alpha, const float *a, int lda, const float *b,
                     int ldb, float beta, float *c, int ldc);
typedef void dgemm_f(int order, int ta, int tb, int m, int n, int k,
                     double alpha, const double *a, int lda, const double *b,
                     int ldb, double beta, double *c, int ldc);

typedef char *corename_f(void);
typedef int threads_f(void);

static struct {
    const char *name;             /* of the file; NULL: none is wanted        */
    bool asked;                   /* the user named it                        */
    sgemm_f *sgemm;
    dgemm_f *dgemm;
    const char *core;             /* whose kernels it has taken; "": unknown  */
    bool alone;                   /* it has one thread                        */
} blas;

static bool threads_asked(void)
{
    return getenv("OPENBLAS_NUM_THREADS") || getenv("GOTO_NUM_THREADS") ||
           getenv("OMP_NUM_THREADS") || getenv("BLIS_NUM_THREADS");
}

/* Load it on one CPU. */
static void *blas_open(void)
{
    void *handle = dlopen(blas.name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    const int cpu = sched_getcpu();
    cpu_set_t all, one;

    if (handle || threads_asked() || cpu < 0 || cpu >= CPU_SETSIZE ||
        sched_getaffinity(0, sizeof all, &all) != 0)
        return handle ? handle : dlopen(blas.name, RTLD_NOW | RTLD_LOCAL);
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    handle = dlopen(blas.name, RTLD_NOW | RTLD_LOCAL);
    sched_setaffinity(0, sizeof all, &all);
    return handle;
}

static void blas_name(void)
{
    const char *asked = getenv("DTN_BLAS");

#ifdef DTN_BLAS
    blas.name = DTN_BLAS;
#endif
    blas.asked = asked && strcmp(asked, "none") != 0;
    if (asked)
        blas.name = blas.asked ? asked : NULL;
}

/* It stays loaded to the end of the process. */
static void blas_load(void)
{
    corename_f *corename;
    threads_f *threads;
    void *handle;

    blas.core = "";
    blas_name();
    handle = blas.name ? blas_open() : NULL;
    if (!handle)
        return;
    *(void **)&blas.sgemm = dlsym(handle, "cblas_sgemm");
    *(void **)&blas.dgemm = dlsym(handle, "cblas_dgemm");
    *(void **)&corename = dlsym(handle, "openblas_get_corename");
    *(void **)&threads = dlsym(handle, "openblas_get_num_threads");
    if (corename)
        blas.core = corename();
    blas.alone = threads && threads() == 1;
}

bool dtn_blas_ok(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, blas_load);
    return blas.sgemm && blas.dgemm;
}

/* Kernels of OpenBLAS for x86 with AVX-512; all others have less. */
static bool core_is_wide(const char *core)
{
    static const char *const wide[] = { "skylakex", "cooperlake",
                                        "sapphirerapids" };

    for (size_t i = 0; i < DTN_COUNT(wide); i++)
        if (strcasecmp(core, wide[i]) == 0)
            return true;
    return false;
}

bool dtn_blas_behind(bool slow)
{
#ifdef DTN_WIDTHS
    return dtn_blas_ok() && !blas.asked && blas.alone && blas.core[0] &&
           dtn_width() == DTN_WIDTHS - 1 &&
           (slow || !core_is_wide(blas.core));
#else
    (void)slow;
    return false;
#endif
}

void dtn_blas_describe(char *text, size_t size)
{
    const bool behind = dtn_blas_behind(false);
    const char *open = blas.core && blas.core[0] ? " (kernels for " : "";
    const char *core = blas.core ? blas.core : "";

    if (!dtn_blas_ok())
        snprintf(text, size, "own loops multiply matrices: %s%s",
                 blas.name ? "no " : "no BLAS is wanted",
                 blas.name ? blas.name : "");
    else
        snprintf(text, size, "%s%s%s%s multiplies %smatrices%s", blas.name,
                 open, core, open[0] ? ")" : "", behind ? "small " : "",
                 behind ? ", own loops with AVX-512 the others" : "");
}

static int transposed(const struct dtn_blas_matrix *matrix)
{
    return matrix->transposed ? TRANSPOSED : AS_IT_IS;
}

void dtn_blas_multiply_each(const struct dtn_blas_call *c, int64_t count,
                            const int64_t apart[3])
{
    const int m = (int)c->m, n = (int)c->n, k = (int)c->k;
    const int ta = transposed(&c->a), tb = transposed(&c->b);
    const int lda = (int)c->a.stride, ldb = (int)c->b.stride;
    const int ldc = (int)c->out.stride;
    char *out = c->out.data;
    const char *a = c->a.data, *b = c->b.data;

    for (; count > 0; count--) {
        if (c->dtype == DTENSOR_F32)
            blas.sgemm(ROW_MAJOR, ta, tb, m, n, k, 1, (const void *)a, lda,
                       (const void *)b, ldb, (float)c->beta, (void *)out, ldc);
        else
            blas.dgemm(ROW_MAJOR, ta, tb, m, n, k, 1, (const void *)a, lda,
                       (const void *)b, ldb, c->beta, (void *)out, ldc);
        out += apart[0];
        a += apart[1];
        b += apart[2];
    }
}

void dtn_blas_multiply(const struct dtn_blas_call *call)
{
    dtn_blas_multiply_each(call, 1, (const int64_t[3]){ 0 });
}

/* test_blas.c - loading a BLAS changes nothing else in the process
 *
 * The first product loads the BLAS that configure found.  After that the
 * process has as many threads as before, and the thread may run on the same
 * CPUs.  Its products agree with the own loops.
 *
 * Without this test, each rank could start a thread for each CPU of the host,
 * or stay bound to one CPU.
 */
#include "math/blas.h"
#include "math/matmul.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int threads_now(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[200];
    int n = 0;

    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "Threads: %d", &n) == 1)
            break;
    if (status)
        fclose(status);
    return n;
}

static void test_agrees(void)
{
    enum { N = 64 };
    static float a[N][N], b[N][N], fast[N][N], own[N][N];
    const int64_t shape[] = { N, N };
    const struct dtn_array am = dtn_array_packed(a, DTENSOR_F32, 2, shape);
    const struct dtn_array bm = dtn_array_packed(b, DTENSOR_F32, 2, shape);
    struct dtn_array out = dtn_array_packed(fast, DTENSOR_F32, 2, shape);
    float worst = 0;

    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (float)((i * 7 + j * 3) % 17 - 8) / 8.0F;
            b[i][j] = (float)((i * 5 + j * 11) % 13 - 6) / 8.0F;
        }
    dtn_matmul(&out, &am, &bm, 0, NULL);
    out.data = own;
    dtn_matmul(&out, &am, &bm, DTN_MATMUL_REPRO, NULL);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            worst = fmaxf(worst, fabsf(fast[i][j] - own[i][j]));
    ok(worst <= 1e-4F, "its product of 64 x 64 is that of the own loops");
}

int main(void)
{
    cpu_set_t before, after;

    unsetenv("OPENBLAS_NUM_THREADS");
    unsetenv("GOTO_NUM_THREADS");
    unsetenv("OMP_NUM_THREADS");
    unsetenv("BLIS_NUM_THREADS");
    memset(&before, 0, sizeof before);
    memset(&after, 0, sizeof after);
    sched_getaffinity(0, sizeof before, &before);
    const int threads = threads_now();

    if (!dtn_blas_ok())
        return skip_all("configure found no BLAS, or it is not here any more");
    sched_getaffinity(0, sizeof after, &after);
    ok(threads_now() == threads, "loading it starts no thread");
    ok(CPU_EQUAL(&before, &after), "the thread may run on the same CPUs");
    test_agrees();
    return done();
}

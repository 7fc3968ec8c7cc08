/* test_blas.c - loading a BLAS changes nothing else in the process
 *
 * The first product loads the BLAS that configure found.  After that the
 * process has as many threads as before, and the thread may run on the same
 * CPUs.  Its products agree with the own loops, which are used where its
 * kernels are those of an older CPU, or where DTN_BLAS says so.
 *
 * Without this test, each rank could start a thread for each CPU of the host,
 * or stay bound to one CPU; or multiply at half the speed.
 */
#include "config.h"

#include "math/blas.h"
#include "math/matmul.h"
#include "math/width.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
    static double workspace[4 * N * N];
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
    dtn_matmul(&out, &am, &bm, 0, workspace);
    out.data = own;
    dtn_matmul(&out, &am, &bm, DTN_MATMUL_REPRO, workspace);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            worst = fmaxf(worst, fabsf(fast[i][j] - own[i][j]));
    ok(worst <= 1e-4F, "its product of 64 x 64 is that of the own loops");
}

/* In a process where the BLAS is loaded with this in the environment. */
static bool words_are(const char *variable, const char *value, const char *want)
{
    const pid_t child = fork();
    char words[300];
    int status = 1;

    if (child == 0) {
        setenv(variable, value, 1);
        dtn_blas_describe(words, sizeof words);
        if (!strstr(words, want))
            note("%s=%s: %s", variable, value, words);
        fflush(stdout);
        _exit(!strstr(words, want));
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

static void test_choice(void)
{
    const bool wide = dtn_width() == 2;

    ok(words_are("DTN_BLAS", "none", "own loops multiply matrices: no BLAS is "
                 "wanted"), "DTN_BLAS=none: own loops");
    ok(words_are("DTN_BLAS", "libnone.so.7", "own loops multiply matrices: no "
                 "libnone.so.7"), "a BLAS that is not there: own loops");
#if defined(DTN_BLAS) && defined(__x86_64__)
    if (!strstr(DTN_BLAS, "openblas"))
        return;
    ok(words_are("OPENBLAS_CORETYPE", "Haswell", wide
                 ? "own loops with AVX-512 the others"
                 : "(kernels for Haswell) multiplies matrices"),
       "kernels for a CPU with AVX2: own loops, if this one has AVX-512");
    ok(!wide || words_are("OPENBLAS_CORETYPE", "SkylakeX",
                          "(kernels for SkylakeX) multiplies matrices"),
       "kernels for a CPU with AVX-512: the BLAS");
#endif
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
    unsetenv("DTN_BLAS");
    test_choice();
#ifdef DTN_BLAS
    setenv("DTN_BLAS", DTN_BLAS, 1);
#endif
    sched_getaffinity(0, sizeof before, &before);
    const int threads = threads_now();

    if (!dtn_blas_ok()) {
        note("configure found no BLAS, or it is not here any more");
        return done();
    }
    sched_getaffinity(0, sizeof after, &after);
    ok(threads_now() == threads, "loading it starts no thread");
    ok(CPU_EQUAL(&before, &after), "the thread may run on the same CPUs");
    test_agrees();
    return done();
}

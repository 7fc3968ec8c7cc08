/* test_cublas.c - products on a GPU by cuBLAS, and without one
 *
 * Products of several types, of matrices that lie by rows or by columns, alone
 * and in batches, on the driver and the cuBLAS of tests/standin, which counts
 * its calls; they have to be those of the host.  Each case is this program
 * again: without the library, with one that lacks a call, with one that fails,
 * and under `repro`, where cuBLAS is not even loaded.
 *
 * Without this test, a product could have its factors exchanged, which shows
 * only where they are not square; or it could fall back to own kernels, ten
 * times slower, and nobody would know why.
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "dtensor.h"
#include "tests/support/job.h"
#include "tests/support/standin.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INPUTS = 3, MOST = 400 };

/* Products, and how many calls of cuBLAS each of them is. */
static const struct row {
    const char *op, *in;
    int calls;
} rows[] = {
    { "matmul", "5x7 7x3", 1 },
    { "matmul", "1x7 7x3", 1 },
    { "matmul", "5x7 7x1", 1 },
    { "matmul", "5x1 1x3", 1 },
    { "matmul", "4x5x7 4x7x3", 1 },
    { "matmul", "4x5x7 7x3", 1 },
    { "matmul", "2x3x5x7 3x7x4", 2 },
    { "matmul_nt", "4x5x7 4x3x7", 1 },
    { "matmul_tn", "4x7x5 4x7x3", 1 },
    { "linear", "6x5x7 3x7 3", 1 },
    { "linear", "6x5x7 3x7", 1 },
    { "linear_weight", "6x5x3 6x5x7", 1 },
    { "addmm", "3 5x7 7x3", 1 },
    { "mv", "5x7 7", 1 },
    { "dot", "7 7", 1 },
    { "matmul", "0x7 7x3", 0 },
    { "matmul", "5x0 0x3", 0 },
};

static const enum dtensor_dtype types[] = { DTENSOR_F32, DTENSOR_F64,
                                            DTENSOR_F16, DTENSOR_BF16 };

/* What a case is about. */
struct mode {
    const char *name;             /* the argument that makes it one           */
    bool repro, multiplies, fails;
    const char *cublas;           /* DTN_CUBLAS; of "=" the folder is in the  */
                                  /* path                                     */
    const char *failing;          /* the call that fails                      */
    const char *words;            /* in the log; NULL: nothing of products    */
    const char *claim;
};

static char file[64];

/* ------------------------------------------------------------- one case --- */

static int products(void)
{
    void *library = dlopen("libcublas.so.13", RTLD_NOW | RTLD_NOLOAD);
    int (*count)(void) = NULL;

    if (library)
        *(void **)&count = dlsym(library, "dtn_standin_products");
    return count ? count() : 0;
}

/* "4x5x7", of whole numbers from -4 to 4. */
static struct dtensor *tensor_make(struct job *job, const char *mesh_name,
                                   enum dtensor_dtype dtype, const char **text,
                                   int salt)
{
    static unsigned char data[MOST * 8];
    struct dtensor_spec spec = { .dtype = dtype };
    struct dtensor *made = NULL;
    int64_t n = 1;
    char *end;

    good(dtensor_mesh_find(job->ctx, mesh_name, &spec.mesh, &job->err));
    for (; **text >= '0' && **text <= '9'; *text = end + (*end != '\0')) {
        spec.shape[spec.ndim] = strtoll(*text, &end, 10);
        n *= spec.shape[spec.ndim++];
        if (*end != 'x') {
            *text = end + (*end == ' ');
            break;
        }
    }
    for (int64_t i = 0; i < n; i++)
        dtn_store(dtype, data, (size_t)i, (double)((i * 7 + salt) % 9 - 4));
    good(dtensor_distribute(&spec, data, -1, &made, &job->err));
    return made;
}

/* The product in memory of that mesh, on the host; how many bytes. */
static size_t product_make(struct job *job, const struct row *row,
                           const char *mesh, enum dtensor_dtype dtype,
                           void *full)
{
    struct dtensor *in[INPUTS] = { NULL }, *out = NULL;
    const char *text = row->in;
    size_t bytes = 0;
    int nin = 0;

    while (*text) {
        in[nin] = tensor_make(job, mesh, dtype, &text, nin);
        nin++;
    }
    good(dtensor_op(row->op, nin, (const struct dtensor *const *)in, NULL, 1,
                    &out, &job->err));
    bytes = dtensor_local_bytes(out);
    good(dtensor_full_tensor(out, full, bytes, &job->err));
    dtensor_destroy(out);
    for (int i = 0; i < nin; i++)
        dtensor_destroy(in[i]);
    return bytes;
}

static void row_check(struct job *job, const struct row *row,
                      enum dtensor_dtype dtype, bool multiplies)
{
    static unsigned char got[MOST * 8], want[MOST * 8];
    const int before = products();
    const size_t bytes = product_make(job, row, "world", dtype, got);
    const int calls = products() - before;

    product_make(job, row, "host", dtype, want);
    need(memcmp(got, want, bytes) == 0, "%s of %s, %s: other elements", row->op,
         row->in, dtensor_dtype_name(dtype));
    need(calls == (multiplies ? row->calls : 0), "%s of %s: %d calls", row->op,
         row->in, calls);
}

static void fails_in_words(struct job *job)
{
    struct dtensor *in[2], *out = NULL;
    const char *text = "5x7 7x3";

    for (int i = 0; i < 2; i++)
        in[i] = tensor_make(job, "world", DTENSOR_F32, &text, i);
    need(dtensor_op("matmul", 2, (const struct dtensor *const *)in, NULL, 1,
                    &out, &job->err) == DTENSOR_ESYS && !out
         && strstr(job->err.text, "cublasGemmStridedBatchedEx of "
                   "libcublas.so.13: CUBLAS_STATUS_INTERNAL_ERROR (14; "
                   "DTN_CUBLAS=none does without it)"),
         "not refused in words: %s", job->err.text);
}

static void rank_case(int rank, int n, void *arg)
{
    const struct mode *mode = arg;
    struct job made = { .rank = rank }, *job = &made;
    char left[500];

    good(dtensor_init(file, &job->ctx, &job->err));
    if (mode->fails) {
        fails_in_words(job);
        return;
    }
    for (size_t i = 0; i < DTN_COUNT(rows); i++)
        for (size_t t = 0; t < DTN_COUNT(types); t++)
            row_check(job, &rows[i], types[t], mode->multiplies);
    dtensor_fini(job->ctx);
    need(standin_left(left, sizeof left) == 0, "not freed: %s", left);
}

static int case_run(const struct mode *mode)
{
    FILE *to;
    int bad;

    snprintf(file, sizeof file, "cublas-%d.ini", (int)getpid());
    to = fopen(file, "w");
    if (!to)
        return 1;
    fprintf(to, "[cluster]\nversion = 1\n%s[nodes \"here\"]\n"
            "hosts = localhost\nranks = 1\nhca = none\n[transport]\n"
            "connect_timeout = 60s\n[mesh \"world\"]\ndims = x=1\n"
            "memory = cuda\n[mesh \"host\"]\ndims = x=1\n",
            mode->repro ? "repro = yes\n" : "");
    fclose(to);
    bad = ranks_run(1, 100, rank_case, (void *)(uintptr_t)mode, NULL);
    unlink(file);
    return bad;
}

/* ---------------------------------------------------------------- cases --- */

static const struct mode modes[] = {
    { "there", false, true, false, "=", "", "libcublas.so.13, version 130000, "
      "multiplies matrices on GPU 0", "cuBLAS multiplies, if there is one" },
    { "repro", true, false, false, "=", "", NULL,
      "under repro own kernels do, and cuBLAS is not loaded" },
    { "none", false, false, false, "none", "", "own kernels multiply matrices "
      "on GPU 0", "they do with DTN_CUBLAS=none" },
    { "missing", false, false, false, "/none/libcublas.so", "", "/none/"
      "libcublas.so: cannot open shared object file: No such file or "
      "directory (install cuBLAS, or name the file by DTN_CUBLAS)",
      "where it is not found" },
    { "old", false, false, false, "old", "", "has no cublasSetMathMode (too "
      "old)", "with one that lacks a call" },
    { "broken", false, false, false, "=", "cublasCreate_v2", "cublasCreate of "
      "libcublas.so.13: CUBLAS_STATUS_NOT_INITIALIZED", "with one that does "
      "not start" },
    { "failing", false, true, true, "=", "cublasGemmStridedBatchedEx", "",
      "a product that cuBLAS refuses is an error in words" },
};

/* The variables of the case; then this program again. */
static void case_start(const struct mode *mode, int log)
{
    char driver[500], path[1100], old[600];

    snprintf(driver, sizeof driver, "%s", standin_folder(""));
    snprintf(path, sizeof path, "%s:%s", driver, standin_folder("blas"));
    snprintf(old, sizeof old, "%s/libcublas.so.12", standin_folder("oldblas"));
    setenv("LD_LIBRARY_PATH", path, 1);
    setenv("DTN_CUBLAS", strcmp(mode->cublas, "old") == 0 ? old : mode->cublas,
           1);
    if (strcmp(mode->cublas, "=") == 0)
        unsetenv("DTN_CUBLAS");
    setenv("DTN_STANDIN_CUBLAS_FAILS", mode->failing, 1);
    setenv("DTN_LOG", "info", 1);
    dup2(log, STDERR_FILENO);
    execl("/proc/self/exe", "test_cublas", mode->name, (char *)NULL);
    _exit(1);
}

static bool log_says(int log, const char *words)
{
    static char said[100000];
    ssize_t n = pread(log, said, sizeof said - 1, 0);

    said[n > 0 ? n : 0] = '\0';
    if (words ? strstr(said, words) != NULL
              : !strstr(said, "ublas") && !strstr(said, "multipl"))
        return true;
    for (char *line = strtok(said, "\n"); line; line = strtok(NULL, "\n"))
        if (strstr(line, "gpu"))
            note("%s", line);
    return false;
}

static void case_claim(const struct mode *mode)
{
    char name[] = "/tmp/dtn-cublas-XXXXXX";
    const int log = mkstemp(name);
    int status = 1;
    pid_t pid;

    unlink(name);
    fflush(stdout);
    pid = fork();
    if (pid == 0)
        case_start(mode, log);
    waitpid(pid, &status, 0);
    ok(status == 0 && log_says(log, mode->words), "%s", mode->claim);
    close(log);
}

int main(int argc, char **argv)
{
    char file_name[600];

    for (size_t i = 0; argc > 1 && i < DTN_COUNT(modes); i++)
        if (strcmp(argv[1], modes[i].name) == 0)
            return case_run(&modes[i]) != 0;
    snprintf(file_name, sizeof file_name, "%s/libcublas.so.13",
             standin_folder("blas"));
    if (access(file_name, R_OK) < 0)
        return skip_all("the stand-in was not built (make check builds it; "
                        "shared libraries are needed)");
    for (size_t i = 0; i < DTN_COUNT(modes); i++)
        case_claim(&modes[i]);
    return done();
}

/* test_cuda_without.c - machines without a CUDA driver, or with an old one
 *
 * Two ranks that look for libcuda.so.1 where there is none, or one of CUDA 10.
 *
 * Without this test, a cluster file with memory = cuda on such a machine, or a
 * program that asks for memory of a GPU, could crash, or leave host memory
 * unusable too.
 */
#include "dtensor.h"
#include "tests/support/job.h"
#include "tests/support/standin.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE "connect_timeout = 20s\nop_timeout = 20s\n"
#define ON_GPU "[mesh \"world\"]\ndims = x=2\nmemory = cuda\n"

enum { COUNT = 3000 };

static char file[64];

#define refused(call, errcode, words)                                         \
    need((call) == (errcode) && strstr(job->err.text, words),                 \
         "%s: not \"%s\" but %s: %s", #call, words,                           \
         dtensor_errname(job->err.code), job->err.text)

/* The ranks of a machine whose driver is not there, or too old. */
static void rank_without(int rank, int n, void *arg)
{
    struct job made = { .rank = rank }, *job = &made;
    const struct dtensor_mesh *mesh = NULL;
    float host[COUNT] = { 1 };
    void *mem = NULL;

    if (strncmp(arg, "at the start: ", 14) == 0) {
        refused(dtensor_init(file, &job->ctx, &job->err), DTENSOR_ENODEV,
                (const char *)arg + 14);
        return;
    }
    job_open(job, rank, n, file);
    refused(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, 1, &mem, &job->err),
            DTENSOR_ENODEV, (const char *)arg);
    refused(dtensor_stream(job->ctx, NULL, &job->err), DTENSOR_ENODEV,
            (const char *)arg);
    need(!mem, "the result was touched");
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    good(dtensor_allreduce(mesh, host, host, COUNT, DTENSOR_F32, DTENSOR_SUM,
                           &job->err));
    need(host[0] == 2, "host memory");
    dtensor_fini(job->ctx);
}

/* This program again, with libcuda.so.1 looked for in `folder`; ranks say
 * `words`, now or at the start.
 */
static void without(const char *claim, const char *folder, const char *words)
{
    int status = 1;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        setenv("LD_LIBRARY_PATH", folder, 1);
        execl("/proc/self/exe", "test_cuda_without", words, (char *)NULL);
        _exit(1);
    }
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(claim, "this machine has a driver");
    else
        ok(status == 0, "%s", claim);
}

static int without_run(char *words)
{
    const bool at_start = strncmp(words, "at the start: ", 14) == 0;

    if (strstr(words, "no driver") && dlopen("libcuda.so.1", RTLD_LAZY))
        return 77;
    strcpy(file, ranks_file("shm", 2, at_start ? PATIENCE ON_GPU : PATIENCE));
    return ranks_run(2, 60, rank_without, words, NULL) != 0
         || unlink(file) != 0;
}

int main(int argc, char **argv)
{
    char none[] = "/tmp/dtn-no-cuda-XXXXXX";

    if (argc > 1)
        return without_run(argv[1]);
    if (access(standin_folder("ancient"), R_OK) < 0)
        return skip_all("the stand-in was not built");
    if (!mkdtemp(none))
        return skip_all("mkdtemp");
    without("no driver, memory = cuda", none, "at the start: CUDA: no driver: "
            "libcuda.so.1: cannot open");
    without("no driver, memory on a GPU is asked for later", none, "CUDA: no "
            "driver: libcuda.so.1: cannot open");
    rmdir(none);
    without("a driver that is too old, memory = cuda",
            standin_folder("ancient"), "at the start: CUDA: the driver can do "
            "CUDA 10.1; expected 11.3 or newer (install a newer NVIDIA "
            "driver)");
    without("a driver that is too old, later", standin_folder("ancient"),
            "CUDA: the driver can do CUDA 10.1; expected 11.3 or newer");
    return done();
}

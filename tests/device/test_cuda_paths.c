/* test_cuda_paths.c - which way buffers of a GPU take to the peers, in words
 *
 * Two ranks on the driver in tests/standin.  The same over RDMA devices is in
 * tests/rdma/gpujob.c.
 *
 * Without this test, buffers could be staged and nobody would say why, and
 * [device] direct = required could let it pass.
 */
#include "base/compiler.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/support/job.h"
#include "tests/support/standin.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE "connect_timeout = 20s\nop_timeout = 20s\n"
#define ON_GPU "[mesh \"world\"]\ndims = x=2\nmemory = cuda\n"
#define REQUIRED "[device]\ndirect = required\n"

enum { COUNT = 30000 };           /* elements, more than an eager message     */

static char file[64];

static const struct dtensor_mesh *world(struct job *job)
{
    const struct dtensor_mesh *mesh = NULL;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    return mesh;
}

static int allreduce(struct job *job, void *mem)
{
    return dtensor_allreduce(world(job), mem, mem, COUNT, DTENSOR_F32,
                             DTENSOR_SUM, &job->err);
}

/* The last plan has these words for memory of the GPU only. */
static void rank_words(int rank, int n, void *arg)
{
    struct job made, *job = &made;
    void *gpu = NULL, *host = NULL;
    const char *words = arg;

    job_open(job, rank, n, file);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, COUNT * sizeof(float), &gpu,
                          &job->err));
    good(dtensor_alloc(job->ctx, COUNT * sizeof(float), &host, &job->err));
    for (int turn = 0; turn < 2; turn++) {
        good(allreduce(job, gpu));
        need(strstr(dtensor_last_plan(job->ctx), words), "%s",
             dtensor_last_plan(job->ctx));
        good(allreduce(job, host));
        need(strncmp(dtensor_last_plan(job->ctx), "allreduce", 9) == 0
             && !strstr(dtensor_last_plan(job->ctx), "GPU"), "%s",
             dtensor_last_plan(job->ctx));
    }
    dtensor_free(job->ctx, gpu);
    dtensor_free(job->ctx, host);
    dtensor_fini(job->ctx);
}

/* No process of this rank may use a system call any more, as in a container. */
static bool deny(unsigned call)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    };
    const struct sock_fprog program = { DTN_COUNT(filter), filter };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Rank 1 may not take files of a peer, or cannot find its process, as from
 * another PID namespace: what is on GPUs is staged on both.
 */
static void rank_denied(int rank, int n, void *arg)
{
    const char *call = getenv("DTN_TEST_DENIED");

    need(rank != 1 || deny(strcmp(call, "pidfd_getfd") == 0 ? SYS_pidfd_getfd
                           : SYS_pidfd_open), "seccomp");
    rank_words(rank, n, rank == 1 ? (void *)(uintptr_t)"; GPU memory " : arg);
}

/* dtensor-conf --fabric, whose ranks try to map each other's memory. */
static void rank_fabric(int rank, int n, void *arg)
{
    const char *denied = getenv("DTN_TEST_DENIED");
    struct dtensor_error err;
    char *text = NULL, left[200];
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    int unfit;

    need(rank != 1 || !denied || deny(strcmp(denied, "pidfd_getfd") == 0
         ? SYS_pidfd_getfd : SYS_pidfd_open), "seccomp");
    need(dtensor_fabric_show(file, stream, &unfit, &err) == 0, "%s", err.text);
    fclose(stream);
    need(rank != 0 || strstr(text, arg), "%s", text);
    need(standin_left(left, sizeof left) == 0, "left: %s", left);
    free(text);
}

/* Rank 1 has its buffers on the GPU, the others theirs on the host. */
static void rank_mixed(int rank, int n, void *arg)
{
    static float host[3 * COUNT];
    const bool gpu = rank == 1;
    struct job made, *job = &made;
    void *mem = NULL;

    job_open(job, rank, n, file);
    good(dtensor_alloc_on(job->ctx, gpu ? DTENSOR_CUDA : DTENSOR_HOST,
                          sizeof host, &mem, &job->err));
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < COUNT; i++)
            host[i] = (float)(i + rank + turn);
        good(dtn_buffer_copy(job->ctx, mem, host, sizeof host / 3, &job->err));
        good(allreduce(job, mem));
        good(dtensor_allgather(world(job), (char *)mem + rank * 4, (char *)mem
                               + COUNT * 4, COUNT - 1, DTENSOR_F32,
                               &job->err));
        good(dtensor_broadcast(world(job), 1 - turn % 2, mem, COUNT,
                               DTENSOR_F32, &job->err));
        good(dtn_buffer_copy(job->ctx, host, mem, sizeof host, &job->err));
        for (int i = 0; i < COUNT; i++)
            need(host[i] == (float)(2 * (i + turn) + 1), "sum %d", i);
        for (int i = 0; i < 2 * (COUNT - 1); i++)
            need(host[COUNT + i] == host[i % (COUNT - 1) + i / (COUNT - 1)],
                 "element %d gathered", i);
    }
    dtensor_free(job->ctx, mem);
    dtensor_fini(job->ctx);
}

/* Staging is an error of both ranks, which says why, or who said so. */
static void rank_required(int rank, int n, void *arg)
{
    struct job made, *job = &made;
    void *gpu = NULL;
    int rc;

    job_open(job, rank, n, file);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, COUNT * sizeof(float), &gpu,
                          &job->err));
    rc = allreduce(job, gpu);
    need(rc == DTENSOR_ENODEV ? strstr(job->err.text, arg) != NULL
                              : rc == DTENSOR_EABORT, "%s", job->err.text);
    need(allreduce(job, gpu) == rc, "the context is not poisoned");
    _exit(0);
}

/* Two ranks on one GPU: it is said, and they map its memory. */
static void rank_shared(int rank, int n, void *arg)
{
    static char text[8000];
    struct job made, *job = &made;
    FILE *said = tmpfile();

    need(said && dup2(fileno(said), STDERR_FILENO) >= 0, "no file for the log");
    setenv("DTN_LOG", "info", 1);
    job_open(job, rank, n, file);
    need(pread(fileno(said), text, sizeof text - 1, 0) > 0
         && strstr(text, "gpu: 2 ranks of localhost share GPU 0 (Stand-in 0), "
                   "which does their work by turns"), "%s", text);
    fclose(said);
    dtensor_fini(job->ctx);
    rank_words(rank, n, arg);
}

/* A plan of a mesh on GPUs says what is to be expected. */
static void rank_plan(int rank, int n, void *arg)
{
    const int64_t shape[] = { 64, 64 };
    struct dtensor_spec rows, cols;
    struct dtensor_plan *plan = NULL;
    struct job made, *job = &made;
    char *text = NULL, *plan_text;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    job_open(job, rank, n, file);
    good(dtensor_spec_on(&rows, world(job), "S(0)", DTENSOR_F32, 2, shape,
                         &job->err));
    good(dtensor_spec_on(&cols, world(job), "S(1)", DTENSOR_F32, 2, shape,
                         &job->err));
    good(dtensor_plan_create(&rows, &cols, NULL, &plan, &job->err));
    dtensor_plan_print(plan, stream);
    fclose(stream);
    need(strstr(text, arg), "%s", text);
    plan_text = text;
    stream = open_memstream(&text, &size);
    dtensor_mesh_path(world(job), stream);
    fclose(stream);
    need(strstr(text, arg) && strstr(plan_text, text), "%s", text);
    free(plan_text);
    free(text);
    dtensor_plan_destroy(plan);
    dtensor_fini(job->ctx);
}

static const struct {
    const char *claim, *wire, *more;
    rank_main_f *run;
    const char *variable, *value; /* of the environment, or NULL              */
    const char *words;            /* that must be seen                        */
} cases[] = {
    { "tcp stages, and the last plan says so", "tcp", PATIENCE, rank_words,
      NULL, NULL, "; GPU memory staged: tcp reaches host memory only" },
    { "peers of the host map it", "shm", PATIENCE REQUIRED ON_GPU, rank_words,
      NULL, NULL, "; GPU memory in place" },
    { "they map it on one GPU, and say so", "shm", PATIENCE REQUIRED ON_GPU,
      rank_shared, "DTN_STANDIN_DEVICES", "1", "; GPU memory in place" },
    { "buffers of one rank on the GPU, of the other on the host", "shm",
      PATIENCE ON_GPU, rank_mixed, NULL, NULL, NULL },
    { "the same by a ring", "shm", PATIENCE ON_GPU "[tuning]\nallreduce = "
      "0-inf:ring\nallgather = 0-inf:ring\nbroadcast = 0-inf:tree\n",
      rank_mixed, NULL, NULL, NULL },
    { "memory that cannot be shared is staged", "shm", PATIENCE ON_GPU,
      rank_words, "DTN_STANDIN_ATTRIBUTES", "103=0", "; GPU memory staged: shm "
      "GPU " },
    { "a denied import is staged", "shm", PATIENCE ON_GPU, rank_words,
      "DTN_STANDIN_FAIL", "cuMemImportFromShareableHandle:0=800",
      "cannot map memory of this rank's GPU" },
    { "an export that fails is staged", "shm", PATIENCE ON_GPU, rank_words,
      "DTN_STANDIN_FAIL", "cuMemExportToShareableHandle:0=800",
      "CUDA_ERROR_NOT_PERMITTED" },
    { "a rank that may not take a peer's files stages", "shm", PATIENCE
      ON_GPU, rank_denied, "DTN_TEST_DENIED", "pidfd_getfd",
      "; GPU memory staged: shm reaches host memory only, as rank 1 cannot map "
      "memory of this rank's GPU" },
    { "a rank that cannot find a peer's process stages", "shm", PATIENCE
      ON_GPU, rank_denied, "DTN_TEST_DENIED", "pidfd_open",
      "; GPU memory staged: shm reaches host memory only, as rank 1 cannot map "
      "memory of this rank's GPU" },
    { "dtensor-conf --fabric: ranks map each other's memory", "shm", PATIENCE
      ON_GPU, rank_fabric, NULL, NULL, "ranks 0-1: its memory to ranks of this "
      "host, over shm: in place, mapped by them\n" },
    { "... a denied import", "shm", PATIENCE ON_GPU, rank_fabric,
      "DTN_STANDIN_FAIL", "cuMemImportFromShareableHandle:0=101",
      "rank 1: it cannot map memory of the GPU of rank 0: " },
    { "... what to do", "shm", PATIENCE ON_GPU, rank_fabric,
      "DTN_STANDIN_FAIL", "cuMemImportFromShareableHandle:0=101",
      "(let each rank see all GPUs of the host, in containers by --gpus all; "
      "see nvidia-smi topo -p2p r)\n" },
    { "... and which way memory then takes", "shm", PATIENCE ON_GPU,
      rank_fabric, "DTN_STANDIN_FAIL", "cuMemImportFromShareableHandle:0=101",
      "over shm: staged in host memory, since rank 0 could not map or export "
      "memory (see its line)\n" },
    { "... a denied export", "shm", PATIENCE ON_GPU, rank_fabric,
      "DTN_STANDIN_FAIL", "cuMemExportToShareableHandle:0=800",
      "cuMemExportToShareableHandle: CUDA_ERROR_NOT_PERMITTED "
      "(CUDA_ERROR_NOT_PERMITTED) (see what dmesg says of the driver, and the "
      "device files that a container has)\n" },
    { "... a GPU without room", "shm", PATIENCE ON_GPU, rank_fabric,
      "DTN_STANDIN_FAIL", "cuDevicePrimaryCtxRetain:0=2",
      "its GPU cannot be opened: " },
    { "... files of a peer that may not be taken", "shm", PATIENCE ON_GPU,
      rank_fabric, "DTN_TEST_DENIED", "pidfd_getfd",
      "rank 1: it may not take a file of the process of rank 0: Operation not "
      "permitted (set kernel.yama.ptrace_scope to 0; start containers by "
      "--cap-add=SYS_PTRACE)\n" },
    { "... a process that cannot be found", "shm", PATIENCE ON_GPU,
      rank_fabric, "DTN_TEST_DENIED", "pidfd_open",
      "rank 1: it cannot open the process of rank 0: Operation not permitted "
      "(start the ranks in one PID namespace, containers by --pid=host)\n" },
    { "no access between the GPUs is staged", "shm", PATIENCE ON_GPU,
      rank_words, "DTN_STANDIN_FAIL", "cuMemSetAccess:2=101",
      "cannot map memory of this rank's GPU" },
    { "direct = required: staging is an error", "shm", PATIENCE REQUIRED ON_GPU,
      rank_required, "DTN_STANDIN_ATTRIBUTES", "103=0",
      "[device] direct = required, but memory of the GPU has to be staged: "
      "shm GPU " },
    { "a plan over tcp", "tcp", PATIENCE ON_GPU, rank_plan,
      NULL, NULL, "memory of GPUs: its memory to ranks of this host, over tcp: "
      "staged in host memory, since tcp reaches host memory only (see "
      "[transport])\n" },
    { "a plan over shm", "shm", PATIENCE ON_GPU, rank_plan, NULL, NULL,
      "over shm: in place, mapped by them\n" },
    { "a plan over shm, with memory that cannot be shared", "shm", PATIENCE
      ON_GPU, rank_plan, "DTN_STANDIN_ATTRIBUTES", "103=0", "over shm: staged "
      "in host memory, since its driver does not share memory between "
      "processes\n" },
};

/* May a process deny itself system calls? */
static bool can_deny(void)
{
    const pid_t child = fork();
    int status = 1;

    if (child == 0)
        _exit(!deny(SYS_pidfd_getfd));
    return waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
    const char *why = standin_use();
    bool taken;

    if (why)
        return skip_all(why);
    taken = standin_maps();
    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        if (!taken && strcmp(cases[i].wire, "shm") == 0) {
            skip(cases[i].claim, "pidfd_getfd() is not allowed here");
            continue;
        }
        if (cases[i].variable && strcmp(cases[i].variable, "DTN_TEST_DENIED")
            == 0 && !can_deny()) {
            skip(cases[i].claim, "seccomp filters are not allowed here");
            continue;
        }
        setenv("DTN_STANDIN_DEVICES", "2", 1);
        if (cases[i].variable)
            setenv(cases[i].variable, cases[i].value, 1);
        strcpy(file, ranks_file(cases[i].wire, 2, cases[i].more));
        ok(ranks_run(2, 60, cases[i].run, (void *)(uintptr_t)cases[i].words,
                     NULL) == 0, "%s", cases[i].claim);
        unlink(file);
        if (cases[i].variable)
            unsetenv(cases[i].variable);
    }
    return done();
}

/* gpujob.c - a job whose ranks put from GPU memory into GPU memory, over verbs
 *
 *     gpujob direct | staged | required | faults
 *
 * Two ranks on the driver of tests/standin, whose memory no CPU may touch.
 * `direct` needs the module rxe_dmabuf.c: nothing may then be staged, and each
 * signal behind a put waits for a READ where [transport] gpu_flush and the GPU
 * ask for it.  `staged` is a machine whose cards cannot reach the GPU: the same
 * results, by copies.  `required` is the same machine with [device] direct =
 * required: an error on both ranks.  `faults` needs the module too: a rank that
 * is killed, a card without room for regions, memory that was not made for
 * cards.
 *
 * Without this test, every collective could be staged, or be shown before the
 * card has read the memory back, and nobody would see it but by the time.
 */
#include "base/compiler.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "job/ctx.h"
#include "transport/verbs/verbs.h"
#include "dtensor.h"
#include "tests/rdma/gpucalls.h"
#include "tests/rdma/rxe_verbs.h"
#include "tests/support/job.h"
#include "tests/support/standin.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What is tried. */
struct trial {
    const char *flush;            /* [transport] gpu_flush                    */
    const char *attributes;       /* of the device                            */
    bool reads;                   /* must signals wait for READs?             */
    bool staged;                  /* must buffers be staged?                  */
    const char *what;             /* in words                                 */
    bool required;                /* is staging an error?                     */
    const char *hca;              /* NULL: one rail                           */
};

static const struct trial directs[] = {
    { "auto", "118=0", true, false, "gpu_flush = auto, a GPU without "
      "order", false, NULL },
    { "auto", "118=100", false, false, "gpu_flush = auto, a GPU that keeps "
      "the order", false, NULL },
    { "always", "118=100", true, false, "gpu_flush = always", false,
      NULL },
    { "never", "118=0", false, false, "gpu_flush = never", false,
      NULL },
    { "auto", "118=0", true, false, "two rails, a GPU without order", false,
      "rxe0+rxe1" },
    { "auto", "118=100", true, false, "two rails, a GPU that keeps the order "
      "of one", false, "rxe0+rxe1" },
};

static char file[64];

/* Memory that the program allocated itself and registers. */
static void own_memory(struct job *job, const struct dtn_cuda_driver *driver,
                       void *out)
{
    const size_t bytes = (size_t)GPU_LARGE * sizeof(float);
    CUdeviceptr own = 0;

    need(driver->cuMemAlloc(&own, bytes) == 0, "cuMemAlloc");
    good(dtensor_register(job->ctx, (void *)own, bytes, &job->err));
    need(gpu_collectives(job, (void *)own, out, GPU_LARGE), "of own memory");
    dtensor_unregister(job->ctx, (void *)own);
    need(driver->cuMemFree(own) == 0, "cuMemFree");
    need(!gpu_staged(job), "registered memory was staged");
}

static void rank_job(int rank, int n, void *arg)
{
    const struct trial *trial = arg;
    const size_t bytes = (size_t)GPU_LARGE * sizeof(float);
    struct job made, *job = &made;
    const struct dtn_cuda_driver *driver;
    unsigned long reads;
    void *in = NULL, *out = NULL;

    job_open(job, rank, n, file);
    driver = gpu_enter(job);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, bytes, &in, &job->err));
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, bytes, &out, &job->err));
    need(gpu_collectives(job, in, out, GPU_SMALL)
         && gpu_collectives(job, in, out, GPU_LARGE), "a result is wrong");
    need(gpu_staged(job) == trial->staged, "%s staged", trial->staged
         ? "nothing was" : "a buffer was");
    if (!trial->staged)
        own_memory(job, driver, out);
    need(gpu_redistribute(job), "a tensor is wrong");
    reads = dtn_verbs_of(job->ctx->transports[0])->readbacks;
    need((reads > 0) == trial->reads, "%lu READs", reads);
    dtensor_free(job->ctx, in);
    dtensor_free(job->ctx, out);
    gpu_close(job);
}

/* What may not be staged is an error of the first call, on both ranks. */
static void rank_required(int rank, int n, void *arg)
{
    struct job made, *job = &made;
    const struct dtensor_mesh *mesh = NULL;
    void *mem = NULL;
    int rc;

    job_open(job, rank, n, file);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, GPU_LARGE, &mem, &job->err));
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    rc = dtensor_allreduce(mesh, mem, mem, GPU_LARGE / 4, DTENSOR_F32,
                           DTENSOR_SUM, &job->err);
    need(rc == DTENSOR_ENODEV || rc == DTENSOR_EABORT, "%s", job->err.text);
    need(rc == DTENSOR_EABORT || strstr(job->err.text, "direct = required")
         != NULL, "%s", job->err.text);
    _exit(0);
}

/* -------------------------------------------------------------- faults --- */

/* Rank 1 is killed in the middle of a call: rank 0 is told, and frees all. */
static void rank_killed(int rank, int n, void *arg)
{
    const size_t bytes = (size_t)GPU_LARGE * sizeof(float);
    struct job made, *job = &made;
    void *mem = NULL;
    int rc = 0;

    if (rank == 1)
        setenv("DTN_FAULT", "kill_signal=40", 1);
    job_open(job, rank, n, file);
    gpu_enter(job);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, bytes, &mem, &job->err));
    for (int i = 0; i < 100 && rc == 0; i++)
        rc = gpu_allreduce(job, mem, mem, GPU_LARGE);
    need(rc == DTENSOR_EPEER && job->err.rank == 1, "%s: %s",
         dtensor_errname(rc), job->err.text);
    need(!gpu_staged(job), "a buffer was staged");
    need(gpu_allreduce(job, mem, mem, GPU_LARGE) == DTENSOR_EPEER, "again");
    dtensor_free(job->ctx, mem);
    gpu_close(job);
}

/* The card has room for `arg` regions of GPU memory, and no more: the call is
 * right, and the words say why it was staged.
 */
static void rank_full(int rank, int n, void *arg)
{
    const size_t bytes = (size_t)GPU_LARGE * sizeof(float);
    const bool some = *(const int *)arg > 0;
    const struct dtn_cuda_driver *driver;
    struct job made, *job = &made;
    void *in = NULL, *out = NULL;
    CUdeviceptr own = 0;

    rxe_registrations_left = *(const int *)arg;
    job_open(job, rank, n, file);
    driver = gpu_enter(job);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, bytes, &in, &job->err));
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, bytes, &out, &job->err));
    need(gpu_collectives(job, in, out, GPU_LARGE), "a result is wrong");
    need(gpu_staged(job) == !some, "%s", dtensor_last_plan(job->ctx));
    need(some || strstr(dtensor_last_plan(job->ctx), "GPU memory staged: "
                        "rc rxe0 cannot register memory of GPU "),
         "%s", dtensor_last_plan(job->ctx));
    need(some || strstr(dtensor_last_plan(job->ctx), "as dma-buf: Cannot "
                        "allocate memory"), "%s", dtensor_last_plan(job->ctx));
    rxe_registrations_left = 0;
    need(driver->cuMemAlloc(&own, bytes) == 0, "cuMemAlloc");
    need(dtensor_register(job->ctx, (void *)own, bytes, &job->err)
         == DTENSOR_EINVAL && strstr(job->err.text, "Cannot allocate memory"),
         "registered: %s", job->err.text);
    need(gpu_collectives(job, (void *)own, out, GPU_LARGE), "of own memory");
    need(driver->cuMemFree(own) == 0, "cuMemFree");
    dtensor_free(job->ctx, in);
    dtensor_free(job->ctx, out);
    gpu_close(job);
}

/* Two pieces of memory side by side, not made for cards, as PyTorch makes its
 * expandable segments; and the same made for cards.
 */
static CUdeviceptr segments_make(const struct dtn_cuda_driver *driver,
                                 int device, size_t piece, bool for_cards)
{
    const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, device },
        .allocFlags.gpuDirectRDMACapable = for_cards };
    const CUmemAccessDesc access = {
        .location = prop.location,
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at = 0;

    need(driver->cuMemAddressReserve(&at, 2 * piece, 0, 0, 0) == 0, "reserve");
    for (size_t i = 0; i < 2; i++)
        need(driver->cuMemCreate(&handle, piece, &prop, 0) == 0
             && driver->cuMemMap(at + i * piece, piece, 0, handle, 0) == 0
             && driver->cuMemRelease(handle) == 0, "piece %zu", i);
    need(driver->cuMemSetAccess(at, 2 * piece, &access, 1) == 0, "access");
    return at;
}

static void rank_segments(int rank, int n, void *arg)
{
    const size_t piece = 2 << 20, bytes = 2 * piece;
    const bool for_cards = *(const int *)arg > 0;
    const struct dtn_cuda_driver *driver;
    struct job made, *job = &made;
    CUdeviceptr at;
    void *out = NULL;
    int rc;

    job_open(job, rank, n, file);
    driver = gpu_enter(job);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, bytes, &out, &job->err));
    at = segments_make(driver, dtn_cuda_of(job->ctx->device)->number, piece,
                       for_cards);
    rc = dtensor_register(job->ctx, (void *)at, bytes, &job->err);
    need((rc == 0) == for_cards, "registered: %s", job->err.text);
    need(rc == 0 || strstr(job->err.text, "IS_GPU_DIRECT_RDMA_CAPABLE is 0 "
                           "(take memory of dtensor_alloc_on(), or switch off "
                           "PyTorch's expandable_segments)"), "%s",
         job->err.text);
    need(gpu_collectives(job, (void *)at, out, GPU_LARGE), "over the pieces");
    need(gpu_staged(job) == !for_cards, "%s", dtensor_last_plan(job->ctx));
    need(for_cards || strstr(dtensor_last_plan(job->ctx), "GPU memory staged: "
                             "rc it was not made for RDMA"), "%s",
         dtensor_last_plan(job->ctx));
    if (rc == 0)
        dtensor_unregister(job->ctx, (void *)at);
    need(driver->cuMemUnmap(at, piece) == 0
         && driver->cuMemUnmap(at + piece, piece) == 0
         && driver->cuMemAddressFree(at, bytes) == 0, "unmap");
    dtensor_free(job->ctx, out);
    gpu_close(job);
}

static const struct {
    const char *what;
    rank_main_f *run;
    int number;                   /* what the rank is told                    */
    int deaths;                   /* ranks that do not end well               */
} faults[] = {
    { "a rank is killed whose GPU memory is written", rank_killed, 0, 1 },
    { "a card without room for a region stages, and says so", rank_full, 0,
      0 },
    { "a card that is full when more is registered", rank_full, 1000, 0 },
    { "segments that were not made for cards are staged, and it is said",
      rank_segments, 0, 0 },
    { "segments that were are written in place, over their border",
      rank_segments, 1, 0 },
};

static void run_faults(void)
{
    for (size_t i = 0; i < DTN_COUNT(faults); i++) {
        int number = faults[i].number, status[2] = { 0, 0 };

        snprintf(file, sizeof file, "%s", ranks_file("rc", 2,
            "connect_timeout = 30s\nop_timeout = 30s\n[mesh \"world\"]\n"
            "dims = x=2\nmemory = cuda\n"));
        ok(ranks_run(2, 120, faults[i].run, &number, status)
           == faults[i].deaths && status[0] == 0, "%s", faults[i].what);
        remove(file);
    }
}

static void run(const struct trial *trial)
{
    rank_main_f *rank = trial->required ? rank_required : rank_job;
    char more[300];

    snprintf(more, sizeof more, "connect_timeout = 30s\ngpu_flush = %s\n"
             "[mesh \"world\"]\ndims = x=2\nmemory = cuda\n[device]\ndirect = %s\n",
             trial->flush, trial->required || !trial->staged ? "required"
                                                             : "auto");
    if (trial->attributes)
        setenv("DTN_STANDIN_ATTRIBUTES", trial->attributes, 1);
    if (trial->hca)
        setenv("DTN_TEST_HCA", trial->hca, 1);
    snprintf(file, sizeof file, "%s", ranks_file("rc", 2, more));
    ok(ranks_run(2, 120, rank, (void *)(uintptr_t)trial, NULL) == 0, "%s",
       trial->what);
    remove(file);
    unsetenv("DTN_STANDIN_ATTRIBUTES");
    if (trial->hca)
        unsetenv("DTN_TEST_HCA");
}

int main(int argc, char **argv)
{
    const struct trial staged = { "always", NULL, false, true, "cards that "
                                  "cannot reach GPU memory: it is staged",
                                  false, NULL };
    const struct trial required = { "always", NULL, false, true, "where "
                                    "staging is an error", true, NULL };

    if (argc > 1 && strcmp(argv[1], "staged") == 0)
        run(&staged);
    else if (argc > 1 && strcmp(argv[1], "required") == 0)
        run(&required);
    else if (argc > 1 && strcmp(argv[1], "faults") == 0)
        run_faults();
    else
        for (size_t i = 0; i < DTN_COUNT(directs); i++)
            run(&directs[i]);
    return done();
}

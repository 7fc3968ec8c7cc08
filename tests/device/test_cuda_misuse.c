/* test_cuda_misuse.c - addresses and streams that do not go with the GPU
 *
 * Two ranks on the driver in tests/standin: a GPU's address before the library
 * has opened a GPU, memory of another device or of the wrong kind, a stream
 * that is being captured, too much memory.
 *
 * Without this test, an address on a GPU could be taken for one of the host,
 * which ends the process.
 */
#include "base/compiler.h"
#include "device/cuda/driver.h"
#include "device/memory.h"
#include "job/ctx.h"
#include "transport/exporter.h"
#include "dtensor.h"
#include "tests/support/job.h"
#include "tests/support/standin.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE "connect_timeout = 20s\nop_timeout = 20s\n"
#define ON_GPU "[mesh \"world\"]\ndims = x=2\nmemory = cuda\n"

enum { COUNT = 3000, BYTES = COUNT * 4, GRANULE = 2 << 20 };

static const struct dtn_cuda_driver *driver;
static char file[64];
static bool maps;                /* peers may take files of each other       */

/* -------------------------------------------------------------- helpers --- */

static const struct dtensor_mesh *world(struct job *job)
{
    const struct dtensor_mesh *mesh = NULL;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    return mesh;
}

/* As a program that uses CUDA itself: the context of a device is current. */
static void cuda_start(int number)
{
    struct dtensor_error err;
    CUcontext context;

    need(dtn_cuda_driver_load(&driver, &err) == 0
         && driver->cuDevicePrimaryCtxRetain(&context, number) == 0
         && driver->cuCtxPushCurrent(context) == 0, "GPU %d", number);
}

static void *cuda_alloc(void)
{
    CUdeviceptr at = 0;

    need(driver->cuMemAlloc(&at, BYTES) == 0, "cuMemAlloc");
    return (void *)(uintptr_t)at;
}

static void move(void *dst, const void *src)
{
    need(driver->cuMemcpyAsync((CUdeviceptr)dst, (CUdeviceptr)src, BYTES, NULL)
         == 0 && driver->cuStreamSynchronize(NULL) == 0, "cuMemcpyAsync");
}

static void fill(void *mem, float value)
{
    float array[COUNT];

    for (int i = 0; i < COUNT; i++)
        array[i] = value;
    move(mem, array);
}

static void has(const void *mem, float value)
{
    float array[COUNT];

    move(array, mem);
    for (int i = 0; i < COUNT; i++)
        need(array[i] == value, "element %d: %g, expected %g", i,
             (double)array[i], (double)value);
}

#define refused(call, errcode, words)                                         \
    need((call) == (errcode) && strstr(job->err.text, words),                 \
         "%s: not \"%s\" but %s: %s", #call, words,                           \
         dtensor_errname(job->err.code), job->err.text)

static int allreduce(struct job *job, const void *in, void *out)
{
    return dtensor_allreduce(world(job), in, out, COUNT, DTENSOR_F32,
                             DTENSOR_SUM, &job->err);
}

static int spec_of(struct job *job, struct dtensor_spec *spec)
{
    const int64_t shape[] = { COUNT };

    return dtensor_spec_on(spec, world(job), "R", DTENSOR_F32, 1, shape,
                           &job->err);
}

/* -------------------------------------------- before a GPU was opened --- */

/* Each public function that takes an address, with one on a GPU. */
enum entry { REDUCE, START, PERSISTENT, PAIR, GROUP, LOCAL, WHOLE, SPREAD,
             REGISTER, ENTRIES };

static const char *const entry_names[ENTRIES] = {
    "allreduce", "a request", "a persistent call", "send and recv", "a group",
    "from_local", "full_tensor", "distribute", "register"
};

static const struct dtensor_call sum = {
    .coll = DTENSOR_ALLREDUCE, .count = COUNT, .dtype = DTENSOR_F32,
    .op = DTENSOR_SUM
};

static int entry_request(struct job *job, void *mem)
{
    struct dtensor_request *request;
    int rc = dtensor_call_start(world(job), &sum, mem, mem, &request,
                                &job->err);

    return rc != 0 ? rc : dtensor_wait(request, &job->err);
}

static int entry_persistent(struct job *job, void *mem)
{
    struct dtensor_persistent *persistent;
    struct dtensor_request *request;
    int rc = dtensor_persistent_create(world(job), &sum, mem, mem, &persistent,
                                       &job->err);

    if (rc != 0)
        return rc;
    rc = dtensor_persistent_start(persistent, &request, &job->err);
    if (rc == 0)
        rc = dtensor_wait(request, &job->err);
    dtensor_persistent_destroy(persistent);
    return rc;
}

/* Rank 0 sends what it has to rank 1. */
static int entry_pair(struct job *job, void *mem)
{
    return job->rank == 0
         ? dtensor_send(world(job), 1, mem, COUNT, DTENSOR_F32, &job->err)
         : dtensor_recv(world(job), 0, mem, COUNT, DTENSOR_F32, &job->err);
}

static int entry_group(struct job *job, void *mem)
{
    struct dtensor_error none;
    int rc;

    good(dtensor_group_begin(job->ctx, &job->err));
    rc = entry_pair(job, mem);
    return dtensor_group_end(job->ctx, rc == 0 ? &job->err : &none) | rc;
}

/* A tensor from the memory, or to it. */
static int entry_tensor(struct job *job, enum entry entry, void *mem)
{
    struct dtensor *t = NULL;
    struct dtensor_spec spec;
    int rc = spec_of(job, &spec);

    if (rc == 0 && entry == LOCAL)
        rc = dtensor_from_local(&spec, mem, BYTES, &t, &job->err);
    if (rc == 0 && entry == SPREAD)
        rc = dtensor_distribute(&spec, mem, -1, &t, &job->err);
    if (rc == 0 && entry == WHOLE)
        rc = dtensor_full(&spec, job->rank + 1.0, &t, &job->err);
    if (rc == 0)
        rc = dtensor_full_tensor(t, mem, BYTES, &job->err);
    dtensor_destroy(t);
    return rc;
}

static int entry_call(struct job *job, enum entry entry, void *mem)
{
    switch (entry) {
    case REDUCE:
        return allreduce(job, mem, mem);
    case START:
        return entry_request(job, mem);
    case PERSISTENT:
        return entry_persistent(job, mem);
    case PAIR:
        return entry_pair(job, mem);
    case GROUP:
        return entry_group(job, mem);
    case REGISTER:
        return dtensor_register(job->ctx, mem, BYTES, &job->err);
    default:
        return entry_tensor(job, entry, mem);
    }
}

/* What the memory of value rank + 1 has afterwards. */
static float entry_result(enum entry entry, int rank)
{
    switch (entry) {
    case REDUCE:
    case START:
    case PERSISTENT:
        return 3;
    case PAIR:
    case GROUP:
        return 1;
    default:
        return (float)(rank + 1);
    }
}

/* The program has CUDA before the library, or after it has begun to work. */
static void rank_first(int rank, int n, void *arg)
{
    const int which = *(const int *)arg;
    const enum entry entry = (enum entry)(which % ENTRIES);
    struct job made, *job = &made;
    static float host[COUNT];
    void *mem;

    if (which < ENTRIES)
        cuda_start(rank);
    job_open(job, rank, n, file);
    good(dtensor_allreduce(world(job), host, host, COUNT / 2, DTENSOR_F32,
                           DTENSOR_SUM, &job->err));
    if (which >= ENTRIES)
        cuda_start(rank);
    need(!job->ctx->device, "a device was opened for host memory");
    mem = cuda_alloc();
    fill(mem, (float)(rank + 1));
    if (entry != REGISTER)
        good(entry_call(job, entry, mem));
    else
        refused(entry_call(job, entry, mem), DTENSOR_EINVAL,
                "which no transport reaches in place");
    has(mem, entry_result(entry, rank));
    need(job->ctx->device, "no device was opened");
    dtensor_fini(job->ctx);
}

/* The file says that this host has no GPU for its ranks. */
static void rank_none(int rank, int n, void *arg)
{
    struct job made, *job = &made;
    float host[COUNT] = { 0 };
    void *mem;

    cuda_start(rank);
    job_open(job, rank, n, file);
    mem = cuda_alloc();
    for (int e = 0; e < ENTRIES; e++)
        refused(entry_call(job, (enum entry)e, mem), DTENSOR_ENODEV,
                "gpus = none, but device memory is asked for on localhost");
    good(allreduce(job, host, host));
    dtensor_fini(job->ctx);
}

/* ---------------------------------------------------- the wrong memory --- */

/* Memory of the other device, in every function. */
static void rank_other(int rank, int n, void *arg)
{
    struct job made, *job = &made;
    void *mem;

    job_open(job, rank, n, file);
    cuda_start(!rank);
    mem = cuda_alloc();
    for (int e = 0; e < ENTRIES; e++)
        refused(entry_call(job, (enum entry)e, mem), DTENSOR_EINVAL,
                "is memory of GPU");
    setenv("DTN_STANDIN_MEMORY_IS", "managed", 1);
    for (int e = 0; e < ENTRIES; e++)
        refused(entry_call(job, (enum entry)e, mem), DTENSOR_EINVAL,
                "is managed memory");
    unsetenv("DTN_STANDIN_MEMORY_IS");
    driver->cuMemFree((CUdeviceptr)mem);
    cuda_start(rank);
    mem = cuda_alloc();
    fill(mem, 1);
    good(allreduce(job, mem, mem));
    has(mem, 2);
    dtensor_fini(job->ctx);
}

/* Memory of cuMemCreate(), as PyTorch's expandable segments. */
static void *segment_alloc(int number, bool for_cards)
{
    const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, number },
        .allocFlags.gpuDirectRDMACapable = for_cards };
    const CUmemAccessDesc access = {
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, number },
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;

    need(driver->cuMemAddressReserve(&at, GRANULE, 0, 0, 0) == 0
         && driver->cuMemCreate(&handle, GRANULE, &prop, 0) == 0
         && driver->cuMemMap(at, GRANULE, 0, handle, 0) == 0
         && driver->cuMemSetAccess(at, GRANULE, &access, 1) == 0, "VMM");
    return (void *)(uintptr_t)at;
}

static void rank_segment(int rank, int n, void *arg)
{
    const struct dtn_exporter *exporter;
    struct job made, *job = &made;
    void *segment, *capable, *ours;

    job_open(job, rank, n, file);
    cuda_start(rank);
    exporter = job->ctx->device->exporter;
    segment = segment_alloc(rank, false);
    capable = segment_alloc(rank, true);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, BYTES, &ours, &job->err));
    need(exporter->flaw(exporter, segment)
         && strstr(exporter->flaw(exporter, segment), "RDMA_CAPABLE is 0")
         && strstr(exporter->flaw(exporter, segment), "expandable_segments"),
         "%s", exporter->flaw(exporter, segment));
    need(!exporter->flaw(exporter, capable), "it is capable");
    need(!exporter->flaw(exporter, ours), "ours is capable");
    fill(segment, 1);
    good(allreduce(job, segment, segment));
    has(segment, 2);
    need(strstr(dtensor_last_plan(job->ctx), maps
                ? "GPU memory staged: shm does not map this memory (take that "
                  "of dtensor_alloc_on)" : "GPU memory staged: shm "), "%s",
         dtensor_last_plan(job->ctx));
    dtensor_free(job->ctx, ours);
    dtensor_fini(job->ctx);
}

static void rank_captured(int rank, int n, void *arg)
{
    struct job made, *job = &made;
    CUstream stream;
    void *mem;

    job_open(job, rank, n, file);
    cuda_start(rank);
    mem = cuda_alloc();
    fill(mem, 1);
    need(driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == 0
         && driver->cuStreamBeginCapture(stream,
                CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == 0, "capture");
    refused(dtensor_stream(job->ctx, stream, &job->err), DTENSOR_EINVAL,
            "is being captured into a graph, which this call cannot be");
    good(allreduce(job, mem, mem));
    driver->cuStreamEndCapture(stream, &(CUgraph){ NULL });
    good(dtensor_stream(job->ctx, stream, &job->err));
    good(allreduce(job, mem, mem));
    has(mem, 4);
    dtensor_fini(job->ctx);
}

static void larger(void *dst, const void *left, const void *right,
                   size_t count, enum dtensor_dtype dtype, void *arg)
{
    const float *l = left, *r = right;

    for (size_t i = 0; i < count; i++)
        ((float *)dst)[i] = l[i] > r[i] ? l[i] : r[i];
}

/* A function of the program's: right, and the plan says who reduced. */
static void rank_function(int rank, int n, void *arg)
{
    struct job made, *job = &made;
    enum dtensor_redop op;
    void *mem;

    job_open(job, rank, n, file);
    cuda_start(rank);
    mem = cuda_alloc();
    fill(mem, (float)rank);
    good(dtensor_redop_create(job->ctx, larger, NULL, 0, &op, &job->err));
    good(dtensor_allreduce(world(job), mem, mem, COUNT, DTENSOR_F32, op,
                           &job->err));
    has(mem, 1);
    need(strstr(dtensor_last_plan(job->ctx), "; reduced on copies in host "
                "memory, by a function of the program"), "%s",
         dtensor_last_plan(job->ctx));
    good(allreduce(job, mem, mem));
    need(!strstr(dtensor_last_plan(job->ctx), "function"), "%s",
         dtensor_last_plan(job->ctx));
    dtensor_redop_destroy(job->ctx, op);
    dtensor_fini(job->ctx);
}

/* Every way to ask for too much, and then what was there works on. */
static void rank_memory(int rank, int n, void *arg)
{
    const int64_t shape[] = { (int64_t)100 << 20 };
    struct dtensor *t = NULL;
    struct job made, *job = &made;
    struct dtensor_spec spec;
    void *mem, *more = NULL;

    job_open(job, rank, n, file);
    cuda_start(rank);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, BYTES, &mem, &job->err));
    for (int turn = 0; turn < 3; turn++) {
        fill(mem, 1);
        refused(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, (size_t)90 << 20,
                                 &more, &job->err), DTENSOR_ENOMEM,
                "no room for 90.0 MiB on GPU");
        good(dtensor_spec_on(&spec, world(job), "S(0)", DTENSOR_F32, 1, shape,
                             &job->err));
        need(dtensor_zeros(&spec, &t, &job->err) == DTENSOR_ENOMEM
             && strstr(job->err.text, "200.0 MiB") && !t, "%s", job->err.text);
        good(allreduce(job, mem, mem));
        has(mem, 2);
    }
    need(!more, "the result was touched");
    dtensor_free(job->ctx, mem);
    dtensor_fini(job->ctx);
}

/* ------------------------------------------------------------- cases --- */

static const struct {
    const char *claim, *more;
    rank_main_f *run;
    const char *gpus;             /* of [nodes], NULL: not set                */
    const char *memory;           /* bytes of the device, NULL: enough        */
} cases[] = {
    { "gpus = none: each address on a GPU is refused", PATIENCE, rank_none,
      "none", NULL },
    { "gpus = 0, 1: memory of the other GPU, or managed, is refused", PATIENCE
      ON_GPU, rank_other, "0,1", NULL },
    { "memory that was not made for RDMA is staged, and told apart", PATIENCE
      ON_GPU, rank_segment, NULL, NULL },
    { "a stream that is being captured is refused", PATIENCE ON_GPU,
      rank_captured, NULL, NULL },
    { "a function of the program's is said", PATIENCE ON_GPU, rank_function,
      NULL, NULL },
    { "too much memory is ENOMEM, and all goes on", PATIENCE ON_GPU,
      rank_memory, NULL, "83886080" },
};

/* A key more in [nodes]. */
static void file_gpus(const char *gpus)
{
    char text[2000], *rest;
    FILE *in = fopen(file, "r");
    size_t n = in ? fread(text, 1, sizeof text - 1, in) : 0;

    text[n] = '\0';
    rest = strstr(text, "[transport]");
    if (!in || !rest)
        exit(99);
    fclose(in);
    in = fopen(file, "w");
    if (!in)
        exit(99);
    fprintf(in, "%.*sgpus = %s\n%s", (int)(rest - text), text, gpus, rest);
    fclose(in);
}

static void case_run(int i)
{
    strcpy(file, ranks_file("shm", 2, cases[i].more));
    if (cases[i].gpus)
        file_gpus(cases[i].gpus);
    if (cases[i].memory)
        setenv("DTN_STANDIN_MEMORY", cases[i].memory, 1);
    ok(ranks_run(2, 60, cases[i].run, NULL, NULL) == 0, "%s", cases[i].claim);
    unsetenv("DTN_STANDIN_MEMORY");
    unlink(file);
}

int main(void)
{
    const char *why = standin_use();

    if (why || !standin_used())
        return skip_all(why ? why : "this is not for a real driver");
    maps = standin_maps();
    setenv("DTN_STANDIN_DEVICES", "2", 1);
    for (int which = 0; which < 2 * ENTRIES; which++) {
        strcpy(file, ranks_file("shm", 2, PATIENCE));
        ok(ranks_run(2, 60, rank_first, &which, NULL) == 0, "a GPU's address "
           "in %s opens the GPU, CUDA %s the library", entry_names[which
           % ENTRIES], which < ENTRIES ? "before" : "after");
        unlink(file);
    }
    for (size_t i = 0; i < DTN_COUNT(cases); i++)
        case_run((int)i);
    return done();
}

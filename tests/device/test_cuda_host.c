/* test_cuda_host.c - the same calls on the host and on the GPU, bit for bit
 *
 * Two ranks make each call twice, once with memory of the host and once with
 * that of their GPUs, and compare all bytes: collectives of every type and
 * reduction on random bits, redistributes, and every fill of random numbers.
 * It speaks to the library by its public functions only, so it runs on the
 * driver in tests/standin and, by `make check-gpu`, on a real one: two GPUs, or
 * one that the ranks share.  DTN_TEST_ARRAY: elements of the largest array.
 *
 * Without this test, what a GPU makes of the kernels would be compared with
 * nothing, the first time that somebody has one.
 */
#include "base/compiler.h"
#include "dtensor.h"
#include "tests/support/job.h"
#include "tests/support/rand.h"
#include "tests/support/standin.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ELEM_MAX = 16 };           /* bytes of the largest type                */

static char file[64];
static size_t count_max = 20011;  /* elements                                 */

/* ---------------------------------------------------------- collectives --- */

/* Buffers of the host, and the same on the GPU. */
struct sides {
    struct job *job;
    const struct dtensor_mesh *mesh;
    unsigned char *in, *out, *back;        /* of the host                     */
    void *gpu_in, *gpu_out;
    size_t bytes;                 /* of each                                  */
};

/* Bytes between host and GPU.  Copies are the library's own: from_local() and
 * full_tensor() of a tensor that only this program looks at.
 */
static void bytes_copy(const struct sides *sides, void *dst, const void *src)
{
    const int64_t shape[] = { (int64_t)sides->bytes };
    struct job *job = sides->job;
    struct dtensor *t = NULL;
    struct dtensor_spec spec;

    good(dtensor_spec_on(&spec, sides->mesh, "R", DTENSOR_U8, 1, shape,
                         &job->err));
    good(dtensor_from_local(&spec, src, sides->bytes, &t, &job->err));
    good(dtensor_full_tensor(t, dst, sides->bytes, &job->err));
    dtensor_destroy(t);
}

static void sides_fill(struct sides *sides, struct dtensor_call *call,
                       uint64_t *random)
{
    for (size_t i = 0; i < sides->bytes; i++)
        sides->in[i] = call->dtype == DTENSOR_BOOL
                     ? (unsigned char)(rand_next(random) & 1)
                     : (unsigned char)(rand_next(random) >> 24);
    memset(sides->out, 0x55, sides->bytes);
    bytes_copy(sides, sides->gpu_in, sides->in);
    bytes_copy(sides, sides->gpu_out, sides->out);
}

/* One call on both sides: the same code, and the same bytes. */
static int sides_call(struct sides *sides, const struct dtensor_call *call)
{
    struct job *job = sides->job;
    int host = dtensor_call_run(sides->mesh, call, sides->in, sides->out, NULL);
    int gpu = dtensor_call_run(sides->mesh, call, sides->gpu_in,
                               sides->gpu_out, &job->err);

    need(host == gpu, "collective %d of %s, %s: %s on the host, %s on the GPU: "
         "%s", (int)call->coll, dtensor_dtype_name(call->dtype),
         dtensor_redop_name(call->op), dtensor_errname(host),
         dtensor_errname(gpu), job->err.text);
    bytes_copy(sides, sides->back, sides->gpu_out);
    for (size_t i = 0; i < sides->bytes; i++)
        need(sides->back[i] == sides->out[i], "collective %d of %zu %s, %s: "
             "byte %zu is %02x on the host, %02x on the GPU", (int)call->coll,
             call->count, dtensor_dtype_name(call->dtype),
             dtensor_redop_name(call->op), i, sides->out[i], sides->back[i]);
    return host == 0;
}

static void sides_open(struct sides *sides, struct job *job)
{
    sides->job = job;
    good(dtensor_mesh_find(job->ctx, "world", &sides->mesh, &job->err));
    sides->bytes = 2 * count_max * ELEM_MAX;
    sides->in = malloc(sides->bytes);
    sides->out = malloc(sides->bytes);
    sides->back = malloc(sides->bytes);
    need(sides->in && sides->out && sides->back, "malloc");
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, sides->bytes, &sides->gpu_in,
                          &job->err));
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, sides->bytes,
                          &sides->gpu_out, &job->err));
}

static void sides_close(struct sides *sides)
{
    dtensor_free(sides->job->ctx, sides->gpu_in);
    dtensor_free(sides->job->ctx, sides->gpu_out);
    free(sides->in);
    free(sides->out);
    free(sides->back);
}

static void rank_collectives(int rank, int n, void *arg)
{
    static const enum dtensor_collective colls[] = { DTENSOR_ALLREDUCE,
        DTENSOR_REDUCE_SCATTER, DTENSOR_ALLGATHER, DTENSOR_ALL_TO_ALL };
    uint64_t random = 20261123u + (unsigned)rank;
    struct job made, *job = &made;
    struct sides sides;
    int done_calls = 0;

    job_open(job, rank, n, file);
    sides_open(&sides, job);
    for (int d = 0; d < DTENSOR_NDTYPES; d++)
        for (int op = 0; op < DTENSOR_NREDOPS; op++) {
            struct dtensor_call call = { .coll = colls[(d + op) % 4],
                .count = op % 2 ? count_max : 17, .op = (enum dtensor_redop)op,
                .dtype = (enum dtensor_dtype)d };

            sides_fill(&sides, &call, &random);
            done_calls += sides_call(&sides, &call);
            call.coll = DTENSOR_ALLREDUCE;
            done_calls += sides_call(&sides, &call);
        }
    if (rank == 0)
        note("%d calls of %d types, seed 20261123", done_calls,
             (int)DTENSOR_NDTYPES);
    need(done_calls > 150, "only %d calls are valid", done_calls);
    sides_close(&sides);
    dtensor_fini(job->ctx);
}

/* -------------------------------------------------------------- tensors --- */

enum fill { UNIFORM, NORMAL, LOG_NORMAL, EXPONENTIAL, TRUNC_NORMAL, BERNOULLI,
            INTEGERS, BITS, ARANGE, FILLS };

static const char *const fill_names[FILLS] = {
    "uniform", "normal", "log_normal", "exponential", "trunc_normal",
    "bernoulli", "integers", "bits", "arange"
};

static int fill_run(struct job *job, enum fill fill, struct dtensor *t,
                    struct dtensor_generator *gen)
{
    switch (fill) {
    case UNIFORM:
        return dtensor_fill_uniform(t, -1, 3, gen, &job->err);
    case NORMAL:
        return dtensor_fill_normal(t, 1, 0.5, gen, &job->err);
    case LOG_NORMAL:
        return dtensor_fill_log_normal(t, 0, 1, gen, &job->err);
    case EXPONENTIAL:
        return dtensor_fill_exponential(t, 2, gen, &job->err);
    case TRUNC_NORMAL:
        return dtensor_fill_trunc_normal(t, 0, 1, -2, 2, gen, &job->err);
    case BERNOULLI:
        return dtensor_fill_bernoulli(t, 0.3, gen, &job->err);
    case INTEGERS:
        return dtensor_fill_integers(t, 0, 100, gen, &job->err);
    default:
        return 0;
    }
}

/* A tensor of the mesh, filled, redistributed, and its whole at `whole`. */
static void tensor_make(struct job *job, const char *mesh_name, enum fill fill,
                        enum dtensor_dtype dtype, void *whole)
{
    const int64_t shape[] = { 61, (int64_t)count_max / 61 };
    const size_t bytes = (size_t)(shape[0] * shape[1])
                       * dtensor_dtype_size(dtype);
    struct dtensor_generator *gen = NULL;
    struct dtensor *t = NULL, *cols = NULL;
    const struct dtensor_mesh *mesh;
    struct dtensor_spec spec;

    good(dtensor_mesh_find(job->ctx, mesh_name, &mesh, &job->err));
    good(dtensor_spec_on(&spec, mesh, "S(0)", dtype, 2, shape, &job->err));
    good(dtensor_generator_create(7 + (uint64_t)fill, &gen, &job->err));
    if (fill == ARANGE)
        good(dtensor_arange(&spec, &t, &job->err));
    else
        good(dtensor_zeros(&spec, &t, &job->err));
    if (fill == BITS)
        good(dtensor_fill_bits(t, gen, &job->err));
    else
        good(fill_run(job, fill, t, gen));
    good(dtensor_redistribute(t, "S(1)", &cols, &job->err));
    good(dtensor_full_tensor(cols, whole, bytes, &job->err));
    dtensor_destroy(cols);
    dtensor_destroy(t);
    dtensor_generator_destroy(gen);
}

static void rank_tensors(int rank, int n, void *arg)
{
    static const enum dtensor_dtype dtypes[] = { DTENSOR_F32, DTENSOR_F64,
                                                 DTENSOR_BF16, DTENSOR_I64 };
    unsigned char *host = malloc(count_max * 8), *gpu = malloc(count_max * 8);
    struct job made, *job = &made;
    int made_tensors = 0;

    need(host && gpu, "malloc");
    job_open(job, rank, n, file);
    for (int f = 0; f < FILLS; f++)
        for (size_t d = 0; d < DTN_COUNT(dtypes); d++) {
            const size_t elem = dtensor_dtype_size(dtypes[d]);
            const size_t bytes = count_max / 61 * 61 * elem;

            if ((dtypes[d] == DTENSOR_I64) != (f == INTEGERS || f == BITS)
                && f != ARANGE)
                continue;
            tensor_make(job, "host", (enum fill)f, dtypes[d], host);
            tensor_make(job, "world", (enum fill)f, dtypes[d], gpu);
            for (size_t i = 0; i < bytes; i++)
                need(host[i] == gpu[i], "%s of %s: element %zu differs",
                     fill_names[f], dtensor_dtype_name(dtypes[d]), i / elem);
            made_tensors++;
        }
    if (rank == 0)
        note("%d tensors of %zu elements", made_tensors, count_max / 61 * 61);
    free(host);
    free(gpu);
    dtensor_fini(job->ctx);
}

/* ----------------------------------------------------------------- main --- */

static void run(const char *claim, const char *wire, rank_main_f *fn)
{
    strcpy(file, ranks_file(wire, 2, "connect_timeout = 60s\n[mesh \"world\"]\n"
                            "dims = x=2\nmemory = cuda\n[mesh \"host\"]\n"
                            "dims = x=2\n"));
    ok(ranks_run(2, 280, fn, NULL, NULL) == 0, "%s, over %s", claim, wire);
    unlink(file);
}

int main(void)
{
    const char *why = standin_use(), *elements = getenv("DTN_TEST_ARRAY");

    if (why)
        return skip_all(why);
    why = standin_used() ? "" : standin_no_gpu();
    if (*why)
        return skip_all(why);
    if (elements)
        count_max = strtoul(elements, NULL, 0);
    if (sanitized())
        count_max /= 10;
    setenv("DTN_STANDIN_DEVICES", "2", 0);
    run("collectives have the bytes of the host's", "shm", rank_collectives);
    run("collectives have the bytes of the host's", "tcp", rank_collectives);
    run("tensors have the bytes of the host's", "shm", rank_tensors);
    return done();
}

/* session.c - context, meshes and buffers of a run
 *
 * Tests run on a mesh the user chooses; the bench itself talks over `all`, one
 * dimension of every rank.  Its own decisions must be the same everywhere: a
 * rank that cannot get memory says so in session_agree(), and all ranks stop
 * there instead of waiting for it in the next barrier.
 */
#include "tools/bench/bench.h"
#include "tools/bench/options.h"
#include "tools/bench/read.h"
#include "tools/bench/session.h"
#include "dtensor.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int session_fail(struct dtensor_error *err, int code, const char *fmt, ...)
{
    va_list ap;

    memset(err, 0, sizeof *err);
    err->code = code;
    err->rank = -1;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    return code;
}

int64_t session_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

enum bench_exit session_exit_code(int errcode)
{
    switch (errcode) {
    case 0:
        return BENCH_OK;
    case SESSION_UNREAD:
        return BENCH_UNREAD;
    case DTENSOR_EINVAL:
    case DTENSOR_ECONF:
    case DTENSOR_ENODEV:
        return BENCH_USAGE;
    default:
        return BENCH_LOST;
    }
}

/* -------------------------------------------------------------- meshes --- */

/* --mesh 2x2 makes one, --mesh NAME finds one, nothing is all ranks. */
static int session_mesh(struct bench *b, struct dtensor_error *err)
{
    const char *name = b->opt->mesh;
    int64_t shape[DTENSOR_MAX_DIMS];
    int sizes[DTENSOR_MAX_DIMS];
    int ndim;

    snprintf(b->dim, sizeof b->dim, "%s", name ? name : "world");
    if (!name) {
        b->mesh = b->all;
        return 0;
    }
    ndim = read_shape(name, shape);
    if (ndim == 0)
        return dtensor_mesh_find(b->ctx, name, &b->mesh, err);
    for (int d = 0; d < ndim; d++) {
        if (shape[d] > INT32_MAX)
            return session_fail(err, DTENSOR_EINVAL, "--mesh %s: dimension %d "
                                "is too large", name, d);
        sizes[d] = (int)shape[d];
    }
    return dtensor_mesh_create(b->ctx, ndim, sizes, NULL, NULL, &b->mesh, err);
}

static int session_slice(struct bench *b, struct dtensor_error *err)
{
    if (!b->opt->dim)
        return 0;
    snprintf(b->dim, sizeof b->dim, "%s", b->opt->dim);
    return dtensor_mesh_slice(b->mesh, b->opt->dim, &b->mesh, err);
}

static int session_meshes(struct bench *b, struct dtensor_error *err)
{
    int rc = dtensor_mesh_create(b->ctx, 1, &b->nranks, "world", NULL, &b->all,
                                 err);

    if (rc == 0)
        rc = session_mesh(b, err);
    if (rc == 0)
        rc = session_slice(b, err);
    if (rc)
        return rc;
    b->group = dtensor_mesh_size(b->mesh);
    b->position = dtensor_mesh_index(b->mesh, b->rank);
    if (b->opt->root >= b->group)
        return session_fail(err, DTENSOR_EINVAL, "-r %lld: the mesh has "
                            "positions 0 to %d", (long long)b->opt->root,
                            b->group - 1);
    return 0;
}

int session_open(struct bench *b, const struct bench_options *opt,
                 struct dtensor_error *err)
{
    int rc;

    memset(b, 0, sizeof *b);
    b->opt = opt;
    rc = dtensor_init(opt->cluster, &b->ctx, err);
    if (rc)
        return rc;
    b->rank = dtensor_rank(b->ctx);
    b->nranks = dtensor_world_size(b->ctx);
    return session_meshes(b, err);
}

/* NULL: there is none. */
static const char *session_file(const struct bench_options *opt)
{
    const char *path = opt->cluster ? opt->cluster : getenv("DTN_CLUSTER");

    return path && path[0] ? path : NULL;
}

enum bench_exit session_start_code(const struct bench_options *opt, int rc)
{
    const char *path = session_file(opt);

    return rc == DTENSOR_ESYS && path && access(path, R_OK) != 0
           ? BENCH_USAGE : session_exit_code(rc);
}

int session_plan(struct bench *b, const struct bench_options *opt,
                 struct dtensor_error *err)
{
    int rc;

    memset(b, 0, sizeof *b);
    b->opt = opt;
    rc = dtensor_init_offline(session_file(opt),
                              opt->local ? (int)opt->local : 1, 0, &b->ctx,
                              err);
    if (rc)
        return rc;
    b->nranks = dtensor_world_size(b->ctx);
    return session_meshes(b, err);
}

void session_close(struct bench *b)
{
    dtensor_fini(b->ctx);
    b->ctx = NULL;
}

/* ----------------------------------------------------------- agreement --- */

int session_max(struct bench *b, double value[], size_t n,
                struct dtensor_error *err)
{
    return dtensor_allreduce(b->all, value, value, n, DTENSOR_F64,
                             DTENSOR_MAX, err);
}

int session_sum(struct bench *b, int64_t *value, struct dtensor_error *err)
{
    return dtensor_allreduce(b->all, value, value, 1, DTENSOR_I64,
                             DTENSOR_SUM, err);
}

int session_agree(struct bench *b, int rc, struct dtensor_error *err)
{
    struct dtensor_error own = { 0 };
    int32_t worst = -rc;
    int lost = dtensor_allreduce(b->all, &worst, &worst, 1, DTENSOR_I32,
                                 DTENSOR_MAX, rc ? &own : err);

    if (rc || lost)
        return rc ? rc : lost;
    b->told = worst != 0;
    if (worst == -SESSION_UNREAD)
        return session_fail(err, SESSION_UNREAD, "nobody reads the output of "
                            "rank 0");
    if (worst)
        return session_fail(err, -worst, "another rank failed with %s (it "
                            "says why)", dtensor_errname(-worst));
    return 0;
}

/* ------------------------------------------------------------- buffers --- */

int session_alloc(struct bench *b, size_t size, void **memp,
                  struct dtensor_error *err)
{
    size_t padded = (size + 63) & ~(size_t)63;
    void *mem;
    int rc;

    if (b->opt->registered) {
        rc = dtensor_alloc(b->ctx, padded ? padded : 64, &mem, err);
        if (rc)
            return rc;
    } else {
        mem = aligned_alloc(64, padded ? padded : 64);
        if (!mem)
            return session_fail(err, DTENSOR_ENOMEM, "no memory for a buffer "
                                "of %zu bytes (choose a smaller -e)", size);
    }
    memset(mem, 0, padded);
    *memp = mem;
    return 0;
}

void session_free(struct bench *b, void *mem)
{
    if (b->opt->registered)
        dtensor_free(b->ctx, mem);
    else
        free(mem);
}

void session_touch(struct bench *b, const void *mem, size_t size)
{
    const uint64_t *word = mem;
    uint64_t sum = 0;

    for (size_t i = 0; i < size / sizeof *word; i++)
        sum += word[i];
    b->sink = sum;
}

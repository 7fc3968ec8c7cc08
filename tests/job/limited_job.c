/* limited_job.c - the program of resource_limits.sh: a rank of a small job
 *
 *   limited_job [--no-memfd] [--stop] [FILE]    join, reduce, turn a tensor
 *   limited_job --most [FILE]                   a tensor of 3/4 of the memory
 *   limited_job --wrong                         make calls that cannot be right
 *
 * On failure it prints the library's words and exits with the code's number.
 */
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

static struct dtensor_ctx *ctx;
static const struct dtensor_mesh *world;
static struct dtensor_error err;

/* From now on memfd_create() fails with EPERM, as in some containers. */
static void refuse_memfd(void)
{
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = { sizeof code / sizeof *code, code };

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        perror("seccomp");
}

static int turn(void)
{
    const int64_t shape[] = { 300, 200 };
    struct dtensor *rows = NULL, *columns = NULL;
    struct dtensor_spec spec;
    int rc = dtensor_spec_init(&spec, ctx, "world", "S(0)", DTENSOR_F32, 2,
                               shape, &err);

    if (rc == 0)
        rc = dtensor_arange(&spec, &rows, &err);
    if (rc == 0)
        rc = dtensor_redistribute(rows, "S(1)", &columns, &err);
    dtensor_destroy(columns);
    dtensor_destroy(rows);
    return rc;
}

/* The last rank stops for good before the reduction. */
static int work(int stops)
{
    static float in[20000], out[20000];
    int rc = dtensor_barrier(world, &err);

    if (stops && dtensor_rank(ctx) == dtensor_world_size(ctx) - 1)
        raise(SIGSTOP);
    if (rc == 0)
        rc = dtensor_allreduce(world, in, out, 20000, DTENSOR_F32, DTENSOR_SUM,
                               &err);
    return rc == 0 ? turn() : rc;
}

/* Addresses for it, not the memory: nobody writes it. */
static int make_most(void)
{
    struct sysinfo info = { .totalram = 1 };
    struct dtensor *t = NULL;
    struct dtensor_spec made;
    int64_t bytes;
    int rc;

    sysinfo(&info);
    bytes = (int64_t)(info.totalram / 4 * 3 * info.mem_unit);
    rc = dtensor_spec_init(&made, ctx, "world", "R", DTENSOR_U8, 1, &bytes,
                           &err);
    if (rc == 0)
        rc = dtensor_empty(&made, &t, &err);
    dtensor_destroy(t);
    return rc;
}

/* ---------------------------------------------------------- wrong calls --- */

static int spec(const char *mesh, const char *placements, int ndim,
                const int64_t shape[])
{
    struct dtensor_spec made;

    return dtensor_spec_init(&made, ctx, mesh, placements, DTENSOR_F32, ndim,
                             shape, &err);
}

static int grid(int ndim, const int sizes[], const char *names)
{
    const struct dtensor_mesh *mesh;

    return dtensor_mesh_create(ctx, ndim, sizes, names, NULL, &mesh, &err);
}

static int whole(size_t size)
{
    const int64_t shape[] = { 4, 4 };
    struct dtensor_spec made;
    struct dtensor *t = NULL;
    float full[16];
    int rc = dtensor_spec_init(&made, ctx, "world", "R", DTENSOR_F32, 2, shape,
                               &err);

    if (rc == 0)
        rc = dtensor_zeros(&made, &t, &err);
    if (rc == 0)
        rc = dtensor_full_tensor(t, full, size, &err);
    dtensor_destroy(t);
    return rc;
}

static void says(int rc)
{
    if (dtensor_rank(ctx) == 0)
        printf("%s %s\n", dtensor_errname(rc), rc ? err.text : "");
}

static void make_wrong_calls(void)
{
    const int64_t square[] = { 4, 4 }, negative[] = { 4, -1 };
    const int64_t huge[] = { INT64_MAX / 2, 8 };
    const int three[] = { 3, 2 }, none[] = { 0 }, pair[] = { 1, 2 };
    float x[4] = { 0 };

    says(grid(2, three, "dp,tp"));
    says(grid(1, none, "dp"));
    says(grid(2, pair, "dp"));
    says(grid(2, pair, "dp,dp"));
    says(spec("word", "R", 2, square));
    says(spec("world", "S(2)", 2, square));
    says(spec("world", "S(0),R", 2, square));
    says(spec("world", "Q", 2, square));
    says(spec("world", "R", 2, negative));
    says(spec("world", "R", 2, huge));
    says(spec("world", "R", 9, square));
    says(whole(60));
    says(dtensor_allreduce(world, x, x + 1, 3, DTENSOR_F32, DTENSOR_SUM, &err));
    says(dtensor_allreduce(world, x, x, 3, DTENSOR_F32, DTENSOR_BAND, &err));
    says(dtensor_broadcast(world, 7, x, 3, DTENSOR_F32, &err));
    says(dtensor_allreduce(world, NULL, x, 3, DTENSOR_F32, DTENSOR_SUM, &err));
    says(dtensor_barrier(world, &err));
}

int main(int argc, char **argv)
{
    int stops = 0, wrong = 0, most = 0, rc;
    const char *path = NULL;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--no-memfd") == 0)
            refuse_memfd();
        else if (strcmp(argv[i], "--stop") == 0)
            stops = 1;
        else if (strcmp(argv[i], "--wrong") == 0)
            wrong = 1;
        else if (strcmp(argv[i], "--most") == 0)
            most = 1;
        else
            path = argv[i];
    }
    rc = dtensor_init(path, &ctx, &err);
    if (rc == 0)
        rc = dtensor_mesh_find(ctx, "world", &world, &err);
    if (rc == 0 && wrong)
        make_wrong_calls();
    else if (rc == 0 && most)
        rc = make_most();
    else if (rc == 0)
        rc = work(stops);
    if (rc != 0)
        fprintf(stderr, "%s\n", err.text);
    dtensor_fini(ctx);
    return -rc;
}

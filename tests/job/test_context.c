/* test_context.c - what a context says of its job, host and rank
 *
 * A context is started in every way: from a file, from a launcher's variables,
 * alone.
 *
 * Without this test, dtensor_rank(), dtensor_local_rank() and the like could
 * be wrong for one of these ways.
 */
#include "job/ctx.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <string.h>

/* Three ranks of the built-in cluster, as dtensor-run starts them. */
static void local(int rank, int n, void *arg)
{
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err = { 0 };

    (void)arg;
    need(dtensor_init(NULL, &ctx, &err) == 0, "init: %s", err.text);
    need(dtensor_rank(ctx) == rank && dtensor_world_size(ctx) == n,
         "rank %d of %d", dtensor_rank(ctx), dtensor_world_size(ctx));
    need(dtensor_local_rank(ctx) == rank && dtensor_local_size(ctx) == n,
         "local rank %d of %d", dtensor_local_rank(ctx),
         dtensor_local_size(ctx));
    need(strcmp(dtensor_cluster_name(ctx), "local") == 0, "cluster \"%s\"",
         dtensor_cluster_name(ctx));
    need(strcmp(dtensor_launcher(ctx), "dtensor-run") == 0, "launcher \"%s\"",
         dtensor_launcher(ctx));
    need(dtensor_host(ctx)[0] != '\0', "host \"%s\"", dtensor_host(ctx));
    need(strcmp(dtensor_last_plan(ctx), "") == 0, "plan \"%s\"",
         dtensor_last_plan(ctx));
    need(dtensor_copied_bytes(ctx) == 0, "bytes copied before any call");
    dtensor_fini(ctx);
}

/* Two ranks of a cluster file that names the cluster and the host. */
static void named(int rank, int n, void *arg)
{
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err = { 0 };

    need(dtensor_init(arg, &ctx, &err) == 0, "init: %s", err.text);
    need(strcmp(dtensor_cluster_name(ctx), "orchard") == 0, "cluster \"%s\"",
         dtensor_cluster_name(ctx));
    need(strcmp(dtensor_host(ctx), "localhost") == 0, "host \"%s\"",
         dtensor_host(ctx));
    need(dtensor_local_rank(ctx) == rank && dtensor_local_size(ctx) == n,
         "local rank %d of %d", dtensor_local_rank(ctx),
         dtensor_local_size(ctx));
    dtensor_fini(ctx);
}

static void test_draw(int rank, int n, void *arg)
{
    const int64_t shape[] = { 4, 4 };
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_spec spec;
    struct dtensor *t = NULL;
    struct dtensor_error err = { 0 };
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    (void)n, (void)arg;
    need(dtensor_init("", &ctx, &err) == DTENSOR_ESYS && !ctx &&
         strstr(err.text, "\"\": error: cannot open"), "%s", err.text);
    need(dtensor_init(NULL, &ctx, &err) == 0 &&
         dtensor_spec_init(&spec, ctx, "world", "S(0)", DTENSOR_F32, 2, shape,
                           &err) == 0 &&
         dtensor_zeros(&spec, &t, &err) == 0, "%s", err.text);
    dtensor_draw(t, stream);
    fclose(stream);
    need((rank == 0) == (strstr(text, "f32[4,4]") != NULL) &&
         (rank == 0) == (size > 0), "rank %d drew \"%s\"", rank, text);
    free(text);
    dtensor_destroy(t);
    dtensor_fini(ctx);
}

static void test_build(void)
{
    int major, minor, patch;
    char rest;

    ok(sscanf(dtensor_version(), "%d.%d.%d%c", &major, &minor, &patch, &rest)
       == 3, "the version is three numbers: %s", dtensor_version());
    ok(strncmp(dtensor_build(), "verbs ", 6) == 0 &&
       strstr(dtensor_build(), "cuda ") != NULL,
       "the build says what it can do: %s", dtensor_build());
}

/* Devices or none, the table has words and is no error. */
static void test_devices(void)
{
    struct dtensor_error err = { 0 };
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    int rc = dtensor_devices_show(stream, &err);

    fclose(stream);
    ok(rc == 0 && size > 1 && text[size - 1] == '\n',
       "the devices of a machine are shown, or that there are none");
    free(text);
}

int main(void)
{
    char path[] = "context-XXXXXX";
    int fd = mkstemp(path);

    dprintf(fd, "[cluster]\nversion = 1\nname = orchard\n[nodes \"here\"]\n"
            "hosts = localhost\nranks = 2\n");
    close(fd);
    test_build();
    test_devices();
    ok(ranks_run(3, 20, local, NULL, NULL) == 0,
       "built-in cluster: rank, size, host, launcher and name");
    ok(ranks_run(2, 20, named, path, NULL) == 0,
       "cluster file: its name and its host");
    ok(ranks_run(2, 20, test_draw, NULL, NULL) == 0,
       "a tensor is drawn by the mesh's first rank only");
    unlink(path);
    return done();
}

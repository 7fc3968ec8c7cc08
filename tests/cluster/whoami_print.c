/* whoami_print.c - one line: rank, world size, local rank, host, launcher
 *
 * The program that slurm.sh starts; on failure the library's words and exit 2,
 * as any program of a user would.  `whoami_print FILE join` meets all other
 * ranks first, and says after how many seconds it could not.
 */
#include "base/log.h"
#include "base/wait.h"
#include "cluster/cluster.h"
#include "cluster/world.h"
#include "job/ctx.h"
#include "dtensor.h"

#include <errno.h>
#include <string.h>

static void print(const struct dtn_world *world)
{
    printf("%d %d %d %s %s\n", world->rank, world->size, world->local_rank,
           world->host_name, world->launcher);
}

static int failed(const struct dtensor_error *err)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, err->text);
    return 2;
}

static int join(const char *path)
{
    int64_t start = dtn_now_ns();
    struct dtensor_ctx *ctx;
    struct dtensor_error err;

    if (dtn_ctx_join(path, &ctx, &err) != 0) {
        fprintf(stderr, "after %d s: ", (int)((dtn_now_ns() - start) / 1e9));
        return failed(&err);
    }
    print(&ctx->world);
    dtn_ctx_close(ctx);
    return 0;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 && *argv[1] ? argv[1] : NULL;
    struct dtensor_error err;
    struct dtn_world world;
    struct dtn_log log;

    if (argc > 2)
        return join(path);
    dtn_log_init(&log);
    if (dtn_whoami(path, &log, &world, &err) != 0)
        return failed(&err);
    print(&world);
    dtensor_cluster_destroy(world.cluster);
    return 0;
}

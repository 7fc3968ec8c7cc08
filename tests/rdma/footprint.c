/* footprint.c - the queue pairs and the memory of one rank
 *
 *     footprint NAME=FILE:CALL...
 *
 * For each cluster file in turn it opens a context and makes some calls of
 * CALL, which is allreduce or allgather, of 1 KiB.  It asks the kernel for the
 * number of reliable queue pairs of this process and for the bytes that are
 * locked, before the calls and after, and the C library for the used bytes of
 * the heap. It prints one line for each file, such as
 *
 *     NAME ranks=4 rank=0 qps=2 opened=1114112 locked=1654784 heap=151552
 */
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 256, CALLS = 18 };

/* Bytes that devices hold locked of this process. */
static long locked_bytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[200];
    long kib = -1;

    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmPin: %ld kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib * 1024;
}

/* Reliable queue pairs of this process, by rdma(8). */
static int queue_pairs(void)
{
    FILE *pipe = popen("rdma resource show qp", "r");
    char line[400], mine[32];
    int n = 0;

    snprintf(mine, sizeof mine, " pid %ld ", (long)getpid());
    while (pipe && fgets(line, sizeof line, pipe))
        n += strstr(line, " type RC ") && strstr(line, mine);
    return pipe && pclose(pipe) == 0 ? n : -1;
}

static int call(struct dtensor_ctx *ctx, const char *name,
                struct dtensor_error *err)
{
    const struct dtensor_mesh *world;
    static float in[COUNT];
    float *out;
    int rc = dtensor_mesh_find(ctx, "world", &world, err);

    if (rc != 0)
        return rc;
    out = calloc((size_t)dtensor_world_size(ctx), sizeof in);
    if (!out)
        return DTENSOR_ENOMEM;
    for (int i = 0; i < CALLS && rc == 0; i++)
        rc = strcmp(name, "allgather") == 0
           ? dtensor_allgather(world, in, out, COUNT, DTENSOR_F32, err)
           : dtensor_allreduce(world, in, out, COUNT, DTENSOR_F32,
                               DTENSOR_SUM, err);
    free(out);
    return rc;
}

static int measure(char *what, struct dtensor_error *err)
{
    char *file = strchr(what, '='), *name = strrchr(what, ':');
    struct dtensor_ctx *ctx;
    size_t heap;
    long opened;
    int rc;

    if (!file || !name)
        return DTENSOR_EINVAL;
    *file++ = '\0';
    *name++ = '\0';
    rc = dtensor_init(file, &ctx, err);
    if (rc != 0)
        return rc;
    opened = locked_bytes();
    heap = mallinfo2().uordblks;
    rc = call(ctx, name, err);
    printf("%s ranks=%d rank=%d qps=%d opened=%ld locked=%ld heap=%zu\n", what,
           dtensor_world_size(ctx), dtensor_rank(ctx), queue_pairs(), opened,
           locked_bytes(), heap);
    dtensor_fini(ctx);
    return rc;
}

int main(int argc, char **argv)
{
    struct dtensor_error err = { .text = "NAME=FILE:CALL, please" };

    for (int i = 1; i < argc; i++)
        if (measure(argv[i], &err) != 0) {
            fprintf(stderr, "footprint: %s\n", err.text);
            return 1;
        }
    return 0;
}

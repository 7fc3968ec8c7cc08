/* agree.c - a failure of one rank becomes an error on all ranks
 *
 * A disk can be full for one rank of a thousand.  When that rank returns, the
 * others must not continue to the next collective.  So all ranks take the
 * minimum of three numbers: the position of a rank that failed, a hash of what
 * the rank saw in the file, and the complement of that hash.  The minimum of
 * the complement is the complement of the maximum, so differing hashes show.
 * Only if a rank failed, its error is broadcast.
 */
#include "file/agree.h"
#include "base/error.h"
#include "cluster/world.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

int dtn_file_agree(const struct dtensor_mesh *mesh, const char *what, int rc,
                   const struct dtensor_error *why, uint64_t seen,
                   struct dtensor_error *err)
{
    const uint64_t n = (uint64_t)mesh->group.n, me = (uint64_t)mesh->group.me;
    uint64_t least[] = { rc != 0 ? me : n, seen, ~seen };
    struct dtensor_error first = { .code = 0 };
    int all = dtensor_allreduce(mesh, least, least, 3, DTENSOR_U64,
                                DTENSOR_MIN, err);

    if (all != 0)
        return all;
    if (least[0] == n && least[1] == ~least[2])
        return 0;
    if (least[0] == n)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: ranks see different files "
                        "(the path has to be the same on all ranks, on a file "
                        "system that all hosts share, and nobody may write the "
                        "file meanwhile)", what);
    if (least[0] == me)
        first = *why;
    first.rank = dtensor_mesh_rank(mesh, least[0]);
    all = dtensor_broadcast(mesh, (int)least[0], &first, sizeof first,
                            DTENSOR_U8, err);
    if (all != 0)
        return all;
    if (err)
        *err = first;
    return first.code;
}

char *dtn_file_words(const struct dtensor_ctx *ctx, const char *what,
                     const char *path, char *buf, size_t size)
{
    char rank[160];

    if (ctx)
        snprintf(buf, size, "%s: %s: %s", what,
                 dtn_world_rank_name(&ctx->world, ctx->world.rank, rank,
                                     sizeof rank), path);
    else
        snprintf(buf, size, "%s: %s", what, path);
    return buf;
}

int dtn_file_fail_sys(const struct dtensor_ctx *ctx, struct dtensor_error *err,
                      const char *what, const char *path, const char *hint)
{
    const int sys_errno = errno;
    char words[400];

    return dtn_fail_sys(err, sys_errno, "%s: %m%s",
                        dtn_file_words(ctx, what, path, words, sizeof words),
                        hint);
}

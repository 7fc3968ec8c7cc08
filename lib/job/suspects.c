/* suspects.c - the hosts that a failed job blames, as a file for scripts
 *
 * A job script that starts the job again wants to leave out the host that
 * failed, and only that one.  DTN_REPORT names a file.  The first rank that
 * fails creates it; the other ranks find it there and leave it unchanged:
 *
 *     {"schema": 1, "job": "17.0", "error": "EPEER", "reason": "host",
 *      "rank": 2,
 *      "suspects": [{"host": "node3", "ranks": [2, 3]}],
 *      "told_by": 0, "text": "rank 0 on node1: allreduce ..."}
 *
 * All ranks name the same culprit, so it does not matter which one is first.
 * If the program is wrong, for example after mismatched calls, the list of
 * suspects is empty: other hosts would not help.
 */
#include "job/suspects.h"
#include "base/json.h"
#include "boot/boot.h"
#include "cluster/cluster.h"
#include "cluster/world.h"
#include "dtensor.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *suspects_reason(enum dtn_loss loss, int code)
{
    static const char *const reasons[DTN_NLOSSES] = {
        [DTN_LOSS_DIED] = "died", [DTN_LOSS_STOPPED] = "stopped",
        [DTN_LOSS_HOST] = "host", [DTN_LOSS_LINK] = "link",
        [DTN_LOSS_CUT] = "cut off"
    };

    if (reasons[loss])
        return reasons[loss];
    return code == DTENSOR_EPEER ? "died"
         : code == DTENSOR_ETIME ? "late"
         : code == DTENSOR_EMISMATCH ? "mismatch" : "failed";
}

/* May another host make a difference? */
static bool suspects_host(int code)
{
    return code == DTENSOR_EPEER || code == DTENSOR_ETIME
        || code == DTENSOR_ESYS || code == DTENSOR_ENODEV;
}

static bool suspects_rank(const struct dtn_boot *boot, int rank,
                          const struct dtensor_error *failure)
{
    const struct dtn_peer_failure *known = boot
        ? dtn_boot_peer_failure(boot, rank) : NULL;

    if (!suspects_host(failure->code))
        return false;
    return rank == failure->rank
        || (known && known->order > 0 && known->loss != DTN_LOSS_NONE
            && (known->loss != DTN_LOSS_CUT || known->culprit == rank));
}

/* The ranks of this host that are suspect. */
static void suspects_one(FILE *file, const struct dtn_host *host,
                         const struct dtn_boot *boot,
                         const struct dtensor_error *failure, int *nhosts)
{
    int n = 0;

    for (int r = host->first_rank; r < host->first_rank + host->nranks; r++) {
        if (!suspects_rank(boot, r, failure))
            continue;
        if (n == 0) {
            fprintf(file, "%s{\"host\": ", (*nhosts)++ > 0 ? ", " : "");
            dtn_json_string(host->name, file);
        }
        fprintf(file, "%s%d", n++ > 0 ? ", " : ", \"ranks\": [", r);
    }
    if (n > 0)
        fputs("]}", file);
}

static void suspects_print(FILE *file, const struct dtn_world *world,
                           const struct dtn_boot *boot, enum dtn_loss loss,
                           const struct dtensor_error *failure)
{
    int nhosts = 0;

    fputs("{\"schema\": 1, \"job\": ", file);
    dtn_json_string(world->job, file);
    fprintf(file, ", \"error\": \"%s\", \"reason\": \"%s\", \"rank\": %d,\n "
            "\"suspects\": [", dtensor_errname(failure->code),
            suspects_reason(loss, failure->code), failure->rank);
    for (int h = 0; world->cluster && h < world->cluster->nhosts; h++)
        suspects_one(file, &world->cluster->hosts[h], boot, failure, &nhosts);
    fprintf(file, "],\n \"told_by\": %d, \"text\": ", world->rank);
    dtn_json_string(failure->text, file);
    fputs("}\n", file);
}

void dtn_suspects_write(const struct dtn_world *world,
                        const struct dtn_boot *boot, enum dtn_loss loss,
                        const struct dtensor_error *failure)
{
    const char *path = getenv("DTN_REPORT");
    char *text = NULL;
    size_t size = 0;
    FILE *file;
    int fd;

    if (!path || !*path)
        return;
    file = open_memstream(&text, &size);
    if (!file)
        return;
    suspects_print(file, world, boot, loss, failure);
    if (fclose(file) == 0) {
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd >= 0 && write(fd, text, size) != (ssize_t)size)
            unlink(path);
        if (fd >= 0)
            close(fd);
    }
    free(text);
}

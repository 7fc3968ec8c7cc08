/* test_whoami_claim.c - which rank a process would be that is refused
 *
 * A process that cannot join tells the others so, if it knows which rank it
 * would have been and where they are.
 *
 * Without this test, one rank with a wrong file could leave all others waiting
 * for it until connect_timeout.
 */
#include "base/compiler.h"
#include "cluster/cluster.h"
#include "cluster/world.h"
#include "dtensor.h"
#include "tests/cluster/launcher.h"
#include "tests/support/tap.h"

#include <stddef.h>
#include <string.h>

/* Who a refused process would be, for the others to be told. */
static const struct claim_case {
    const char *claim, *environment, *file;
    int rank, world_size;         /* -1: nobody                               */
    const char *host;             /* of that rank                             */
} claims[] = {
    { "a file that is not there: the step says where the others are",
      STEP("3", "4", "1", "n1", "n[0-1]", "2(x2)"), "none.ini", 3, 4, "n1" },
    { "a file that can be read, a rank in the wrong place: the file says",
      STEP("1", "4", "0", "n1", "n[0-1]", "2(x2)") "SLURM_GTIDS=1,3",
      "pair.ini", 1, 4, "n0" },
    { "a step that all ranks refuse needs no telling", STEP("1", "6", "1", "n0",
      "n[0-1]", "3(x2)"), "pair.ini", -1, 0, NULL },
    { "dtensor-run, on the wrong host", RUN("3", "4") "DTN_HOST=n0",
      "pair.ini", 3, 4, "n1" },
    { "dtensor-run without a file that can be read: its launcher tells",
      RUN("3", "4"), "none.ini", -1, 0, NULL },
    { "nobody", "DTN_HOST=n9", "flat.ini", -1, 0, NULL },
};

static void test_claims(void)
{
    for (size_t i = 0; i < DTN_COUNT(claims); i++) {
        const struct claim_case *c = &claims[i];
        struct dtn_world world = { .rank = -1 };
        const char *host = "";
        int rc;

        environment_set(c->environment);
        rc = dtn_whoami_claim(c->file, &world);
        for (int h = 0; rc == 0 && h < world.cluster->nhosts; h++)
            if (world.rank >= world.cluster->hosts[h].first_rank)
                host = world.cluster->hosts[h].name;
        ok(c->rank < 0 ? rc == DTENSOR_ECONF && !world.cluster : rc == 0 &&
           world.rank == c->rank && world.size == c->world_size &&
           strcmp(host, c->host) == 0, "refused: %s", c->claim);
        dtensor_cluster_destroy(world.cluster);
    }
}

int main(void)
{
    if (!files_write())
        return skip_all("no writable /tmp");
    test_claims();
    files_remove();
    return done();
}

/* test_builtin.c - clusters that are made without a file
 *
 * The cluster of a Slurm step means what the shortest file for it means; the
 * cluster of one host has the mesh world.
 *
 * Without this test, a job without a file could get other defaults than a job
 * with one.
 */
#include "base/ranks.h"
#include "cluster/builtin.h"
#include "cluster/canonical.h"
#include "cluster/cluster.h"
#include "dtensor.h"
#include "tests/cluster/launcher.h"
#include "tests/support/tap.h"

#include <stdlib.h>
#include <string.h>

/* The built-in cluster means what the shortest file for it means. */
static void test_same_as_file(void)
{
    struct dtensor_cluster *builtin = NULL, *file = NULL;
    char *a = NULL, *b = NULL, diff[300];

    environment_set("SLURM_STEP_NODELIST=n[0-2] "
                    "SLURM_STEP_TASKS_PER_NODE=3(x2),1");
    ok(dtn_cluster_slurm_step(&builtin, NULL) == 0 &&
       dtensor_cluster_read("step.ini", NULL, NULL, &file, NULL) == 0 &&
       strcpy(builtin->name, "t") && dtn_cluster_canonical(builtin, &a, NULL)
       == 0 &&
       dtn_cluster_canonical(file, &b, NULL) == 0,
       "a step's cluster and the file that says the same are made");
    if (!ok(a && b && strcmp(a, b) == 0, "they mean the same, defaults too"))
        note("%s", dtn_canonical_diff(a, b, diff, sizeof diff));
    free(a);
    free(b);
    dtensor_cluster_destroy(builtin);
    dtensor_cluster_destroy(file);
}

static void test_local(void)
{
    struct dtensor_cluster *c = NULL;
    struct dtensor_error err;

    ok(dtn_cluster_local("h", 1024, &c, NULL) == 0 && c->world_size == 1024 &&
       c->nhosts == 1 && c->hosts[0].nranks == 1024 && c->meshes[0].ndim == 1 &&
       strcmp(c->meshes[0].name, "world") == 0 &&
       strcmp(c->meshes[0].dim_name[0], "world") == 0 &&
       c->meshes[0].size[0] == 1024 && c->meshes[0].ranks.n == 1024
           && dtn_ranks_at(&c->meshes[0].ranks, 1023) == 1023,
       "a local cluster has one host and the mesh world");
    ok(strcmp(c->name, "local") == 0 && strcmp(c->path, "built-in") == 0,
       "it is named local and built-in");
    dtensor_cluster_destroy(c);
    c = NULL;
    ok(dtn_cluster_local("h", 0, &c, &err) == DTENSOR_EINVAL && !c,
       "no ranks: %s", err.text);
    ok(dtn_cluster_local("h", 1025, &c, &err) == DTENSOR_EINVAL && !c,
       "too many: %s", err.text);
}

int main(void)
{
    if (!files_write())
        return skip_all("no writable /tmp");
    test_same_as_file();
    test_local();
    files_remove();
    return done();
}

/* whoami_spread.c - compare the places of all tasks of a step with the cluster
 *
 * Slurm tells every task how many tasks run on each node, and in which order
 * they were distributed.  So each task can compare the whole step with the
 * file.  If the step is wrong, all tasks return the same error at once: with
 * `srun -N2 -n8` and a file of two hosts with two ranks each, no task waits for
 * another.
 *
 * With --distribution=arbitrary, or if the order comes from Slurm's own
 * configuration, a task knows only the ranks of its own node.
 */
#include "base/error.h"
#include "base/units.h"
#include "cluster/cluster.h"
#include "cluster/host.h"
#include "cluster/hostlist.h"
#include "cluster/whoami.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The nodes of the step, in Slurm's order, and the tasks on each. */
struct spread {
    char **names;
    int *counts;
    int n, nnames;
    int tasks;                    /* on all of them                           */
};

static void spread_fini(struct spread *spread)
{
    dtn_hostlist_free(spread->names, spread->nnames);
    free(spread->counts);
}

/* Read the spread from the environment.  False: it is missing or has an unknown
 * form.
 */
static bool spread_read(struct spread *spread)
{
    const char *list = getenv("SLURM_STEP_NODELIST");
    const char *tasks = getenv("SLURM_STEP_TASKS_PER_NODE");
    char why[8];

    *spread = (struct spread){ .names = NULL };
    if (!list || !tasks)
        return false;
    if (dtn_hostlist_expand(list, &spread->names, &spread->nnames, why,
                            sizeof why) == 0 &&
        dtn_counts_expand(tasks, &spread->counts, &spread->n, why,
                          sizeof why) == 0 && spread->n == spread->nnames) {
        for (int i = 0; i < spread->n; i++)
            spread->tasks += spread->counts[i];
        return true;
    }
    spread_fini(spread);
    return false;
}

const struct dtn_host *dtn_slurm_host(const struct dtensor_cluster *c,
                                      const char *name)
{
    if (c->nhosts == 1 && strcmp(c->hosts[0].name, "localhost") == 0)
        return &c->hosts[0];
    for (int i = 0; i < c->nhosts; i++)
        if (dtn_same_host(c->hosts[i].name, name))
            return &c->hosts[i];
    return NULL;
}

/* -------------------------------------------------------------- wording --- */

static bool counts_even(const int counts[], int n)
{
    for (int i = 1; i < n; i++)
        if (counts[i] != counts[0])
            return false;
    return true;
}

/* "4 on each of n[0-1]" or "3 on n0, 1 on n1".  A text that does not fit ends
 * in "...".
 */
static void place_text(char *const names[], const int counts[], int n,
                       char *buf, size_t size)
{
    size_t used = 0;

    if (counts_even(counts, n)) {
        used = (size_t)snprintf(buf, size, n > 1 ? "%d on each of " : "%d on ",
                                counts[0]);
        dtn_hostlist_format(names, n, buf + used, size - used);
        return;
    }
    for (int i = 0; i < n && used < size; i++) {
        if (i == 4 || used + strlen(names[i]) + 20 > size) {
            snprintf(buf + used, size - used, ", ...");
            return;
        }
        used += (size_t)snprintf(buf + used, size - used, "%s%d on %s",
                                 i ? ", " : "", counts[i], names[i]);
    }
}

/* "-m arbitrary -w n0,n0,n0,n1": the options for hosts with different numbers
 * of ranks.
 */
static void options_arbitrary(const struct dtensor_cluster *c, char *buf,
                              size_t size)
{
    size_t used = (size_t)snprintf(buf, size, "srun -n%d --distribution="
                                   "arbitrary -w ", c->world_size);

    for (int r = 0; r < c->world_size; r++) {
        const char *name = dtn_host_of(c, r)->name;

        if (used + strlen(name) + 40 > size) {
            snprintf(buf, size, "srun -n%d --distribution=arbitrary with the "
                     "host of each rank in SLURM_HOSTFILE", c->world_size);
            return;
        }
        used += (size_t)snprintf(buf + used, size - used, "%s%s", r ? "," : "",
                                 name);
    }
}

char *dtn_srun_options(const struct dtensor_cluster *c, bool nodes, char *buf,
                       size_t size)
{
    char **names = calloc((size_t)c->nhosts, sizeof *names), list[160] = "";
    bool even = true;

    for (int i = 0; i < c->nhosts; i++) {
        even = even && c->hosts[i].nranks == c->hosts[0].nranks;
        if (names)
            names[i] = c->hosts[i].name;
    }
    if (nodes && names)
        dtn_hostlist_format(names, c->nhosts, list, sizeof list);
    free(names);
    if (even)
        snprintf(buf, size, "srun %s%s-N%d --ntasks-per-node=%d",
                 *list ? "-w " : "", *list ? strcat(list, " ") : "", c->nhosts,
                 c->hosts[0].nranks);
    else
        options_arbitrary(c, buf, size);
    return buf;
}

/* ------------------------------------------------------------- refusing --- */

/* The tasks or the nodes of the step are not those of the cluster. */
static int fail_counts(const struct spread *spread,
                       const struct dtensor_cluster *c, const char *what,
                       bool nodes, struct dtensor_error *err)
{
    size_t n = (size_t)c->nhosts;
    char **names = calloc(n, sizeof *names);
    int *counts = calloc(n, sizeof *counts);
    char given[120], wanted[120] = "", options[200];

    for (size_t i = 0; names && counts && i < n; i++) {
        names[i] = c->hosts[i].name;
        counts[i] = c->hosts[i].nranks;
    }
    if (names && counts)
        place_text(names, counts, (int)n, wanted, sizeof wanted);
    place_text(spread->names, spread->counts, spread->n, given, sizeof given);
    free(counts);
    free(names);
    return dtn_fail(err, DTENSOR_ECONF, "Slurm started %d task%s, %s, but %s "
                    "describes %d rank%s, %s: use %s%s", spread->tasks,
                    spread->tasks == 1 ? "" : "s", given, what, c->world_size,
                    c->world_size == 1 ? "" : "s", wanted,
                    dtn_srun_options(c, nodes, options, sizeof options),
                    nodes ? ", or write \"hosts = @step\"" : "");
}

/* The nodes are the same, but in another order.  Slurm sorts nodes by name, so
 * the user must change the file; no option of srun helps.
 */
static int fail_order(const struct spread *spread, const char *what,
                      const struct dtensor_cluster *c,
                      struct dtensor_error *err)
{
    int i = 0;

    while (dtn_same_host(c->hosts[i].name, spread->names[i]))
        i++;
    return dtn_fail(err, DTENSOR_ECONF, "Slurm orders nodes by name and starts "
                    "rank %d on %.64s, %s puts it on %.64s: write \"hosts = "
                    "%.100s\"", c->hosts[i].first_rank, spread->names[i], what,
                    c->hosts[i].name, getenv("SLURM_STEP_NODELIST"));
}

static int spread_counts(const struct spread *spread,
                         const struct dtensor_cluster *c, const char *what,
                         struct dtensor_error *err)
{
    bool same = spread->n == c->nhosts && spread->tasks == c->world_size;
    bool ordered = true, known = true;

    for (int i = 0; i < spread->n; i++) {
        const struct dtn_host *host = dtn_slurm_host(c, spread->names[i]);

        known = known && host;
        same = same && host && host->nranks == spread->counts[i];
        ordered = ordered && host == &c->hosts[i];
    }
    if (!same)
        return fail_counts(spread, c, what, !known, err);
    return ordered ? 0 : fail_order(spread, what, c, err);
}

/* ------------------------------------------------------------ the order --- */

/* The number of consecutive tasks on a node: all, one, or a plane's size. */
static int order_plane(const char **namep)
{
    const char *plane = getenv("SLURM_DIST_PLANESIZE");
    const char *name = getenv("SLURM_DISTRIBUTION");
    uint64_t size;

    *namep = name;
    if (name && strncmp(name, "cyclic", 6) == 0)
        return 1;
    if (name && strcmp(name, "plane") == 0 &&
        dtn_parse_u64(plane, false, DTN_MAX_RANKS, &size) && size > 0)
        return (int)size;
    return 0;
}

/* Distribute the ranks as Slurm did, and find the first one that the file has
 * on another host.
 */
static int spread_order(const struct spread *spread,
                        const struct dtensor_cluster *c, const char *what,
                        struct dtensor_error *err)
{
    const char *name;
    int plane = order_plane(&name), rank = 0;
    int *left = plane ? malloc((size_t)spread->n * sizeof *left) : NULL;

    if (!left)
        return 0;
    memcpy(left, spread->counts, (size_t)spread->n * sizeof *left);
    for (int i = 0; rank < c->world_size; i = (i + 1) % spread->n)
        for (int k = 0; k < plane && left[i] > 0; k++, left[i]--, rank++) {
            const char *wanted = dtn_host_of(c, rank)->name;

            if (dtn_slurm_host(c, spread->names[i]) == dtn_host_of(c, rank))
                continue;
            free(left);
            return dtn_fail(err, DTENSOR_ECONF, "Slurm started rank %d on "
                            "%.64s (SLURM_DISTRIBUTION=%.20s), %s puts it on "
                            "%.64s: use srun --distribution=block", rank,
                            spread->names[i], name, what, wanted);
        }
    free(left);
    return 0;
}

int dtn_slurm_step_check(const struct dtensor_cluster *c, const char *what,
                         struct dtensor_error *err)
{
    struct spread spread;
    int rc;

    if (!spread_read(&spread))
        return 0;
    rc = spread_counts(&spread, c, what, err);
    if (rc == 0)
        rc = spread_order(&spread, c, what, err);
    spread_fini(&spread);
    return rc;
}

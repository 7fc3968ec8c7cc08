/* nodes.c - [nodes "N"]: hosts, and the devices and CPUs of their ranks
 *
 * Ranks are numbered in the order of the file: by section, then by the hosts of
 * a section's list, then by local rank.  If the first section has
 * `hosts = n[1-2]` and `ranks = 4`, n1 has ranks 0-3 and n2 has ranks 4-7.
 */
#include "base/array.h"
#include "base/compiler.h"
#include "base/error.h"
#include "cluster/builtin.h"
#include "cluster/check.h"
#include "cluster/cluster.h"
#include "cluster/file.h"
#include "cluster/findings.h"
#include "cluster/hostlist.h"
#include "cluster/list.h"
#include "cluster/pack.h"
#include "cluster/reader.h"
#include "cluster/sections.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What one section lists, before it becomes hosts. */
struct listing {
    char **names;
    char **addresses;              /* NULL: the names                         */
    int *counts;                   /* ranks of each host; NULL: `ranks`       */
    int n;
    bool later;                    /* @step, but this is no Slurm step        */
};

static void listing_fini(struct listing *list)
{
    dtn_hostlist_free(list->names, list->n);
    dtn_hostlist_free(list->addresses, list->n);
    free(list->counts);
}

/* A wrong value is a finding; only ENOMEM is a failure. */
static int nodes_result(struct dtn_file_check *check,
                        const struct dtn_entry *entry, int rc, const char *why)
{
    if (rc == DTENSOR_ENOMEM)
        return dtn_fail_nomem(check->err, entry->key, strlen(entry->value));
    if (rc < 0)
        dtn_finding(check->findings, entry->line, "%s: %s", entry->key, why);
    return 0;
}

/* ---------------------------------------------------------- host names --- */

/* hosts = @step outside a Slurm step is an error for a rank.  But a tool on a
 * login node can check the rest of the file.
 */
static void listing_later(struct dtn_file_check *check,
                          const struct dtn_entry *entry, struct listing *list)
{
    list->later = true;
    if (check->findings->report)
        dtn_finding_warn(check->findings, entry->line, "hosts: @step is known "
                         "under srun only; the hosts, and what depends on how "
                         "many there are, were not checked");
    else
        dtn_finding(check->findings, entry->line, "hosts: @step, but "
                    "SLURM_STEP_NODELIST is not set; expected to run under "
                    "srun");
}

/* hosts = @step: the hosts and their ranks are those of the Slurm step. */
static int listing_step(struct dtn_file_check *check,
                        const struct dtn_entry *entry, struct listing *list)
{
    struct dtensor_cluster *step;
    struct dtensor_error why;
    bool all;
    int rc;

    if (!getenv("SLURM_STEP_NODELIST")) {
        listing_later(check, entry, list);
        return 0;
    }
    rc = dtn_cluster_slurm_step(&step, &why);
    if (rc < 0)
        return nodes_result(check, entry, rc, why.text);
    list->names = calloc((size_t)step->nhosts, sizeof *list->names);
    list->counts = calloc((size_t)step->nhosts, sizeof *list->counts);
    while (list->names && list->counts && list->n < step->nhosts) {
        const struct dtn_host *host = &step->hosts[list->n];

        list->counts[list->n] = host->nranks;
        if (!(list->names[list->n] = strdup(host->name)))
            break;
        list->n++;
    }
    all = list->n == step->nhosts;
    dtensor_cluster_destroy(step);
    return all ? 0 : dtn_fail_nomem(check->err, "hosts", sizeof *list);
}

/* Expand the lists.  Each name has its own block, which the host will own. */
static int listing_expand(struct dtn_file_check *check,
                          const struct dtn_entry *entry, char ***namesp,
                          int *np)
{
    char why[DTN_WHY_SIZE];

    *np = 0;
    return nodes_result(check, entry,
                        dtn_hostlist_expand(entry->value, namesp, np, why,
                                            sizeof why), why);
}

static int listing_addresses(struct dtn_file_check *check,
                             const struct dtn_entry *entry,
                             struct listing *list)
{
    char **addresses = NULL;
    int n, rc = listing_expand(check, entry, &addresses, &n);

    if (rc < 0 || !addresses)
        return rc;
    if (n == list->n) {
        list->addresses = addresses;
        return 0;
    }
    dtn_finding(check->findings, entry->line, "addresses: %d address%s for %d "
                "host%s; expected one address for each host", n,
                n == 1 ? "" : "es", list->n, list->n == 1 ? "" : "s");
    dtn_hostlist_free(addresses, n);
    return 0;
}

/* ------------------------------------------------------------ per rank --- */

static int nodes_hca(struct dtn_file_check *check,
                     const struct dtn_entry *entry, struct dtn_nodes *nodes)
{
    char why[DTN_WHY_SIZE];
    int rc = dtn_hca_parse(entry->value, nodes->nranks, &nodes->hca,
                           &nodes->nrails, why);

    return nodes_result(check, entry, rc, why);
}

/* The lowest CPU of a list "0-3,8" that is at least `least`; -1: none. */
static int cpus_from(const char *list, int least)
{
    int first, last, used;

    for (; sscanf(list, "%d%n", &first, &used) == 1; list += *list == ',') {
        last = first;
        list += used;
        if (*list == '-' && sscanf(list, "-%d%n", &last, &used) == 1)
            list += used;
        if (last >= least)
            return first > least ? first : least;
    }
    return -1;
}

/* A CPU of both lists, -1: none. */
static int cpus_common(const char *a, const char *b)
{
    int x = cpus_from(a, 0), y = cpus_from(b, 0);

    while (x >= 0 && y >= 0 && x != y)
        if (x < y)
            x = cpus_from(a, y);
        else
            y = cpus_from(b, x);
    return x < 0 || y < 0 ? -1 : x;
}

/* Warn of two ranks of a host that share a CPU: they take turns. */
static void nodes_cpus_shared(struct dtn_file_check *check,
                              const struct dtn_entry *entry,
                              const struct dtn_nodes *nodes)
{
    int cpu;

    for (int i = 0; i < nodes->nranks; i++)
        for (int j = 0; j < i; j++) {
            cpu = cpus_common(nodes->cpus[j], nodes->cpus[i]);
            if (cpu < 0)
                continue;
            dtn_finding_warn(check->findings, entry->line, "cpus: local ranks "
                             "%d and %d of each host share CPU %d; expected "
                             "sets without common CPUs", j, i, cpu);
            return;
        }
}

static int nodes_cpus(struct dtn_file_check *check,
                      const struct dtn_entry *entry, struct dtn_nodes *nodes)
{
    char why[DTN_WHY_SIZE];
    int rc;

    nodes->cpus_numa = strcmp(entry->value, "numa") == 0;
    if (nodes->cpus_numa)
        return 0;
    rc = dtn_cpus_parse(entry->value, nodes->nranks, &nodes->cpus, why);
    if (rc == 0)
        nodes_cpus_shared(check, entry, nodes);
    return nodes_result(check, entry, rc, why);
}

/* Devices of the host, which its ranks take in turn; a number may be repeated.
 */
static int nodes_gpus(struct dtn_file_check *check,
                      const struct dtn_entry *entry, struct dtn_nodes *nodes)
{
    char why[DTN_WHY_SIZE];
    int rc;

    if (strcmp(entry->value, "all") == 0)
        return 0;
    if (strcmp(entry->value, "none") == 0) {
        nodes->ngpus = -1;
        return 0;
    }
    rc = dtn_list_numbers(entry->value, "GPU", DTN_MAX_GPUS - 1,
                           &nodes->gpus, &nodes->ngpus, why);
    return nodes_result(check, entry, rc, why);
}

/* Read the keys with a value for each rank.  The default of gpus is "all", that
 * of the others "none".
 */
static int nodes_ranks(struct dtn_file_check *check,
                       const struct dtn_section *section,
                       struct dtn_nodes *nodes)
{
    static const struct {
        const char *key;
        int (*read)(struct dtn_file_check *, const struct dtn_entry *,
                    struct dtn_nodes *);
    } keys[] = {
        { "hca", nodes_hca }, { "cpus", nodes_cpus }, { "gpus", nodes_gpus }
    };
    const struct dtn_entry *entry;
    int rc = 0;

    for (size_t i = 0; i < DTN_COUNT(keys) && rc == 0; i++) {
        entry = dtn_section_get(check->doc, section, keys[i].key);
        if (entry && (strcmp(entry->value, "none") != 0
                      || keys[i].read == nodes_gpus))
            rc = keys[i].read(check, entry, nodes);
    }
    return rc;
}

/* ------------------------------------------------------------- section --- */

/* Ranks per host: `ranks`, or with @step the largest number in the step. */
static bool nodes_count(struct dtn_file_check *check,
                        const struct dtn_section *section,
                        const struct listing *list, struct dtn_nodes *nodes)
{
    const struct dtn_entry *given = dtn_section_get(check->doc, section,
                                                    "ranks");
    char title[DTN_TITLE_SIZE];
    int most = 0;

    if (list->later && !given)
        return false;
    if (!list->counts && !given) {
        dtn_finding(check->findings, section->line, "%s has no \"ranks\"; "
                    "expected ranks = 1 to %d",
                    dtn_section_title(section, title), DTN_MAX_LOCAL);
        return false;
    }
    for (int i = 0; list->counts && i < list->n; i++) {
        if (list->counts[i] > most)
            most = list->counts[i];
        if (!given || list->counts[i] == nodes->nranks)
            continue;
        dtn_finding(check->findings, given->line, "ranks: %d, but the Slurm "
                    "step has %d on %s; expected no \"ranks\", or srun "
                    "--ntasks-per-node=%d", nodes->nranks, list->counts[i],
                    list->names[i], nodes->nranks);
        return false;
    }
    if (list->counts)
        nodes->nranks = most;
    return true;
}

/* Append the hosts of a section to the cluster. */
static int nodes_hosts(struct dtn_file_check *check, struct listing *list,
                       int index)
{
    struct dtensor_cluster *cluster = check->cluster;
    struct dtn_host *host;

    if (!dtn_array_reserve(&cluster->hosts, &check->hosts_capacity,
                           cluster->nhosts + list->n, sizeof *host))
        return dtn_fail_nomem(check->err, "hosts",
                              (size_t)list->n * sizeof *host);
    for (int i = 0; i < list->n; i++) {
        host = &cluster->hosts[cluster->nhosts++];
        *host = (struct dtn_host){
            .nodes = index, .name = list->names[i],
            .nranks = list->counts ? list->counts[i]
                                   : cluster->nodes[index].nranks
        };
        list->names[i] = NULL;
        if (list->addresses) {
            host->address = list->addresses[i];
            list->addresses[i] = NULL;
        } else {
            host->address = host->name;
        }
        if (!host->address)
            return dtn_fail_nomem(check->err, "addresses", DTN_HOST_MAX);
    }
    return 0;
}

static int nodes_list(struct dtn_file_check *check,
                      const struct dtn_section *section, struct listing *list)
{
    const struct dtn_entry *hosts, *addresses;
    int rc;

    hosts = dtn_section_get(check->doc, section, "hosts");
    if (!hosts)
        return 0;
    if (strcmp(hosts->value, "@step") == 0)
        rc = listing_step(check, hosts, list);
    else
        rc = listing_expand(check, hosts, &list->names, &list->n);
    addresses = dtn_section_get(check->doc, section, "addresses");
    if (rc == 0 && addresses && list->n > 0)
        rc = listing_addresses(check, addresses, list);
    return rc;
}

static int nodes_section(struct dtn_file_check *check,
                         const struct dtn_section *section,
                         struct listing *list)
{
    struct dtensor_cluster *cluster = check->cluster;
    struct dtn_nodes *nodes;
    bool good;
    int rc;

    if (!dtn_array_reserve(&cluster->nodes, &check->nodes_capacity,
                           cluster->nnodes + 1, sizeof *nodes))
        return dtn_fail_nomem(check->err, "nodes", sizeof *nodes);
    nodes = &cluster->nodes[cluster->nnodes++];
    *nodes = (struct dtn_nodes){ .gid_index = -1, .nrails = 1 };
    strcpy(nodes->name, section->name);
    good = dtn_file_check_scalars(check, section, nodes);
    rc = nodes_list(check, section, list);
    if (rc == 0 && good && nodes_count(check, section, list, nodes)) {
        rc = nodes_ranks(check, section, nodes);
        if (rc == 0 && list->n > 0)
            return nodes_hosts(check, list, cluster->nnodes - 1);
    }
    check->world_known = false;
    return rc;
}

/* ------------------------------------------------------------- the sum --- */

static int host_by_name(const void *a, const void *b)
{
    const struct dtn_host *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);

    return order ? order : (*x > *y) - (*x < *y);
}

static const struct dtn_entry *
nodes_entry(struct dtn_file_check *check, int index, const char *key)
{
    const struct dtn_section *section = NULL;

    for (int i = 0; i <= index; i++)
        section = dtn_section_next(check->doc, DTN_KIND_NODES, section);
    return dtn_section_get(check->doc, section, key);
}

/* Find hosts that are in two sections.  A single list has no repeats. */
static int nodes_repeats(struct dtn_file_check *check)
{
    const struct dtensor_cluster *cluster = check->cluster;
    size_t n = (size_t)cluster->nhosts;
    struct dtn_host **order = calloc(n, sizeof *order);
    int reported = -1;

    if (!order)
        return dtn_fail_nomem(check->err, "hosts", n * sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = &cluster->hosts[i];
    qsort(order, n, sizeof *order, host_by_name);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(order[i - 1]->name, order[i]->name) != 0 ||
            order[i]->nodes == reported)
            continue;
        reported = order[i]->nodes;
        dtn_finding(check->findings,
                    nodes_entry(check, reported, "hosts")->line, "hosts: "
                    "\"%s\" is also in [nodes \"%s\"]; expected each host once",
                    order[i]->name, cluster->nodes[order[i - 1]->nodes].name);
    }
    free(order);
    return 0;
}

/* "localhost" is allowed only in a cluster of one host. */
static void nodes_localhost(struct dtn_file_check *check)
{
    const struct dtensor_cluster *cluster = check->cluster;

    for (int i = 0; i < cluster->nhosts && cluster->nhosts > 1; i++)
        if (strcmp(cluster->hosts[i].name, "localhost") == 0)
            dtn_finding(check->findings,
                        nodes_entry(check, cluster->hosts[i].nodes,
                                    "hosts")->line, "hosts: \"localhost\" "
                        "stands for one machine, this one; expected it as the "
                        "only host");
}

/* All ranks need the same number of rails: rail k talks to rail k of others. */
static void nodes_rails(struct dtn_file_check *check)
{
    const struct dtn_nodes *nodes = check->cluster->nodes;
    const struct dtn_entry *hca;

    for (int i = 1; i < check->cluster->nnodes; i++) {
        if (nodes[i].nrails == nodes[0].nrails)
            continue;
        hca = nodes_entry(check, nodes[i].hca ? i : 0, "hca");
        dtn_finding(check->findings, hca->line, "hca: %d rail%s for each rank "
                    "of [nodes \"%s\"], %d of [nodes \"%s\"]; expected as many "
                    "for every rank", nodes[i].nrails,
                    nodes[i].nrails == 1 ? "" : "s", nodes[i].name,
                    nodes[0].nrails, nodes[0].name);
    }
}

/* Number the ranks. */
static int nodes_sum(struct dtn_file_check *check)
{
    struct dtensor_cluster *cluster = check->cluster;
    int64_t sum = 0;

    for (int i = 0; i < cluster->nhosts; i++) {
        cluster->hosts[i].first_rank = (int)sum;
        sum += cluster->hosts[i].nranks;
    }
    if (sum > DTN_MAX_WORLD || cluster->nhosts > DTN_MAX_HOSTS) {
        dtn_finding(check->findings, 0, "%lld ranks on %d hosts; expected at "
                    "most %d ranks on %d hosts", (long long)sum,
                    cluster->nhosts, DTN_MAX_WORLD, DTN_MAX_HOSTS);
        check->world_known = false;
        return 0;
    }
    cluster->world_size = (int)sum;
    if (!dtn_cluster_pack(cluster))
        return dtn_fail_nomem(check->err, "hosts", DTN_HOST_MAX);
    nodes_localhost(check);
    nodes_rails(check);
    return nodes_repeats(check);
}

int dtn_file_check_nodes(struct dtn_file_check *check)
{
    const struct dtn_section *section = NULL;
    struct listing list;
    int rc = 0;

    check->world_known = dtn_section_next(check->doc, DTN_KIND_NODES, NULL);
    while (rc == 0 && (section = dtn_section_next(check->doc, DTN_KIND_NODES,
                                                  section)) != NULL) {
        list = (struct listing){ .names = NULL };
        rc = nodes_section(check, section, &list);
        listing_fini(&list);
    }
    return rc == 0 && check->world_known ? nodes_sum(check) : rc;
}

/* file.c - a cluster file, read and checked
 *
 * dtensor_cluster_read() has two phases.  Reading (reader.c) makes a document
 * of sections and keys.  Checking makes the cluster: it goes through the kinds
 * of section in the order of their dependences, from hosts to ranks, meshes and
 * seeds.  After errors of reading only single values are checked: the unknown
 * key `dmis = ...` and `port = 80` are found together, eight ranks with
 * `dims = dp=2, tp=2` only in a file without them.
 */
#include "cluster/file.h"
#include "base/compiler.h"
#include "base/error.h"
#include "cluster/check.h"
#include "cluster/cluster.h"
#include "cluster/defaults.h"
#include "cluster/findings.h"
#include "cluster/plan.h"
#include "cluster/reader.h"
#include "cluster/sections.h"
#include "cluster/value.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------- sections of scalars only --- */

static const struct dtn_entry *transport_entry(
    const struct dtn_file_check *check, const char *key)
{
    const struct dtn_section *section = dtn_section_next(
        check->doc, DTN_KIND_TRANSPORT, NULL);

    return section ? dtn_section_get(check->doc, section, key) : NULL;
}

/* The two sections that every file must have. */
static int check_required(struct dtn_file_check *check)
{
    if (!dtn_section_next(check->doc, DTN_KIND_CLUSTER, NULL))
        dtn_finding(check->findings, 0, "no [cluster] section; expected "
                    "[cluster] with \"version = 1\"");
    if (!dtn_section_next(check->doc, DTN_KIND_NODES, NULL))
        dtn_finding(check->findings, 0, "no [nodes \"name\"] section; expected "
                    "at least one");
    return 0;
}

static int check_cluster(struct dtn_file_check *check)
{
    struct dtn_cluster_section scalars = { .version = 1, .name = "cluster" };
    struct dtensor_cluster *cluster = check->cluster;
    const struct dtn_section *section;
    const struct dtn_entry *entry;

    section = dtn_section_next(check->doc, DTN_KIND_CLUSTER, NULL);
    if (!section)
        return 0;
    dtn_file_check_scalars(check, section, &scalars);
    strcpy(cluster->name, scalars.name);
    cluster->auth = (enum dtn_auth)scalars.auth;
    cluster->repro = scalars.repro != 0;
    entry = dtn_section_get(check->doc, section, "version");
    if (entry && scalars.version != 1)
        dtn_finding(check->findings, entry->line, "version: this is format %d; "
                    "expected 1, the only one this release reads",
                    scalars.version);
    entry = dtn_section_get(check->doc, section, "world_size");
    if (entry && check->world_known && scalars.world_size > 0 &&
        scalars.world_size != cluster->world_size)
        dtn_finding(check->findings, entry->line, "world_size: %d, but the "
                    "[nodes] sections add up to %d ranks", scalars.world_size,
                    cluster->world_size);
    return 0;
}

/* dead_after must be at least two heartbeats: one may be late. */
static void transport_heartbeat(struct dtn_file_check *check,
                                const struct dtn_section *section)
{
    const struct dtn_transport_conf *conf = &check->cluster->transport;
    const struct dtn_entry *entry;
    char beat[32], dead[32], least[32];

    if (conf->dead_after_ns / 2 >= conf->heartbeat_ns)
        return;
    entry = transport_entry(check, "dead_after");
    if (!entry)
        entry = transport_entry(check, "heartbeat");
    dtn_finding(check->findings, entry ? entry->line : section->line,
                "dead_after: %s with a heartbeat of %s; expected %s or more",
                dtn_exact_time(conf->dead_after_ns, dead, sizeof dead),
                dtn_exact_time(conf->heartbeat_ns, beat, sizeof beat),
                dtn_exact_time(2 * conf->heartbeat_ns, least, sizeof least));
}

/* A stall is reported before its deadline, or never. */
static void transport_stall(struct dtn_file_check *check)
{
    const struct dtn_transport_conf *conf = &check->cluster->transport;
    const struct dtn_entry *entry = transport_entry(check, "stall_after");
    char stall[32], op[32];

    if (entry && conf->stall_after_ns >= conf->op_timeout_ns)
        dtn_finding(check->findings, entry->line, "stall_after: %s acts on "
                    "nothing with an op_timeout of %s; expected less",
                    dtn_exact_time(conf->stall_after_ns, stall, sizeof stall),
                    dtn_exact_time(conf->op_timeout_ns, op, sizeof op));
}

/* Warn of retry_count 7: soft-RoCE then never reports that a peer is gone. */
static void transport_retry(struct dtn_file_check *check)
{
    const struct dtn_entry *entry = transport_entry(check, "retry_count");

    if (entry && check->cluster->transport.retry_count == 7)
        dtn_finding_warn(check->findings, entry->line, "retry_count: 7 is for "
                         "ever on soft-RoCE; expected at most 6");
}

static int check_transport(struct dtn_file_check *check)
{
    struct dtn_transport_conf *conf = &check->cluster->transport;
    const struct dtn_section *section;

    section = dtn_section_next(check->doc, DTN_KIND_TRANSPORT, NULL);
    if (section && dtn_file_check_scalars(check, section, conf)) {
        transport_heartbeat(check, section);
        transport_stall(check);
        transport_retry(check);
    }
    return 0;
}

static int check_redistribute(struct dtn_file_check *check)
{
    struct dtn_redistribute_conf *conf = &check->cluster->redistribute;
    const struct dtn_section *section;

    section = dtn_section_next(check->doc, DTN_KIND_REDISTRIBUTE, NULL);
    if (section)
        dtn_file_check_scalars(check, section, conf);
    return 0;
}

/* The key of [transport] that makes ranks talk over tcp, which reaches host
 * memory only; NULL: there is none.
 */
static const char *check_tcp(const struct dtensor_cluster *cluster)
{
    bool inside = false;

    for (int h = 0; h < cluster->nhosts; h++)
        inside |= cluster->hosts[h].nranks > 1;
    if (cluster->nhosts > 1 && cluster->transport.inter_node == DTN_WIRE_TCP)
        return "inter_node";
    return inside && cluster->transport.intra_node == DTN_WIRE_TCP
         ? "intra_node" : NULL;
}

static int check_device(struct dtn_file_check *check)
{
    struct dtensor_cluster *cluster = check->cluster;
    const struct dtn_section *section;
    const struct dtn_entry *entry;
    const char *tcp;

    section = dtn_section_next(check->doc, DTN_KIND_DEVICE, NULL);
    if (!section)
        return 0;
    dtn_file_check_scalars(check, section, &cluster->device);
    entry = dtn_section_get(check->doc, section, "direct");
    tcp = check_tcp(cluster);
    if (entry && tcp && cluster->device.direct == DTN_DIRECT_REQUIRED)
        dtn_finding(check->findings, entry->line, "direct: required, but "
                    "[transport] %s = tcp stages memory of GPUs; expected auto,"
                    " or %s = rc", tcp, tcp);
    return 0;
}

/* ---------------------------------------------------------- the phases --- */

/* Nodes come first, because the other checks need their ranks. */
static int (*const checks[])(struct dtn_file_check *) = {
    check_required, dtn_file_check_nodes, check_cluster, check_transport,
    dtn_file_check_meshes, dtn_file_check_seed, dtn_file_check_tuning,
    check_redistribute, check_device, dtn_file_check_plans
};

static int file_check(const struct dtn_document *doc,
                      struct dtn_findings *findings,
                      struct dtensor_cluster *cluster,
                      struct dtensor_error *err)
{
    struct dtn_file_check check = {
        .doc = doc, .findings = findings, .err = err, .cluster = cluster
    };
    int rc = 0;

    for (size_t i = 0; i < DTN_COUNT(checks) && rc == 0; i++)
        rc = checks[i](&check);
    return rc < 0 ? rc : dtn_findings_flush(findings, err);
}

static int file_read(struct dtn_document *doc, struct dtn_findings *findings,
                     struct dtensor_cluster *cluster, struct dtensor_error *err)
{
    int rc = dtn_document_read(doc, findings, err);

    if (rc < 0)
        return rc;
    if (findings->nerrors == 0)
        return file_check(doc, findings, cluster, err);
    dtn_file_check_values(doc, findings);
    return dtn_findings_flush(findings, err);
}

int dtensor_cluster_read(const char *path, dtensor_report_f *report, void *arg,
                         struct dtensor_cluster **clusterp,
                         struct dtensor_error *err)
{
    struct dtn_findings findings = { .path = path, .report = report,
                                     .arg = arg };
    struct dtn_document doc = { .nsections = 0 };
    struct dtensor_cluster *cluster;
    int rc;

    cluster = calloc(1, sizeof *cluster);
    if (!cluster)
        return dtn_fail_nomem(err, path, sizeof *cluster);
    dtn_cluster_defaults(cluster);
    cluster->path = strdup(path);
    rc = cluster->path ? file_read(&doc, &findings, cluster, err)
                       : dtn_fail_nomem(err, path, strlen(path));
    dtn_document_fini(&doc);
    if (rc < 0) {
        dtensor_cluster_destroy(cluster);
        return rc;
    }
    *clusterp = cluster;
    return 0;
}

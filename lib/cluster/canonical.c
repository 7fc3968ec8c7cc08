/* canonical.c - the meaning of a cluster file, as text that can be compared
 *
 * Comments, blanks, the order of keys and the form of a list do not matter:
 * `pipeline = 512K` and `pipeline=524288` both give the line `[redistribute]
 * pipeline = 512K`, and n[1-2] gives the two lines `[hosts] 0 = n1` and
 * `[hosts] 1 = n2`.  So two files mean the same if and only if their canonical
 * texts are equal.  Ranks compare a hash of 64 bits.  If it differs, the error
 * shows the first line that differs.
 */
#include "cluster/canonical.h"
#include "base/error.h"
#include "cluster/cluster.h"
#include "cluster/list.h"
#include "cluster/plan.h"
#include "cluster/sections.h"
#include "cluster/value.h"
#include "dtensor.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* The scalars of a section: its table says how. */
static void canonical_scalars(FILE *out, enum dtn_section_kind_id kind,
                              const char *title, const void *base)
{
    for (const struct dtn_key *key = dtn_section_kinds[kind].keys; key->name;
         key++) {
        if (key->type == DTN_VALUE_OTHER)
            continue;
        fprintf(out, "[%s] %s = ", title, key->name);
        dtn_value_print(key, base, out);
        fputc('\n', out);
    }
}

static void canonical_strings(FILE *out, const char *host, const char *key,
                              char *const strings[], int n,
                              const char *separator)
{
    fprintf(out, "[host %s] %s = ", host, key);
    for (int i = 0; strings && i < n; i++)
        fprintf(out, "%s%s", i ? separator : "", strings[i]);
    fprintf(out, "%s\n", strings ? "" : "none");
}

/* Print by host, not by [nodes] section: the grouping of hosts does not matter.
 */
static void canonical_host(FILE *out, const struct dtensor_cluster *cluster,
                           const struct dtn_host *host)
{
    const struct dtn_nodes *nodes = &cluster->nodes[host->nodes];
    const char *name = host->name;

    fprintf(out, "[host %s] address = %s\n", name, host->address);
    fprintf(out, "[host %s] ranks = %d-%d\n", name, host->first_rank,
            host->first_rank + host->nranks - 1);
    canonical_strings(out, name, "hca", nodes->hca, host->nranks, ",");
    fprintf(out, "[host %s] gid_index = ", name);
    if (nodes->gid_index >= 0)
        fprintf(out, "%d\n", nodes->gid_index);
    else
        fputs("default\n", out);
    fprintf(out, "[host %s] gpus = ", name);
    if (nodes->ngpus > 0)
        dtn_list_print(&(struct dtn_ranks){ .n = nodes->ngpus,
                                            .list = nodes->gpus }, out);
    else
        fputs(nodes->ngpus < 0 ? "none" : "all", out);
    fputc('\n', out);
    if (nodes->cpus_numa)
        fprintf(out, "[host %s] cpus = numa\n", name);
    else
        canonical_strings(out, name, "cpus", nodes->cpus, host->nranks, "|");
}

static int mesh_by_name(const void *a, const void *b)
{
    const struct dtn_mesh_def *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static void canonical_mesh(FILE *out, const struct dtn_mesh_def *mesh)
{
    fprintf(out, "[mesh \"%s\"] dims = ", mesh->name);
    for (int d = 0; d < mesh->ndim; d++)
        fprintf(out, "%s%s=%d", d ? "," : "", mesh->dim_name[d],
                mesh->size[d]);
    fprintf(out, "\n[mesh \"%s\"] ranks = ", mesh->name);
    dtn_list_print(&mesh->ranks, out);
    fprintf(out, "\n[mesh \"%s\"] memory = %s\n", mesh->name,
            dtn_memory_name((enum dtensor_memory)mesh->memory));
}

static void canonical_seed(FILE *out, const struct dtensor_cluster *cluster)
{
    const struct dtn_seed_conf *seed = &cluster->seed;

    if (!seed->given)
        return;
    canonical_scalars(out, DTN_KIND_SEED, "seed", seed);
    fprintf(out, "[seed] mesh = %s\n[seed] distinct = ",
            seed->mesh < 0 ? "none" : cluster->meshes[seed->mesh].name);
    for (int i = 0; i < seed->ndistinct; i++)
        fprintf(out, "%s%s", i ? "," : "",
                cluster->meshes[seed->mesh].dim_name[seed->distinct[i]]);
    fprintf(out, "%s\n", seed->ndistinct ? "" : "none");
}

static void canonical_tuning(FILE *out, const struct dtensor_cluster *cluster)
{
    const struct dtn_tuning *tuning = cluster->tuning;
    const struct dtn_key *keys = dtn_section_kinds[DTN_KIND_TUNING].keys;
    char from[32], to[32];

    for (int i = 0; i < DTN_NTUNED; i++) {
        fprintf(out, "[tuning] %s = %s", keys[i].name,
                tuning[i].n ? "" : "default");
        for (int k = 0; k < tuning[i].n; k++) {
            strcpy(to, "inf");
            if (k + 1 < tuning[i].n)
                dtn_exact_size(tuning[i].entry[k + 1].from_bytes, to,
                               sizeof to);
            fprintf(out, "%s%s-%s:%s", k ? "," : "",
                    dtn_exact_size(tuning[i].entry[k].from_bytes, from,
                                   sizeof from), to,
                    dtn_word_text(dtn_algorithm_words,
                                  (int)tuning[i].entry[k].algorithm));
        }
        fputc('\n', out);
    }
    canonical_scalars(out, DTN_KIND_TUNING, "tuning", &cluster->costs);
}

static void canonical_cluster(FILE *out, const struct dtensor_cluster *cluster)
{
    struct dtn_cluster_section scalars = {
        1, "", cluster->world_size, (int)cluster->auth, cluster->repro
    };

    strcpy(scalars.name, cluster->name);
    canonical_scalars(out, DTN_KIND_CLUSTER, "cluster", &scalars);
    for (int i = 0; i < cluster->nhosts; i++)
        fprintf(out, "[hosts] %d = %s\n", i, cluster->hosts[i].name);
    for (int i = 0; i < cluster->nhosts; i++)
        canonical_host(out, cluster, &cluster->hosts[i]);
    canonical_scalars(out, DTN_KIND_TRANSPORT, "transport",
                      &cluster->transport);
}

/* Print the meshes in the order of their names, not in that of the file. */
static bool canonical_sorted(FILE *out, const struct dtensor_cluster *cluster)
{
    size_t nmeshes = (size_t)cluster->nmeshes;
    const struct dtn_mesh_def **mesh = calloc(nmeshes + 1, sizeof *mesh);

    for (size_t i = 0; i < nmeshes && mesh; i++)
        mesh[i] = &cluster->meshes[i];
    if (mesh) {
        qsort(mesh, nmeshes, sizeof *mesh, mesh_by_name);
        for (size_t i = 0; i < nmeshes; i++)
            canonical_mesh(out, mesh[i]);
        canonical_seed(out, cluster);
        canonical_tuning(out, cluster);
        canonical_scalars(out, DTN_KIND_REDISTRIBUTE, "redistribute",
                          &cluster->redistribute);
        canonical_scalars(out, DTN_KIND_DEVICE, "device", &cluster->device);
        dtn_plan_canonical(cluster, out);
    }
    free(mesh);
    return mesh != NULL;
}

int dtn_cluster_canonical(const struct dtensor_cluster *cluster, char **textp,
                          struct dtensor_error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bool good;

    if (!out)
        return dtn_fail_nomem(err, "cluster", 1);
    canonical_cluster(out, cluster);
    good = canonical_sorted(out, cluster) && !ferror(out);
    if (fclose(out) != 0 || !good) {
        free(text);
        return dtn_fail_nomem(err, "cluster", size);
    }
    *textp = text;
    return 0;
}

uint64_t dtn_digest(const char *text)
{
    return XXH64(text, strlen(text), 0);
}

/* ---------------------------------------------------------- differences --- */

/* The length of "[section] key" in the line at `text`.  *length: of the line.
 */
static size_t line_key(const char *text, size_t *length)
{
    const char *equals;

    *length = strcspn(text, "\n");
    equals = memmem(text, *length, " = ", 3);
    return equals ? (size_t)(equals - text) : *length;
}

/* Has `text` a line that begins with these bytes? */
static bool text_has_key(const char *text, const char *key, size_t n)
{
    for (const char *p = text; *p; p++) {
        if (strncmp(p, key, n) == 0 && strncmp(p + n, " = ", 3) == 0)
            return true;
        p += strcspn(p, "\n");
        if (!*p)
            break;
    }
    return false;
}

/* A value for a message: at most a third of `size`, with "..." if cut. */
struct shown {
    int n;
    const char *text, *dots;
};

static struct shown line_value(const char *line, size_t nkey, size_t nline,
                               size_t size)
{
    struct shown shown = { 0, "", "" };
    size_t most = size / 3;

    if (nline < nkey + 3)
        return shown;
    shown.text = line + nkey + 3;
    shown.n = (int)(nline - nkey - 3);
    if (nline - nkey - 3 > most) {
        shown.n = (int)most;
        shown.dots = "...";
    }
    return shown;
}

char *dtn_canonical_diff(const char *mine, const char *other, char *buf,
                         size_t size)
{
    size_t nmine, nother, kmine, kother, at = 0;
    struct shown here, there;

    while (mine[at] && mine[at] == other[at])
        at++;
    if (mine[at] == other[at]) {
        snprintf(buf, size, "nothing differs");
        return buf;
    }
    while (at > 0 && mine[at - 1] != '\n')
        at--;
    mine += at;
    other += at;
    kmine = line_key(mine, &nmine);
    kother = line_key(other, &nother);
    here = line_value(mine, kmine, nmine, size);
    there = line_value(other, kother, nother, size);
    if (kmine == kother && strncmp(mine, other, kmine) == 0)
        snprintf(buf, size, "%.*s is %.*s%s there, %.*s%s here", (int)kmine,
                 mine, there.n, there.text, there.dots, here.n, here.text,
                 here.dots);
    else if (nmine > 0 && nother > 0 && text_has_key(other, mine, kmine) &&
             text_has_key(mine, other, kother))
        snprintf(buf, size, "%.*s stands before %.*s there, after it here",
                 (int)kother, other, (int)kmine, mine);
    else if (nmine == 0 || text_has_key(other, mine, kmine))
        snprintf(buf, size, "%.*s is %.*s%s there, not given here",
                 (int)kother, other, there.n, there.text, there.dots);
    else
        snprintf(buf, size, "%.*s is not given there, %.*s%s here", (int)kmine,
                 mine, here.n, here.text, here.dots);
    return buf;
}

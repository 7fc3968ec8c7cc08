/* mesh_names.c - the names of meshes and of their dims, where others use them
 *
 * [seed] mesh = world, distinct = pp and [mesh "m"] parent = world refer to
 * names that stand above them in the file.  An unknown name is an error with a
 * suggestion: for the mesh "word", "did you mean world?".  For a mesh that is
 * defined below, the error names its line.
 */
#include "cluster/check.h"
#include "cluster/cluster.h"
#include "cluster/file.h"
#include "cluster/findings.h"
#include "cluster/reader.h"
#include "cluster/sections.h"
#include "dtensor.h"

#include <string.h>

/* Index of the mesh of that name, or -1. */
static int mesh_lookup(const struct dtensor_cluster *cluster, const char *name)
{
    for (int i = 0; i < cluster->nmeshes; i++)
        if (strcmp(cluster->meshes[i].name, name) == 0)
            return i;
    return -1;
}

int dtn_mesh_dim(const struct dtn_mesh_def *mesh, const char *name)
{
    for (int d = 0; d < mesh->ndim; d++)
        if (strcmp(mesh->dim_name[d], name) == 0)
            return d;
    return -1;
}

/* ---------------------------------------------------------- references --- */

int dtn_file_check_mesh_name(struct dtn_file_check *check,
                             const struct dtn_entry *entry)
{
    const struct dtensor_cluster *cluster = check->cluster;
    const char *known[DTN_MAX_MESHES + 1] = { NULL };
    const struct dtn_section *below = dtn_section_find(
        check->doc, DTN_KIND_MESH, entry->value);
    char advice[DTN_WHY_SIZE / 2];
    int mesh = mesh_lookup(cluster, entry->value);

    if (mesh >= 0)
        return mesh;
    if (below) {
        dtn_finding(check->findings, entry->line, "%s: mesh \"%s\" is defined "
                    "below, on line %d; expected it above", entry->key,
                    entry->value, below->line);
        return -1;
    }
    for (int i = 0; i < cluster->nmeshes && i < DTN_MAX_MESHES; i++)
        known[i] = cluster->meshes[i].name;
    dtn_finding(check->findings, entry->line, "%s: no mesh \"%s\"; %s",
                entry->key, entry->value,
                dtensor_advise(entry->value, known, "the name of a mesh, such "
                               "as world", advice, sizeof advice));
    return -1;
}

int dtn_file_check_dim_name(struct dtn_file_check *check,
                            const struct dtn_entry *entry,
                            const struct dtn_mesh_def *mesh, const char *name)
{
    const char *known[DTENSOR_MAX_DIMS + 1] = { NULL };
    char list[DTENSOR_MAX_DIMS * (DTENSOR_NAME_MAX + 2) + 16] = "one of ";
    char advice[DTN_WHY_SIZE / 2];
    int dim = dtn_mesh_dim(mesh, name);

    if (dim >= 0 || mesh->ndim == 0)       /* a mesh that is itself wrong     */
        return dim;
    for (int d = 0; d < mesh->ndim; d++) {
        known[d] = mesh->dim_name[d];
        strcat(strcat(list, d ? ", " : ""), known[d]);
    }
    dtn_finding(check->findings, entry->line, "%s: mesh \"%s\" has no dim "
                "\"%s\"; %s", entry->key, mesh->name, name,
                dtensor_advise(name, known, mesh->ndim > 1 ? list : known[0],
                               advice, sizeof advice));
    return -1;
}

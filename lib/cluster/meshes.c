/* meshes.c - [mesh "M"]: ranks on a grid
 *
 * A mesh is a grid `dims` over a list of ranks; the rightmost dim changes
 * fastest.  With dims = dp=2, tp=4 over ranks 0-7, rank 6 is at dp=1, tp=2.  A
 * mesh may also be a part of another one: submesh.c.  If the file has no
 * [mesh "world"], it is added: one dim named "world" over all ranks.
 */
#include "base/array.h"
#include "base/error.h"
#include "base/ranks.h"
#include "base/units.h"
#include "cluster/check.h"
#include "cluster/cluster.h"
#include "cluster/file.h"
#include "cluster/findings.h"
#include "cluster/list.h"
#include "cluster/reader.h"
#include "cluster/sections.h"
#include "dtensor.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- dims --- */

/* Add the dim "tp=4"; false after a finding. */
static bool dims_add(struct dtn_file_check *check,
                     const struct dtn_entry *entry, const char *text,
                     struct dtn_mesh_def *mesh)
{
    struct dtn_findings *findings = check->findings;
    char item[DTN_ITEM_SIZE], *value = NULL;
    uint64_t size = 0;

    strcpy(item, text);
    if (!dtn_list_assignment(item, &value) ||
        !dtn_parse_u64(value, false, UINT64_MAX, &size))
        dtn_finding(findings, entry->line, "dims: bad entry \"%s\"; expected "
                    "name=number, such as dp=2, tp=4", text);
    else if (dtn_mesh_dim(mesh, item) >= 0)
        dtn_finding(findings, entry->line, "dims: dim \"%s\" is listed twice",
                    item);
    else if (size == 0)
        dtn_finding(findings, entry->line, "dims: dim \"%s\" has size 0; "
                    "expected 1 or more", item);
    else if (size > DTN_MAX_WORLD)
        dtn_finding(findings, entry->line, "dims: dim \"%s\" has size "
                    "%" PRIu64 "; expected at most %d", item, size,
                    DTN_MAX_WORLD);
    else if (mesh->ndim == DTENSOR_MAX_DIMS)
        dtn_finding(findings, entry->line, "dims: dim \"%s\" is one too many; "
                    "expected at most %d", item, DTENSOR_MAX_DIMS);
    else {
        strcpy(mesh->dim_name[mesh->ndim], item);
        mesh->size[mesh->ndim++] = (int)size;
        return true;
    }
    return false;
}

/* Read `dims`; after a finding the mesh has none. */
static void mesh_dims(struct dtn_file_check *check,
                      const struct dtn_entry *entry, struct dtn_mesh_def *mesh)
{
    char item[DTN_ITEM_SIZE];

    for (const char *cursor = entry->value; dtn_list_next(&cursor, ',', item);)
        if (!dims_add(check, entry, item, mesh)) {
            mesh->ndim = 0;
            return;
        }
}

/* Do the sizes make the number of ranks? */
static bool mesh_product(struct dtn_file_check *check,
                         const struct dtn_entry *entry,
                         const struct dtn_mesh_def *mesh, int nranks)
{
    char text[DTENSOR_MAX_DIMS * (DTENSOR_NAME_MAX + 16)] = "";
    size_t used = 0;
    uint64_t product = 1;

    for (int d = 0; d < mesh->ndim; d++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=%d",
                                 d ? " x " : "", mesh->dim_name[d],
                                 mesh->size[d]);
        if (product <= DTN_MAX_WORLD)              /* else it is too large    */
            product *= (uint64_t)mesh->size[d];
    }
    if (product == (uint64_t)nranks)
        return true;
    dtn_finding(check->findings, entry->line, "dims: %s is %" PRIu64 "%s rank%s"
                ", but mesh \"%s\" has %d", text, product,
                product > DTN_MAX_WORLD ? " or more" : "",
                product == 1 ? "" : "s", mesh->name, nranks);
    return false;
}

/* --------------------------------------------------------------- ranks --- */

/* Is every rank listed once? */
static int ranks_distinct(struct dtn_file_check *check,
                          const struct dtn_entry *entry, const int ranks[],
                          int n, bool *distinct)
{
    bool *seen = calloc((size_t)check->cluster->world_size, sizeof *seen);

    if (!seen)
        return dtn_fail_nomem(check->err, "mesh", (size_t)n);
    *distinct = true;
    for (int i = 0; i < n && *distinct; i++) {
        if (seen[ranks[i]]) {
            dtn_finding(check->findings, entry->line, "ranks: rank %d is "
                        "listed twice", ranks[i]);
            *distinct = false;
        }
        seen[ranks[i]] = true;
    }
    free(seen);
    return 0;
}

/* Read `ranks`; after a finding *ranksp has none. */
static int mesh_ranks_list(struct dtn_file_check *check,
                           const struct dtn_entry *entry,
                           struct dtn_ranks *ranksp)
{
    char why[DTN_WHY_SIZE];
    int *ranks, n, rc;
    bool distinct = false;

    rc = dtn_list_numbers(entry->value, "rank",
                          check->cluster->world_size - 1, &ranks, &n, why);
    if (rc == DTENSOR_ENOMEM)
        return dtn_fail_nomem(check->err, "mesh", sizeof *ranks);
    if (rc < 0) {
        dtn_finding(check->findings, entry->line, "ranks: %s", why);
        return 0;
    }
    rc = ranks_distinct(check, entry, ranks, n, &distinct);
    if (rc == 0 && distinct)
        *ranksp = dtn_ranks_of(ranks, n);
    if (ranksp->list != ranks)
        free(ranks);
    return rc;
}

/* A mesh of `dims`, over `ranks` or all. */
static int mesh_grid(struct dtn_file_check *check,
                     const struct dtn_section *section,
                     struct dtn_mesh_def *mesh)
{
    const struct dtn_entry *dims, *list;
    struct dtn_ranks *ranks = &mesh->ranks;
    int rc = 0;

    dims = dtn_section_get(check->doc, section, "dims");
    list = dtn_section_get(check->doc, section, "ranks");
    if (!dims) {
        dtn_finding(check->findings, section->line, "[mesh \"%s\"] has no "
                    "\"dims\"; expected dims = name=number, such as dp=2, "
                    "tp=4, or a parent and what to select", mesh->name);
        return 0;
    }
    mesh_dims(check, dims, mesh);
    if (!check->world_known)
        return 0;
    if (list && strcmp(list->value, "all") != 0)
        rc = mesh_ranks_list(check, list, ranks);
    else
        *ranks = dtn_ranks_all(check->cluster->world_size);
    if (ranks->n == 0)
        return rc;
    if (strcmp(mesh->name, "world") == 0
        && ranks->n != check->cluster->world_size)
        dtn_finding(check->findings, list->line, "ranks: mesh \"world\" has %d "
                    "of %d ranks; expected all of them", ranks->n,
                    check->cluster->world_size);
    else if (mesh->ndim > 0)
        mesh_product(check, dims, mesh, ranks->n);
    return 0;
}

/* ------------------------------------------------------------- section --- */

static int mesh_read(struct dtn_file_check *check,
                     const struct dtn_section *section,
                     struct dtn_mesh_def *mesh)
{
    const struct dtn_entry *parent, *select;

    parent = dtn_section_get(check->doc, section, "parent");
    select = dtn_section_get(check->doc, section, "select");
    if (parent && strcmp(section->name, "world") == 0) {
        dtn_finding(check->findings, parent->line, "parent: mesh \"world\" is "
                    "all ranks; expected \"dims\"");
        return 0;
    }
    if (parent)
        return dtn_file_check_submesh(check, section, parent, mesh);
    if (select) {
        dtn_finding(check->findings, select->line, "\"select\" without "
                    "\"parent\"; expected parent = the name of a mesh");
        return 0;
    }
    return mesh_grid(check, section, mesh);
}

/* Make room for one more mesh. */
static bool mesh_reserve(struct dtn_file_check *check)
{
    struct dtensor_cluster *cluster = check->cluster;

    return dtn_array_reserve(&cluster->meshes, &check->meshes_capacity,
                             cluster->nmeshes + 1, sizeof *cluster->meshes);
}

/* A mesh is entered after it has been read, so that it cannot be its own
 * parent.
 */
static int
mesh_add(struct dtn_file_check *check, const struct dtn_section *section)
{
    struct dtensor_cluster *cluster = check->cluster;
    struct dtn_mesh_def mesh = { .ndim = 0 };
    int rc;

    if (!mesh_reserve(check))
        return dtn_fail_nomem(check->err, "mesh", sizeof mesh);
    strcpy(mesh.name, section->name);
    rc = mesh_read(check, section, &mesh);
    dtn_file_check_scalars(check, section, &mesh);
    cluster->meshes[cluster->nmeshes++] = mesh;
    return rc;
}

/* Add the mesh "world" if the file has none. */
static int mesh_world(struct dtn_file_check *check)
{
    struct dtensor_cluster *cluster = check->cluster;
    struct dtn_mesh_def *mesh;

    if (!mesh_reserve(check))
        return dtn_fail_nomem(check->err, "mesh", sizeof *mesh);
    cluster->nmeshes = 1;
    mesh = &cluster->meshes[0];
    *mesh = (struct dtn_mesh_def){ .ndim = 0 };
    strcpy(mesh->name, "world");
    strcpy(mesh->dim_name[0], "world");
    mesh->ndim = 1;
    mesh->size[0] = cluster->world_size;
    if (check->world_known)
        mesh->ranks = dtn_ranks_all(cluster->world_size);
    return 0;
}

int dtn_file_check_meshes(struct dtn_file_check *check)
{
    const struct dtn_section *section = NULL;
    int rc = dtn_section_find(check->doc, DTN_KIND_MESH, "world")
           ? 0 : mesh_world(check);

    while (rc == 0 && (section = dtn_section_next(check->doc, DTN_KIND_MESH,
                                                  section)) != NULL) {
        if (check->cluster->nmeshes == DTN_MAX_MESHES) {
            dtn_finding(check->findings, section->line, "one mesh too many; "
                        "expected at most %d", DTN_MAX_MESHES);
            break;
        }
        rc = mesh_add(check, section);
    }
    return rc;
}

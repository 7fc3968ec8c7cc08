/* submesh.c - a [mesh "M"] that is part of another
 *
 * `select` fixes some dims of the parent; the others stay, in their order.  Let
 * mesh "world" have dims = dp=2, tp=4 over ranks 0-7.  Then parent = world with
 * select = dp=1 is the mesh tp=4 over ranks 4-7, and with select = tp=0 it is
 * the mesh dp=2 over ranks 0 and 4.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "base/ranks.h"
#include "base/units.h"
#include "cluster/check.h"
#include "cluster/cluster.h"
#include "cluster/file.h"
#include "cluster/findings.h"
#include "cluster/list.h"
#include "cluster/reader.h"
#include "dtensor.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Read "pp=0" into index[].  There -1 marks a dim that stays. */
static bool
select_add(struct dtn_file_check *check, const struct dtn_entry *entry,
           const struct dtn_mesh_def *parent, const char *text, int index[])
{
    char item[DTN_ITEM_SIZE], *value = NULL;
    uint64_t i = 0;
    int d;

    strcpy(item, text);
    if (!dtn_list_assignment(item, &value) ||
        !dtn_parse_u64(value, false, UINT64_MAX, &i)) {
        dtn_finding(check->findings, entry->line, "select: bad entry \"%s\"; "
                    "expected dim=index, such as pp=0", text);
        return false;
    }
    d = dtn_file_check_dim_name(check, entry, parent, item);
    if (d < 0)
        return false;
    if (index[d] >= 0)
        dtn_finding(check->findings, entry->line, "select: dim \"%s\" is "
                    "listed twice", item);
    else if (i >= (uint64_t)parent->size[d])
        dtn_finding(check->findings, entry->line, "select: %s=%" PRIu64 " does "
                    "not exist; expected 0 to %d", item, i,
                    parent->size[d] - 1);
    else {
        index[d] = (int)i;
        return true;
    }
    return false;
}

static bool select_parse(struct dtn_file_check *check,
                         const struct dtn_entry *entry,
                         const struct dtn_mesh_def *parent, int index[])
{
    char item[DTN_ITEM_SIZE];
    int selected = 0;

    for (int d = 0; d < DTENSOR_MAX_DIMS; d++)
        index[d] = -1;
    for (const char *cursor = entry->value;
         dtn_list_next(&cursor, ',', item); selected++)
        if (!select_add(check, entry, parent, item, index))
            return false;
    if (selected < parent->ndim)
        return true;
    dtn_finding(check->findings, entry->line, "select: leaves no dim of mesh "
                "\"%s\"; expected one at least to stay", parent->name);
    return false;
}

/* Copy the ranks of `parent` at the selected coordinates; returns how many. */
static int select_ranks(const struct dtn_mesh_def *parent, const int index[],
                        int ranks[])
{
    int n = 0;

    for (int i = 0; i < parent->ranks.n; i++) {
        bool inside = true;

        for (int d = parent->ndim - 1, rest = i; d >= 0;
             rest /= parent->size[d--])
            if (index[d] >= 0 && rest % parent->size[d] != index[d])
                inside = false;
        if (inside)
            ranks[n++] = dtn_ranks_at(&parent->ranks, i);
    }
    return n;
}

static int submesh_make(struct dtn_file_check *check,
                        const struct dtn_mesh_def *parent, const int index[],
                        struct dtn_mesh_def *mesh)
{
    size_t n = 1;
    int *ranks;

    for (int d = 0; d < parent->ndim; d++) {
        if (index[d] >= 0)
            continue;
        strcpy(mesh->dim_name[mesh->ndim], parent->dim_name[d]);
        mesh->size[mesh->ndim++] = parent->size[d];
        n *= (size_t)parent->size[d];
    }
    if (parent->ranks.n == 0 || check->findings->nerrors > 0)
        return 0;
    ranks = malloc(n * sizeof *ranks);
    if (!ranks)
        return dtn_fail_nomem(check->err, "mesh", n * sizeof *ranks);
    mesh->ranks = dtn_ranks_of(ranks, select_ranks(parent, index, ranks));
    if (!mesh->ranks.list)
        free(ranks);
    return 0;
}

int dtn_file_check_submesh(struct dtn_file_check *check,
                           const struct dtn_section *section,
                           const struct dtn_entry *parent,
                           struct dtn_mesh_def *mesh)
{
    static const char *const others[] = { "dims", "ranks" };
    const struct dtn_entry *select, *other;
    int index[DTENSOR_MAX_DIMS], i;

    for (size_t k = 0; k < DTN_COUNT(others); k++) {
        other = dtn_section_get(check->doc, section, others[k]);
        if (!other)
            continue;
        dtn_finding(check->findings, other->line, "\"%s\" beside \"parent\"; "
                    "expected one or the other", others[k]);
        return 0;
    }
    i = dtn_file_check_mesh_name(check, parent);
    if (i < 0 || check->cluster->meshes[i].ndim == 0)
        return 0;
    select = dtn_section_get(check->doc, section, "select");
    if (!select) {
        dtn_finding(check->findings, section->line, "[mesh \"%s\"] has no "
                    "\"select\"; expected select = %s=0", mesh->name,
                    check->cluster->meshes[i].dim_name[0]);
        return 0;
    }
    mesh->memory = check->cluster->meshes[i].memory;
    if (!select_parse(check, select, &check->cluster->meshes[i], index))
        return 0;
    return submesh_make(check, &check->cluster->meshes[i], index, mesh);
}

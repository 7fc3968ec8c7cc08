/* check.h - checks of a document, section by section */
#ifndef DTN_CLUSTER_CHECK_H
#define DTN_CLUSTER_CHECK_H

#include "cluster/sections.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_document;
struct dtn_entry;
struct dtn_findings;
struct dtn_mesh_def;
struct dtn_section;

/* The state of phase 2, the checks. */
struct dtn_file_check {
    const struct dtn_document *doc;           /* the file, as read            */
    struct dtn_findings *findings;            /* collects what is wrong       */
    struct dtensor_error *err;                /* for ENOMEM; may be NULL      */
    struct dtensor_cluster *cluster;          /* being filled in              */
    bool world_known;                         /* no [nodes] is wrong          */
    int hosts_capacity;                       /* of cluster->hosts            */
    int nodes_capacity;                       /* of cluster->nodes            */
    int meshes_capacity;                      /* of cluster->meshes           */
};

/* Read the scalars of a section into the struct at `base`.  A required key that
 * is missing is a finding.  True: nothing was wrong.
 */
bool dtn_file_check_scalars(struct dtn_file_check *check,
                            const struct dtn_section *section, void *base);

/* Check each value by itself: all that can be said of a file whose form is
 * wrong.  A check of one section by another would report what only follows, as
 * a mesh that is unknown because the header of its section could not be read.
 */
void dtn_file_check_values(const struct dtn_document *doc,
                           struct dtn_findings *findings);

/* Check all sections of a kind.  An error in the file is a finding, not a
 * failure: these functions fail with ENOMEM only.
 */
int dtn_file_check_nodes(struct dtn_file_check *check);
int dtn_file_check_meshes(struct dtn_file_check *check);
int dtn_file_check_seed(struct dtn_file_check *check);
int dtn_file_check_tuning(struct dtn_file_check *check);

/* Make the mesh of `parent` and "select".  After a finding it has no dims. */
int dtn_file_check_submesh(struct dtn_file_check *check,
                           const struct dtn_section *section,
                           const struct dtn_entry *parent,
                           struct dtn_mesh_def *mesh);

/* The next section of that kind after `section` (NULL: the first), or NULL. */
const struct dtn_section *dtn_section_next(const struct dtn_document *doc,
                                           enum dtn_section_kind_id kind,
                                           const struct dtn_section *section);

/* The section of that kind and name, or NULL. */
const struct dtn_section *dtn_section_find(const struct dtn_document *doc,
                                           enum dtn_section_kind_id kind,
                                           const char *name);

/* Index of the dimension of that name, or -1. */
int dtn_mesh_dim(const struct dtn_mesh_def *mesh, const char *name);

/* Index of the mesh that `entry` names, or -1 after a finding. */
int dtn_file_check_mesh_name(struct dtn_file_check *check,
                             const struct dtn_entry *entry);

/* As dtn_mesh_dim for `name`, found in `entry`; -1 after a finding. */
int dtn_file_check_dim_name(struct dtn_file_check *check,
                            const struct dtn_entry *entry,
                            const struct dtn_mesh_def *mesh, const char *name);

#endif

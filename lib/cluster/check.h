/* check.h - a document is checked, section by section */
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

/* Phase 2 under way. */
struct dtn_check {
    const struct dtn_document *doc;
    struct dtn_findings *findings;
    struct dtensor_error *err;
    struct dtensor_cluster *cluster;          /* being filled in             */
    bool world_known;                         /* no [nodes] is wrong         */
    int hosts_capacity;                       /* of the cluster's arrays     */
    int nodes_capacity;
    int meshes_capacity;
};

/* Read the scalars of a section into the struct at `base`, and miss what is
 * required; true when nothing was wrong.
 */
bool dtn_check_scalars(struct dtn_check *check,
                       const struct dtn_section *section, void *base);

/* Check all sections of a kind.  A wrong file is a finding, not a failure:
 * they fail with ENOMEM only.
 */
int dtn_check_nodes(struct dtn_check *check);
int dtn_check_meshes(struct dtn_check *check);
int dtn_check_seed(struct dtn_check *check);
int dtn_check_tuning(struct dtn_check *check);

/* The mesh that `parent` and "select" make; without dims after a finding. */
int dtn_check_submesh(struct dtn_check *check,
                      const struct dtn_section *section,
                      const struct dtn_entry *parent,
                      struct dtn_mesh_def *mesh);

/* The next section of that kind after `section` (NULL: the first), or NULL. */
const struct dtn_section *dtn_section_next(const struct dtn_document *doc,
                                           enum dtn_kind_id kind,
                                           const struct dtn_section *section);

/* The section of that kind and name, or NULL. */
const struct dtn_section *dtn_section_find(const struct dtn_document *doc,
                                           enum dtn_kind_id kind,
                                           const char *name);

/* Index of the mesh of that name, or -1. */
int dtn_mesh_lookup(const struct dtensor_cluster *cluster, const char *name);

/* Index of the dimension of that name, or -1. */
int dtn_mesh_dim(const struct dtn_mesh_def *mesh, const char *name);

/* As dtn_mesh_lookup for the value of `entry`; -1 after a finding. */
int dtn_check_mesh_name(struct dtn_check *check, const struct dtn_entry *entry);

/* As dtn_mesh_dim for `name`, found in `entry`; -1 after a finding. */
int dtn_check_dim_name(struct dtn_check *check, const struct dtn_entry *entry,
                       const struct dtn_mesh_def *mesh, const char *name);

#endif

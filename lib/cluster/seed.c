/* seed.c - [seed]: the seed of each rank
 *
 * Rank r draws from base + stride * index, where index numbers its coordinates
 * in the `distinct` dims, the first listed fastest.  With base = 7, stride =
 * 100, distinct = pp, a rank at pp=3 has seed 307.
 */
#include "cluster/seed.h"
#include "base/ranks.h"
#include "cluster/check.h"
#include "cluster/cluster.h"
#include "cluster/file.h"
#include "cluster/findings.h"
#include "cluster/list.h"
#include "cluster/reader.h"
#include "cluster/sections.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

static void seed_distinct(struct dtn_file_check *check,
                          const struct dtn_entry *entry,
                          const struct dtn_mesh_def *mesh,
                          struct dtn_seed_conf *seed)
{
    char item[DTN_ITEM_SIZE];
    int dim;

    for (const char *cursor = entry->value;
         dtn_list_next(&cursor, ',', item);) {
        dim = dtn_file_check_dim_name(check, entry, mesh, item);
        if (dim < 0)
            return;
        for (int i = 0; i < seed->ndistinct; i++) {
            if (seed->distinct[i] != dim)
                continue;
            dtn_finding(check->findings, entry->line, "distinct: dim \"%s\" is "
                        "listed twice", item);
            return;
        }
        seed->distinct[seed->ndistinct++] = dim;
    }
}

int dtn_file_check_seed(struct dtn_file_check *check)
{
    struct dtn_seed_conf *seed = &check->cluster->seed;
    const struct dtn_section *section;
    const struct dtn_entry *mesh, *distinct;

    section = dtn_section_next(check->doc, DTN_KIND_SEED, NULL);
    if (!section)
        return 0;
    seed->given = true;
    dtn_file_check_scalars(check, section, seed);
    mesh = dtn_section_get(check->doc, section, "mesh");
    distinct = dtn_section_get(check->doc, section, "distinct");
    if (distinct && strcmp(distinct->value, "none") == 0)
        distinct = NULL;
    if (mesh)
        seed->mesh = dtn_file_check_mesh_name(check, mesh);
    if (distinct && !mesh)
        dtn_finding(check->findings, distinct->line, "distinct: dims of no "
                    "mesh; expected mesh = the name of a mesh");
    else if (distinct && seed->stride == 0)
        dtn_finding(check->findings, distinct->line, "distinct: stride = 0 "
                    "gives all of them the same seed; expected a stride of 1 "
                    "or more, or no distinct");
    else if (distinct && seed->mesh >= 0)
        seed_distinct(check, distinct, &check->cluster->meshes[seed->mesh],
                      seed);
    return 0;
}

static uint64_t seed_at(const struct dtn_seed_conf *seed,
                        const struct dtn_mesh_def *mesh, int position)
{
    uint64_t index = 0, weight = 1;
    int coord[DTENSOR_MAX_DIMS];

    for (int d = mesh->ndim - 1; d >= 0; d--) {
        coord[d] = position % mesh->size[d];
        position /= mesh->size[d];
    }
    for (int i = 0; i < seed->ndistinct; i++) {
        index += (uint64_t)coord[seed->distinct[i]] * weight;
        weight *= (uint64_t)mesh->size[seed->distinct[i]];
    }
    return seed->base + seed->stride * index;             /* modulo 2^64      */
}

uint64_t dtn_seed_of(const struct dtensor_cluster *cluster, int rank)
{
    const struct dtn_seed_conf *seed = &cluster->seed;
    int position;

    if (seed->mesh < 0)
        return seed->base;
    position = dtn_ranks_find(&cluster->meshes[seed->mesh].ranks, rank);
    if (position < 0)
        return seed->base;
    return seed_at(seed, &cluster->meshes[seed->mesh], position);
}

void dtn_seeds_of(const struct dtensor_cluster *cluster, uint64_t seed[])
{
    const struct dtn_seed_conf *conf = &cluster->seed;
    const struct dtn_mesh_def *mesh;

    for (int r = 0; r < cluster->world_size; r++)
        seed[r] = conf->base;
    if (conf->mesh < 0)
        return;
    mesh = &cluster->meshes[conf->mesh];
    for (int i = 0; i < mesh->ranks.n; i++)
        seed[dtn_ranks_at(&mesh->ranks, i)] = seed_at(conf, mesh, i);
}

char *dtn_seed_dims(const struct dtensor_cluster *cluster, char *buf,
                    size_t size)
{
    const struct dtn_seed_conf *seed = &cluster->seed;
    size_t used = 0;

    buf[0] = '\0';
    for (int i = 0; i < seed->ndistinct && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%s",
                                 i ? "," : "", cluster->meshes[seed->mesh]
                                 .dim_name[seed->distinct[i]]);
    return buf;
}

/* seed.h - the seed of each rank */
#ifndef DTN_CLUSTER_SEED_H
#define DTN_CLUSTER_SEED_H

#include <stddef.h>
#include <stdint.h>

struct dtensor_cluster;

/* The seed of a rank: base + stride * index, modulo 2^64.  index is the number
 * of its coordinates in the distinct dims; the first listed dim changes
 * fastest.  Outside the mesh the seed is base.  Valid if cluster->seed.given.
 */
uint64_t dtn_seed_of(const struct dtensor_cluster *cluster, int rank);

/* The seeds of all ranks, seed[world_size]. */
void dtn_seeds_of(const struct dtensor_cluster *cluster, uint64_t seed[]);

/* "pp,tp": the dims along which seeds differ.  Returns `buf`. */
char *dtn_seed_dims(const struct dtensor_cluster *cluster, char *buf,
                    size_t size);

#endif

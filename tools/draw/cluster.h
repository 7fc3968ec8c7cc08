/* cluster.h - the picture of a cluster file: hosts, ranks, devices, links */
#ifndef DRAW_CLUSTER_H
#define DRAW_CLUSTER_H

#include "tools/draw/picture.h"
#include "dtensor.h"

void draw_cluster(struct picture *pic, const struct dtensor_cluster *cluster,
                  struct draw_room room);

#endif

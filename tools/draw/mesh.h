/* mesh.h - the picture of a mesh: which rank is where */
#ifndef DRAW_MESH_H
#define DRAW_MESH_H

#include "tools/draw/picture.h"
#include "dtensor.h"

/* host[p] is the host of position p: its colour. */
void draw_mesh(struct picture *pic, const struct dtensor_mesh *mesh,
               const int host[], struct draw_room room);

#endif

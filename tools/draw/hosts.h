/* hosts.h - which host each position of a mesh is on */
#ifndef DRAW_HOSTS_H
#define DRAW_HOSTS_H

#include "dtensor.h"

/* [size of the mesh], for free(), numbered in order of appearance: by the
 * cluster file or, if `path` is NULL, by `per_host` ranks on each host, 0: all
 * on one.  NULL: out of memory, or the file cannot be read.
 */
int *draw_hosts(const struct dtensor_mesh *mesh, const char *path,
                int per_host);

#endif

/* json.h - parts of objects that several files write */
#ifndef TOOLS_PLAN_JSON_H
#define TOOLS_PLAN_JSON_H

#include <jansson.h>

struct dtensor_mesh;

/* json.c: which path buffers on GPUs take, a list of sentences. */
json_t *plan_json_paths(const struct dtensor_mesh *mesh);

#endif

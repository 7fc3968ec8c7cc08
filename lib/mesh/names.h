/* names.h - the names of mesh dimensions; private to this room */
#ifndef DTN_MESH_NAMES_H
#define DTN_MESH_NAMES_H

#include "dtensor.h"

#include <stdbool.h>

/* Copy the next word of "dp, tp" to `word` and move *textp past it; false at
 * the end.  A word that is too long is cut to a length that no valid name has.
 */
#define DTN_MESH_WORD_MAX (DTENSOR_NAME_MAX + 2)
bool dtn_mesh_next_name(const char **textp, char word[DTN_MESH_WORD_MAX]);

/* Read `n` distinct names.   Errors: EINVAL */
int dtn_mesh_names(const char *text, int n,
                   char names[][DTENSOR_NAME_MAX + 1],
                   struct dtensor_error *err);

/* Is it a valid name of a dimension: not empty, not too long, without a comma?
 * Errors: EINVAL
 */
int dtn_mesh_check_name(const char *name, struct dtensor_error *err);

/* The index of a dimension, or -1; no dimension has the name "". */
int dtn_mesh_find_dim(const struct dtensor_mesh *mesh, const char *name);

/* Is `dim` a dimension of the mesh?  -1 becomes 0 if the mesh has one
 * dimension.  Errors: EINVAL
 */
int dtn_mesh_check_dim(const struct dtensor_mesh *mesh, int *dim,
                       struct dtensor_error *err);

#endif

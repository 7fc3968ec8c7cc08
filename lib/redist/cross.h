/* cross.h - redistributes between two meshes */
#ifndef DTN_REDIST_CROSS_H
#define DTN_REDIST_CROSS_H

#include "redist/phases.h"
#include "dtensor.h"

#define DTN_CROSS_PHASES_MAX (1 + 2 * DTN_MAX_PHASES)

/* The phases between specs on different meshes; returns how many. */
int dtn_cross_phases(const struct dtensor_spec *src,
                     const struct dtensor_spec *dst,
                     struct dtn_phase phase[DTN_CROSS_PHASES_MAX]);

/* The phase that is the exchange between the meshes. */
struct dtn_phase dtn_phase_cross(const struct dtensor_spec *src,
                                 const struct dtensor_spec *dst);

/* The mesh of the ranks of both, ascending; if a and b are the same mesh, that
 * mesh. Errors: ENOMEM
 */
int dtn_cross_mesh(const struct dtensor_mesh *a, const struct dtensor_mesh *b,
                   const struct dtensor_mesh **meshp,
                   struct dtensor_error *err);

#endif

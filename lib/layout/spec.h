/* spec.h - specs: a shape, a dtype, a mesh and placements */
#ifndef DTN_LAYOUT_SPEC_H
#define DTN_LAYOUT_SPEC_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The reduction of its Partial placements; -1 if it has none; SUM if some are
 * sums and some averages.
 */
int dtn_spec_partial(const struct dtensor_spec *spec);

/* Mesh dimension m shards both specs.  Do both have the same shards?  They do
 * if all dimensions up to m that shard this tensor dimension are the same in
 * both.
 */
bool dtn_spec_shards_alike(const struct dtensor_spec *a,
                           const struct dtensor_spec *b, int m);

/* Do the chosen shard lengths add up to the size that remains after the
 * placements to their left?
 */
bool dtn_spec_lengths_fit(const struct dtensor_spec *spec);

/* "f32[10,5]  S(0),R  on world(dp=2,tp=2)": for people.  Returns `buf`. */
char *dtn_spec_format(const struct dtensor_spec *spec, char *buf, size_t size);

/* The beginning of that: "f32[8,6]". */
char *dtn_spec_shape(const struct dtensor_spec *spec, char *buf, size_t size);

/* If placement m shards: is there that dimension of the tensor?  Else EINVAL */
int dtn_spec_check_dim(const struct dtensor_spec *spec, int m,
                       struct dtensor_error *err);

/* Check a shape: neither its bytes nor any stride may overflow.  Sizes of 0
 * count as 1.  `what` names the shape in messages.   Errors: EINVAL
 */
int dtn_shape_check(const char *what, enum dtensor_dtype dtype, int ndim,
                    const int64_t shape[], struct dtensor_error *err);

/* Can both describe the same tensor: are context, dtype and shape the same?
 * Meshes and placements may differ.
 */
bool dtn_spec_same_tensor(const struct dtensor_spec *a,
                          const struct dtensor_spec *b);

/* The same as a check; `what` names the caller.   Errors: EINVAL */
int dtn_spec_check_same(const char *what, const struct dtensor_spec *src,
                        const struct dtensor_spec *dst,
                        struct dtensor_error *err);

/* The same tensor, mesh and placements. */
bool dtn_spec_equal(const struct dtensor_spec *a,
                    const struct dtensor_spec *b);

/* A hash of all fields that are in use.  Equal specs have the same hash on
 * every rank.
 */
uint64_t dtn_spec_hash(const struct dtensor_spec *spec, uint64_t seed);

/* With R instead of Partial: the default of a gradient, too. */
struct dtensor_spec dtn_spec_reduced(struct dtensor_spec spec);

#endif

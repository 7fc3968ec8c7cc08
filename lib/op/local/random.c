/* random.c - operators that take random numbers
 *
 * They are those of dtensor_rand() and dtensor_dropout(), from the generator of
 * the mesh.
 */
#include "op/local/random.h"
#include "tensor/tensor.h"
#include "dtensor.h"

int dtn_local_random(const struct dtn_local *local,
                     const struct dtn_parts *parts,
                     struct dtensor *const out[], struct dtensor_error *err)
{
    return local->which == DTN_RANDOM_NORMAL
           ? dtensor_fill_normal(out[0], 0, 1, NULL, err)
           : dtensor_fill_uniform(out[0], 0, 1, NULL, err);
}

int dtn_local_dropout(const struct dtn_local *local,
                      const struct dtn_parts *parts,
                      struct dtensor *const out[], struct dtensor_error *err)
{
    return dtn_dropout(parts->in[0].data, parts->args->p, NULL, out[0], out[1],
                       err);
}

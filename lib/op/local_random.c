/* local_random.c - operators that make tensors of random numbers
 *
 * The numbers are those of the whole, from the generator of the mesh: whatever
 * the placements are, an element gets the same one.
 */
#include "op/local_random.h"
#include "dtensor.h"

int dtn_local_random(const struct dtn_local *local, struct dtensor *out,
                     struct dtensor_error *err)
{
    return local->which == DTN_RANDOM_NORMAL
           ? dtensor_normal(out, 0, 1, NULL, err)
           : dtensor_uniform(out, 0, 1, NULL, err);
}

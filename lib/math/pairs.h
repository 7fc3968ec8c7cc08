/* pairs.h - products of bf16 by an instruction that multiplies pairs of them */
#ifndef DTN_MATH_PAIRS_H
#define DTN_MATH_PAIRS_H

#include "math/tiles.h"

#include <stdbool.h>

/* Has the instruction, for this product and on this CPU, the bits of a chain of
 * fused multiply-adds of f32?
 */
bool dtn_pairs_fit(const struct dtn_tiles_call *call);

#endif

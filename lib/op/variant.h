/* variant.h - which rule of a family holds for a call; see rule.h */
#ifndef DTN_OP_VARIANT_H
#define DTN_OP_VARIANT_H

#include "op/rule.h"

dtn_variant_f dtn_variant_cast, dtn_variant_norm, dtn_variant_loss,
    dtn_variant_scores_backward,
              dtn_variant_slice, dtn_variant_pad, dtn_variant_norm_backward;

#endif

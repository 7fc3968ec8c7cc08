/* pair_panels.h - panels of pairs of bf16, for the instruction of pairs.h */
#ifndef DTN_MATH_PAIR_PANELS_H
#define DTN_MATH_PAIR_PANELS_H

#include "math/panels.h"
#include "math/width.h"

#ifdef DTN_WIDTHS
/* As dtn_panels_take(), of bf16: two terms are one number of 32 bits, the first
 * of them in the upper half; `from` and `deep` count pairs.  If p->terms is
 * odd, the second term of the last pair is p->odd, also of lanes that are
 * missing.  Only on a CPU where dtn_pairs_fit() is true of some product.
 */
dtn_panels_f dtn_pair_panels_take;
#endif

#endif

/* panels.h - elements of a matrix in the order in which a loop reads them */
#ifndef DTN_MATH_PANELS_H
#define DTN_MATH_PANELS_H

#include "dtensor.h"

#include <stdint.h>

/* A factor of a product, seen as lanes of terms: of a b the lanes are the rows
 * of a, or the columns of b.
 */
struct dtn_panels {
    const void *data;             /* term 0 of lane 0                         */
    enum dtensor_dtype dtype;     /* of an element, a float                   */
    enum dtensor_dtype work;      /* in a panel: f32 or f64                   */
    int64_t lane, term;           /* from one to the next; elements           */
    int64_t terms;                /* of a lane                                */
    int lanes;                    /* of a panel: a multiple of 4, at most 64  */
    uint16_t odd;                 /* of pairs: see pair_panels.h              */
};

enum { DTN_PANELS_LANES = 512, DTN_PANELS_DEEP = 256 };

/* n <= DTN_PANELS_LANES lanes from `first` on, and `deep` <= DTN_PANELS_DEEP
 * terms from `from` on, become panels of p->lanes lanes: panel by panel, term
 * by term, lane by lane.  Lanes that are missing in the last panel are 0.
 */
typedef void dtn_panels_f(const struct dtn_panels *p, int64_t first, int64_t n,
                          int64_t from, int64_t deep, void *to);
dtn_panels_f dtn_panels_take;

#endif

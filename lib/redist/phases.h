/* phases.h - the collectives that lead from one spec to another */
#ifndef DTN_REDIST_PHASES_H
#define DTN_REDIST_PHASES_H

#include "dtensor.h"

#include <stdbool.h>

/* One collective on the way from one spec to another. */
enum dtn_phase_kind {
    DTN_PHASE_EXCHANGE,           /* the pieces from src to dst               */
    DTN_PHASE_REDUCE,             /* allreduce of the flat local part: src P, */
                                  /* dst R, along the mesh dimensions `dims`  */
    DTN_PHASE_BROADCAST           /* of the flat local part, by coordinate 0  */
                                  /* of `dims`; in place                      */
};

struct dtn_phase {
    enum dtn_phase_kind kind;     /* what is done, see above                  */
    struct dtensor_spec src;      /* before                                   */
    struct dtensor_spec dst;      /* after                                    */
    unsigned dims;                /* bit set of mesh dimensions               */
    enum dtensor_redop redop;     /* reduces terms, makes neutral elements;   */
                                  /* AVG where some terms are averages        */
    bool neutral;                 /* EXCHANGE: `dst` starts neutral           */
    unsigned first_only;          /* EXCHANGE: bit set of mesh dimensions     */
                                  /* where only coordinate 0 gets the value   */
    int divide;                   /* the result is divided by this, before it */
                                  /* is rounded; 1: it is not                 */
};
#define DTN_MAX_PHASES 3

/* One exchange from src to dst, which have at most one reduction together. */
struct dtn_phase dtn_phase_exchange(const struct dtensor_spec *src,
                                    const struct dtensor_spec *dst);

/* The phases from src to dst; both are checked and describe one tensor on one
 * mesh.  Returns their number: 0 if every rank's part stays as it is.
 */
int dtn_phases(const struct dtensor_spec *src, const struct dtensor_spec *dst,
               struct dtn_phase phase[DTN_MAX_PHASES]);

/* The phases that scatter a whole array from one position to dst; `src` of the
 * exchange is all R.  `apart`: some ranks cannot load from each other, so the
 * array should leave its rank once, not once for each replica.
 */
int dtn_scatter_phases(const struct dtensor_spec *dst, bool apart,
                       struct dtn_phase phase[DTN_MAX_PHASES]);

/* Must all terms be added in one step?  Averages of integers are rounded, so
 * two steps would give a different result.
 */
bool dtn_phases_add_once(const struct dtensor_spec *src,
                         const struct dtensor_spec *dst);

/* The largest number of ranks, itself included, that a rank may exchange data
 * with; on one mesh.
 */
int dtn_phase_peers(const struct dtn_phase *phase);

/* Are terms reduced in this phase? */
bool dtn_phase_folds(const struct dtn_phase *phase);

/* Does this position get nothing in the exchange, except neutral elements? */
bool dtn_phase_idle(const struct dtn_phase *phase, int index);

#endif

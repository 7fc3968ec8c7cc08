/* oracle_terms.h - private to oracle.c and oracle_terms.c: what P means */
#ifndef ORACLE_TERMS_H
#define ORACLE_TERMS_H

#include "dtensor.h"
#include "tests/redist/oracle.h"

#include <stdbool.h>

/* What P means in a spec. */
struct oracle_terms {
    enum dtensor_redop op;             /* an average is a sum,                */
    int divide;                        /* divided by this                     */
    int n;                             /* 1 without P                         */
    int of[ORACLE_RANKS];              /* which of them a position holds      */
    int home[ORACLE_RANKS];            /* the position with the first of them */
};

void oracle_terms_init(struct oracle_terms *terms,
                       const struct dtensor_spec *spec);

/* Term c of element g. */
double oracle_term(const struct oracle_terms *terms, int c, int g);

double oracle_fold(enum dtensor_redop op, double a, double b);
double oracle_neutral(enum dtensor_redop op);

/* The coordinate of a position. */
const int *oracle_coord(const struct dtensor_mesh *mesh, int position);

/* Do the parts of all ranks, after a redistribute of what oracle_fill() made,
 * hold the terms that the contract says?
 */
bool oracle_terms_right(const struct dtensor_spec *src,
                        const struct dtensor_spec *dst,
                        double (*parts)[ORACLE_ELEMS]);

#endif

/* oracle.h - what a redistribute must do, worked out the slow and sure way
 *
 * oracle.c knows layouts by cutting lists of indices and holds the parts of all
 * ranks in this process; see test_oracle.c and test_random.c.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include "redist/phases.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

#define ORACLE_RANKS 16                /* of a mesh                           */
#define ORACLE_DIMS 3                  /* of a tensor                         */
#define ORACLE_SIZE 512                /* of a dimension                      */
#define ORACLE_ELEMS 2048              /* of a tensor, at most                */
#define ORACLE_USUAL 400               /* and where there is a choice         */

/* The global indices a rank holds along each tensor dimension, in order. */
struct oracle_held {
    int n[ORACLE_DIMS];
    short index[ORACLE_DIMS][ORACLE_SIZE];
};
void oracle_hold(const struct dtensor_spec *spec, int position,
                 struct oracle_held *held);
int64_t oracle_count(const struct dtensor_spec *spec,
                     const struct oracle_held *held);

/* The linear global index of each element of a part, row-major. */
void oracle_list(const struct dtensor_spec *spec,
                 const struct oracle_held *held, int *linear);

/* Element g of every tensor: distinct, and divisible by up to 16 twice. */
double oracle_value(int64_t g);

/* Write the part of a position; returns how many elements.  What P holds are
 * terms that differ.
 */
int64_t oracle_fill(const struct dtensor_spec *spec, int position,
                    double part[]);

/* Is that the part of a position of a spec without P? */
bool oracle_check(const struct dtensor_spec *spec, int position,
                  const double part[], int64_t n);

/* Carry out the plan of all ranks from src to dst; are they left with what dst
 * says, of Partial placements with the very terms of the contract, and was
 * nothing sent that was not needed?  Adds the elements that
 * crossed between ranks in exchanges, and the fewest that can have.  A route
 * that does not exist is replaced by the direct one.
 */
bool oracle_case(const struct dtensor_spec *src, const struct dtensor_spec *dst,
                 enum dtensor_route route, uint64_t *movedp,
                 uint64_t *boundp);
extern char oracle_complaint[700];

/* The same of n phases that are known. */
bool oracle_phases(const struct dtensor_spec *src,
                   const struct dtensor_spec *dst, enum dtensor_route route,
                   const struct dtn_phase phase[], int n, uint64_t *movedp,
                   uint64_t *boundp);

#endif

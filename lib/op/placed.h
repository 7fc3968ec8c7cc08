/* placed.h - where the dimensions of an index lie among those of a tensor */
#ifndef DTN_OP_PLACED_H
#define DTN_OP_PLACED_H

#include "op/signature.h"
#include "dtensor.h"

/* "#" has the last letters: s to z. */
enum { DTN_PLACED = DTN_LETTERS - DTENSOR_MAX_DIMS };

/* Which dimension of the elements is the first one of the index that names
 * them, by the n dimensions that are named: the first of those if they are
 * neighbours, else 0.
 */
int dtn_placed_at(const int dim[], int n);

/* The letters of "*&#", and how many there are: those of "*", which are nstars,
 * that args.dim does not name, and those of the index in the place of the
 * others.
 */
int dtn_placed_letters(const struct dtn_signature *sig, int nstars,
                       int letter[2 * DTENSOR_MAX_DIMS]);

/* Is there an index, from input i on, for each dimension that is named?
 * Errors: EINVAL  no; or the elements have too many dimensions
 */
int dtn_placed_check(const struct dtn_signature *sig, int i,
                     struct dtensor_error *err);

#endif

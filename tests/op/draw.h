/* draw.h - inputs of operators from words, their placements by chance */
#ifndef TESTS_OP_DRAW_H
#define TESTS_OP_DRAW_H

#include "dtensor.h"
#include "tests/op/naive.h"

#include <stdbool.h>
#include <stdint.h>

/* "6x5:f64:w", a shape, a type and what the elements are: w whole numbers from
 * -4 to 4, p from 1 to 4, b 0 or 1, iN whole numbers below N, d all different.
 * Returns where the next input begins.
 */
const char *draw_input(uint64_t *state, const char *text, struct whole *w);

/* The spec of `w` on a mesh, all R: the placements are still to be drawn. */
void draw_spec(const struct whole *w, const struct dtensor_mesh *mesh,
               struct dtensor_spec *spec);

/* The placements of `spec`: cut in half of the cases, evenly, strided, dealt
 * out or by the lengths that are put into `lengths`, which has room for one of
 * each rank; terms only if `terms` allows.  False: terms that are a third of a
 * whole number.
 */
bool draw_placements(uint64_t *state, bool terms, struct dtensor_spec *spec,
                     int64_t lengths[]);

/* `w` as a tensor of that spec, cut by each rank for itself.
 *   Errors: those of dtensor_distribute()
 */
int draw_tensor(const struct whole *w, const struct dtensor_spec *spec,
                struct dtensor **tp, struct dtensor_error *err);

/* "matmul S(0),R R,S(1)", the call in the words of a failure; until the next
 * call.
 */
const char *draw_words(const struct dtensor_op_call *call,
                       const struct dtensor_spec spec[]);

#endif

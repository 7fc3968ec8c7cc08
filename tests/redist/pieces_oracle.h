/* pieces_oracle.h - redistributes interpreted without a transport
 *
 * All ranks of a mesh are buffers of this process.  A global tensor is drawn at
 * random and laid out by the source spec (a Partial one as random terms), the
 * phases are interpreted piece by piece, and what each rank ends with is
 * compared, element by element, with what the destination spec says it holds,
 * found by cutting lists of indices.  Values are multiples of VALUE_UNIT, so
 * that dividing by up to 8 ranks is exact.
 */
#ifndef TESTS_PIECES_ORACLE_H
#define TESTS_PIECES_ORACLE_H

#include "redist/phases.h"
#include "redist/pieces.h"
#include "sched/exchange.h"
#include "dtensor.h"
#include "tests/support/mesh_job.h"

#include <stdbool.h>
#include <stdint.h>

struct dtn_box;
struct dtn_piece;

#define MAX_RANKS 8
#define MAX_ELEMS 512

/* One case: what each rank holds. */
struct parts {
    const struct dtensor_spec *spec;
    double part[MAX_RANKS][MAX_ELEMS];
};

extern double whole[MAX_ELEMS];
extern struct parts now, next;
extern long cases, received_elems;
extern uint32_t seed;
uint32_t draw(uint32_t n);
void complain(const struct dtensor_spec *src, const struct dtensor_spec *dst,
              const char *what);

/* The global indices along dimension d that position `index` holds. */
int indices(const struct dtensor_spec *spec, int index, int d, int *list);

/* The index in the part of every position of every global element, or -1. */
struct known {
    struct dtensor_spec spec;
    int64_t at[MAX_RANKS][MAX_ELEMS];
};

int64_t where(const struct dtensor_spec *spec, int index, int64_t g);

/* What the sum of its terms is divided by. */
int term_average(const struct dtensor_spec *spec);

/* Values are multiples of it: a term may be an average over 3 and then be split
 * in 3, and is still a whole number.
 */
#define VALUE_UNIT 25200.0

/* Give every rank its part: the value, or on position 0 of the terms what is
 * left when the others drew theirs.
 */
void lay_out(const struct dtensor_spec *spec, int64_t numel);
void apply(const struct dtn_piece *piece, enum dtensor_redop op,
           const double *src, double *dst);

/* Does every source list exactly what receivers list?  A receiver's list is by
 * source, a source's by receiver, so `all` is both when sorted by pair.
 */
bool sent_is_received(const struct dtn_phase *phase, struct dtn_pieces all[]);
void one_case(const struct dtensor_spec *src, const struct dtensor_spec *dst);
void claim(const char *what);

#endif

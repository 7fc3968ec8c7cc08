/* tensor_job.h - one rank of a job of tensors whose values are known
 *
 * Element i of every tensor is whole_at(i), so each rank can tell by itself
 * whether its local part, or the whole, is right.
 */
#ifndef TESTS_TENSOR_JOB_H
#define TESTS_TENSOR_JOB_H

#include "dtensor.h"
#include "tests/support/job.h"

#include <stdbool.h>
#include <stdint.h>

#define ELEMS_MAX 64

struct dtensor_spec spec_of(struct job *job, const struct dtensor_mesh *mesh,
                            enum dtensor_dtype dtype, const int64_t shape[2],
                            const char *placements);
double get(enum dtensor_dtype dtype, const void *array, int64_t i);
void set(enum dtensor_dtype dtype, void *array, int64_t i, double value);
double whole_at(int64_t i);
int64_t numel(const struct dtensor_spec *spec);

/* The global indices of the local part along one dimension. */
int64_t indices_of(const struct job *job, const struct dtensor_spec *spec,
                   int dim, int64_t index[]);

/* Is every element of the local part the one the spec says? */
bool local_is_right(struct job *job, const struct dtensor *t);
bool whole_is_right(struct job *job, const struct dtensor *t);
bool is_partial(const struct dtensor_spec *spec);

/* Make the terms of a P(sum) tensor differ: on the first of them add what the
 * others lose.
 */
void make_uneven(struct job *job, const struct dtensor *t);
struct dtensor *make(struct job *job, const struct dtensor_spec *spec,
                     int root);

#endif

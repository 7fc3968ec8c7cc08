/* values.h - makes values of a distribution from random words */
#ifndef DTN_RANDOM_VALUES_H
#define DTN_RANDOM_VALUES_H

#include <stddef.h>
#include <stdint.h>

struct dtn_dist;

/* `n` values of the distribution, of dist->words words each. */
void dtn_values_f32(int width, const struct dtn_dist *dist,
                    const uint32_t *words, size_t n, float *out);
void dtn_values_f64(int width, const struct dtn_dist *dist,
                    const uint32_t *words, size_t n, double *out);
void dtn_values_int(const struct dtn_dist *dist, const uint32_t *words,
                    size_t n, int64_t *out);

#endif

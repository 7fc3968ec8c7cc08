/* block.h - elements of any type and stride as a short array to compute with */
#ifndef DTN_MATH_BLOCK_H
#define DTN_MATH_BLOCK_H

#include "dtensor.h"

#include <stddef.h>
#include <stdint.h>

/* Elements; bytes of any type; bytes of f32 or f64. */
enum { DTN_BLOCK = 512, DTN_BLOCK_BYTES = DTN_BLOCK * 16,
       DTN_BLOCK_FLOATS = DTN_BLOCK * 8 };

/* The type in which elements of `dtype` are computed with: f32, f64, i64, u64
 * or c128.
 */
enum dtensor_dtype dtn_block_type(enum dtensor_dtype dtype);

/* Elements of one type that become elements of another. */
struct dtn_storage {
    enum dtensor_dtype dtype;     /* where they are stored                    */
    enum dtensor_dtype work;      /* where they are computed with             */
    int64_t step;                 /* from one to the next, in elements        */
};

/* n elements from `at` on, in type `work`: those at `at`, if they are so
 * already, else a copy in `buffer`.  Of either type n have at most
 * DTN_BLOCK_BYTES.
 */
const void *dtn_block_load(const struct dtn_storage *how, const void *at,
                           int64_t n, void *buffer);

/* Where n results of type `work` are to be written: at `at`, if they need not
 * be changed, else `buffer`.  dtn_block_store() then brings them to `at`.
 */
void *dtn_block_place(const struct dtn_storage *how, void *at, void *buffer);
void dtn_block_store(const struct dtn_storage *how, void *at, int64_t n,
                     const void *buffer);

#endif

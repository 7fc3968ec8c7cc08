/* dtype.h - element types */
#ifndef DTN_BASE_DTYPE_H
#define DTN_BASE_DTYPE_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool dtn_dtype_ok(enum dtensor_dtype dtype);

/* 128-bit integers, in which averages of 64-bit integers are added.  Internal:
 * no caller has buffers of this type, and it has no name or size.
 */
#define DTN_I128 ((enum dtensor_dtype)DTENSOR_NDTYPES)
enum { DTN_NDTYPES = DTENSOR_NDTYPES + 1 };
__extension__ typedef __int128 dtn_i128;
__extension__ typedef unsigned __int128 dtn_u128;

enum dtn_dtype_kind {
    DTN_DTYPE_FLOAT, DTN_DTYPE_COMPLEX, DTN_DTYPE_SIGNED, DTN_DTYPE_UNSIGNED,
    DTN_DTYPE_BOOL
};
enum dtn_dtype_kind dtn_dtype_kind(enum dtensor_dtype dtype);

/* Is it a float or a complex type? */
bool dtn_dtype_is_float(enum dtensor_dtype dtype);

/* Is it a float of 16 or 8 bits, which is computed with as f32? */
bool dtn_dtype_is_narrow(enum dtensor_dtype dtype);

/* The accumulator type: the one in which sums over ranks do not overflow or
 * lose digits.  For f32, f64, bool and complex types it is the type itself.
 */
enum dtensor_dtype dtn_dtype_wide(enum dtensor_dtype dtype);

/* Bytes of an element; also of DTN_I128. */
size_t dtn_dtype_size(enum dtensor_dtype dtype);

/* Does this reduction exist for this type?  See enum dtensor_redop. */
bool dtn_redop_ok(enum dtensor_redop op, enum dtensor_dtype dtype);

/* Reductions made at run time have numbers from DTN_MADE_FIRST on; those with a
 * function of the caller's have odd ones.  The kind of a reduction is one of
 * the built-in ones, or one of these two, which also have names.
 */
enum { DTN_MADE_FIRST = 0x10000, DTN_MADE_USER = 1 };
enum { DTN_REDOP_PREMUL = DTENSOR_NREDOPS, DTN_REDOP_USER, DTN_NREDOPS };
int dtn_redop_kind(enum dtensor_redop op);

/* Their names in PyTorch: "f8e4m3fn", "b8", "product".  Static strings. */
const char *dtn_dtype_torch(enum dtensor_dtype dtype);
const char *dtn_redop_torch(enum dtensor_redop op);

/* Read or write element `i` of an array as a double.  Integers are rounded
 * toward zero and clamped; bool is value != 0; a complex number is its real
 * part, and its imaginary part is written as 0.  For slow paths: fills, checks,
 * printing.
 */
double dtn_load(enum dtensor_dtype dtype, const void *array, size_t i);
void dtn_store(enum dtensor_dtype dtype, void *array, size_t i, double value);

/* Element `i` of an array of integers or bool, exactly.  u64 keeps its bits. */
int64_t dtn_load_int(enum dtensor_dtype dtype, const void *array, size_t i);
void dtn_store_int(enum dtensor_dtype dtype, void *array, size_t i,
                   int64_t value);

#endif

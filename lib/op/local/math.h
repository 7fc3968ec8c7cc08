/* math.h - operators that lib/math computes, on the parts of one rank */
#ifndef DTN_OP_LOCAL_MATH_H
#define DTN_OP_LOCAL_MATH_H

#include "op/local/local.h"

/* Element by element; `which` of POINTWISE is of enum dtn_pointwise. */
dtn_local_f dtn_local_pointwise, dtn_local_cast, dtn_local_where;
dtn_local_takes_f dtn_takes_pointwise;

/* Reductions; `which` is of enum dtn_reduction_kind.  EXTREME: the largest
 * element (`which` 1) or the least, and where it is; PLACE: only where.
 */
dtn_local_f dtn_local_reduce, dtn_local_extreme, dtn_local_place;
dtn_local_work_f dtn_work_extreme;
dtn_local_takes_f dtn_takes_reduction;

/* Elements in order; `which` is of enum dtn_order_kind. */
enum dtn_order_kind { DTN_ORDER_SORT, DTN_ORDER_TOP, DTN_ORDER_MEDIAN,
                      DTN_ORDER_KTH, DTN_ORDER_MODE };
dtn_local_f dtn_local_order;
dtn_local_work_f dtn_work_order;

/* Products; `which` is of enum dtn_product. */
enum dtn_product { DTN_PRODUCT_MATMUL, DTN_PRODUCT_ADDMM, DTN_PRODUCT_LINEAR,
                   DTN_PRODUCT_MV, DTN_PRODUCT_DOT, DTN_PRODUCT_WEIGHT,
                   DTN_PRODUCT_NT, DTN_PRODUCT_TN };
dtn_local_f dtn_local_product;
dtn_local_work_f dtn_work_product, dtn_work_reduce;

#endif

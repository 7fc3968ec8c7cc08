/* read.h - numbers and words of the command line */
#ifndef BENCH_READ_H
#define BENCH_READ_H

#include "dtensor.h"

#include <stdbool.h>

#define READ_BIG (INT64_C(1) << 50)   /* larger numbers are refused           */

enum read_unit {
    READ_COUNT,                   /* none                                     */
    READ_SIZE,                    /* K, M, G: powers of 1024                  */
    READ_TIME,                    /* us, ms, s, min: in ns                    */
    READ_PERCENT                  /* %, or none                               */
};

/* false: it is no such number. */
bool read_number(const char *text, enum read_unit unit, int64_t *valuep);

/* Digits; *restp is what follows.  false: none, or too many. */
bool read_digits(const char *text, int64_t *valuep, const char **restp);

/* Ours or those of others, or "all", which is DTENSOR_NDTYPES, _NREDOPS.
 * false: *err says why.
 */
bool read_dtype(const char *text, int64_t *valuep, struct dtensor_error *err);
bool read_redop(const char *text, int64_t *valuep, struct dtensor_error *err);

/* "1000x1000" to 1000, 1000; how many numbers, or 0 when it is none such. */
int read_shape(const char *text, int64_t shape[DTENSOR_MAX_DIMS]);

#endif

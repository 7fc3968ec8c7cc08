/* counted.h - what the counters say, and what they may count */
#ifndef TESTS_DEBUG_COUNTED_H
#define TESTS_DEBUG_COUNTED_H

#include "dtensor.h"

#include <stdint.h>

/* Calls of a kind; `scope` NULL: in all scopes. */
uint64_t counted(const char *scope, enum dtensor_direction direction, int kind);

/* A tensor of rows x 8 f64. */
struct dtensor *zeros(const char *placements, int64_t rows);

#endif

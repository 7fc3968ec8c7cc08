/* numbers.h - arrays of numbers in memory of both kinds, jobs over two wires */
#ifndef TESTS_COLL_NUMBERS_H
#define TESTS_COLL_NUMBERS_H

#include "dtensor.h"
#include "tests/support/ranks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `count` numbers from `first` on, and room for one more: from dtensor_alloc()
 * or, foreign to the library, from calloc().  Ends the rank if it fails.
 */
int32_t *numbers(struct dtensor_ctx *ctx, size_t count, bool registered,
                 int32_t first);
void numbers_free(struct dtensor_ctx *ctx, int32_t *array, bool registered);

/* Claim that n ranks succeed over shm and over tcp.  `arg` of each rank is not
 * NULL if its memory is to be registered.
 */
void numbers_run(rank_main_f *fn, int n, bool registered, const char *claim);

#endif

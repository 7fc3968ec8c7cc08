/* rand.h - repeatable random numbers for tests (splitmix64)
 *
 * The seed is the environment's TEST_SEED, or the test's own; print it with
 * every claim that depends on it.  How many rounds is decided here, too.
 */
#ifndef TESTS_RAND_H
#define TESTS_RAND_H

#include <stddef.h>
#include <stdint.h>

uint64_t rand_seed(uint64_t otherwise);
uint64_t rand_next(uint64_t *state);

/* 0 .. n-1 */
int rand_below(uint64_t *state, int n);
void rand_bytes(uint64_t *state, void *mem, size_t size);

/* As many rounds as usual, or the percentage of them in DTN_TEST_ROUNDS: for a
 * machine that is slow, such as an emulated one.
 */
int rounds_of(int usual);

#endif

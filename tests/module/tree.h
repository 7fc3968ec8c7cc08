/* tree.h - modules whose parameters are whole numbers
 *
 * Sums of whole numbers are exact, so that a module that is spread over ranks
 * has to give the bits of the same module on whole tensors.
 */
#ifndef TESTS_MODULE_TREE_H
#define TESTS_MODULE_TREE_H

#include "dtensor.h"
#include "tests/support/job.h"

#include <stdbool.h>
#include <stdint.h>

enum { WORLD = 4, LEAVES = 40 };

extern struct job *job;                      /* this rank                     */
extern const struct dtensor_mesh *world;     /* one dimension of 4, on which  */
                                             /* tensors are made              */

/* Steps of a training: those of DTN_TEST_STEPS, or a few. */
int tree_steps(int few);

/* Run it as 4 ranks. */
bool tree_ranks(void (*run)(void));

/* The same; rank `killed` kills itself, and the others end well. */
bool tree_ranks_but(int killed, void (*run)(void));

/* Whole numbers from -3 to 3; or of DTENSOR_I64, from 0 to 7. */
struct dtensor *tensor(enum dtensor_dtype dtype, int ndim,
                       const int64_t shape[], int seed);
struct dtensor_module *module(struct dtensor_module *parent, const char *name,
                              const char *type);
void param(struct dtensor_module *m, const char *name, int ndim,
           const int64_t shape[], int seed);

/* A sequence of up: linear 8 to 16, act: relu, down: linear 16 to 8. */
struct dtensor_module *mlp(struct dtensor_module *parent, const char *name);

/* A tree with one child "m": linear, embedding, mlp, the same without biases
 * (bare mlp), or a norm.
 */
struct dtensor_module *single(const char *type);

/* How a tensor, or a parameter such as "m.up", "weight" lies. */
const char *placement(const struct dtensor *t, char text[80]);
const char *lies(struct dtensor_module *top, const char *path,
                 const char *name, char text[80]);

/* What the hooks of styles move, seen by hooks before and behind them: call the
 * first before dtensor_parallelize(), the second after it.
 */
struct moves {
    int gathered, reduced, scattered, other; /* collectives                   */
};
extern struct moves moved;
void notes_before(struct dtensor_module *top);
void notes_behind(struct dtensor_module *top);

/* What this rank called after its first `before` calls, at most 16 of them:
 * all-gathers, allreduces and reduce-scatters, as "AG AR RS".
 */
void calls_count(uint64_t before, char counts[40]);

/* Let the tape watch all parameters below a module: they are `leaves` then. */
struct leaves {
    struct dtensor *t[LEAVES];
    int n;
};
extern struct leaves leaves;
void tree_watch(struct dtensor_module *top, struct dtensor_tape *tape);

/* All elements must be equal. */
void same(const struct dtensor *a, const struct dtensor *b, const char *what);

#endif

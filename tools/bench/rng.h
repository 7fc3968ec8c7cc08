/* rng.h - the parts of dtensor-bench rng
 *
 * rng_options.c  the command line
 * rng.c          printing values, and measuring
 */
#ifndef RNG_H
#define RNG_H

#include "dtensor.h"

#include <stdbool.h>

/* A distribution. */
struct rng_dist {
    const char *name;             /* as on the command line                   */
    int nparams;                  /* number of parameters                     */
    bool whole;                   /* its parameters must be whole             */
    double param[4];              /* default parameters                       */
};
extern const struct rng_dist rng_dists[];
extern const int rng_ndists;

struct rng_options {
    int64_t print;                /* values to print; 0: measure              */
    int64_t offset;               /* of the generator, in numbers             */
    int64_t rank;                 /* whose part is printed                    */
    int64_t bytes;                /* of the buffer to measure with            */
    int64_t iters;                /* how often to measure                     */
    uint64_t seed;                /* of the generator                         */
    const struct rng_dist *dist;  /* distribution                             */
    double param[4];              /* its parameters                           */
    int64_t whole[4];             /* the same, for integers                   */
    enum dtensor_dtype dtype;     /* type of an element                       */
    struct dtensor_random_rule rule;       /* tracker, fill and theirs        */
    const char *mesh;             /* --mesh; NULL: one rank                   */
    const char *placements;       /* --placements; NULL: S(0)                 */
    const char *shape;            /* --shape; NULL: `print` elements          */
    int mesh_ndim;                /* dimensions of the mesh                   */
    int mesh_size[DTENSOR_MAX_DIMS];       /* ranks along each                */
    /* names of the mesh dimensions, "dp,tp" */
    char mesh_names[DTENSOR_MAX_DIMS * (DTENSOR_NAME_MAX + 1)];
    int nranks;                   /* ranks of the mesh                        */
    int ndim;                     /* dimensions of the tensor                 */
    int64_t sizes[DTENSOR_MAX_DIMS];       /* its global shape                */
    bool only;                    /* measure `dist` only                      */
    bool help;                    /* print the help, and end                  */
};

/* false: *why says in a line what is wrong with it. */
bool rng_options_parse(struct rng_options *opt, int argc, char *argv[],
                       char *why, size_t why_size);
void rng_options_help(FILE *stream);

const char *rng_tracker_word(enum dtensor_tracker tracker);
const char *rng_fill_word(enum dtensor_fill fill);

/* `dtensor-bench rng ...`, from argv[0] "rng" on; returns the exit code. */
int rng_main(int argc, char *argv[]);

#endif

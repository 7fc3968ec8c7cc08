/* rng.h - the parts of dtensor-bench rng
 *
 * rng_options.c  the command line
 * rng.c          printing values, and measuring
 */
#ifndef RNG_H
#define RNG_H

#include "tools/bench/bench.h"

/* A distribution, and its numbers when none are given. */
struct rng_dist {
    const char *name;
    int nparams;
    bool whole;                   /* its numbers must be whole                */
    double param[4];
};
extern const struct rng_dist rng_dists[];
extern const int rng_ndists;

struct rng_options {
    int64_t print, offset, rank, bytes, iters;
    uint64_t seed;
    const struct rng_dist *dist;
    double param[4];
    int64_t whole[4];             /* the same, for integers                   */
    enum dtensor_dtype dtype;
    struct dtensor_random_rule rule;
    const char *mesh, *placements, *shape;
    int mesh_ndim, mesh_size[DTENSOR_MAX_DIMS];
    char mesh_names[DTENSOR_MAX_DIMS * (DTENSOR_NAME_MAX + 1)];
    int nranks;
    int ndim;
    int64_t sizes[DTENSOR_MAX_DIMS];
    bool only;                    /* measure `dist` only                      */
    bool help;
};

/* false: *why says in a line what is wrong with it. */
bool rng_options_parse(struct rng_options *opt, int argc, char *argv[],
                       char *why, size_t why_size);
void rng_options_help(FILE *stream);

const char *rng_tracker_word(enum dtensor_tracker tracker);
const char *rng_fill_word(enum dtensor_fill fill);

#endif

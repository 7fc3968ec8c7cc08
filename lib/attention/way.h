/* way.h - how attention is computed on a sharded sequence */
#ifndef DTN_ATTENTION_WAY_H
#define DTN_ATTENTION_WAY_H

#include "dtensor.h"

/* The way that a call takes.  All of it is the same on all ranks but `me`. */
struct dtn_attention_way {
    enum dtensor_attention_method method;        /* never AUTO                */
    int mesh_dim;                 /* that shards the sequence;                */
                                  /* -1: none, or not so that it helps        */
    const struct dtensor_mesh *ring;             /* this rank's ranks along   */
                                  /* it, or NULL                              */
    int n, me;                    /* their number, this rank's place; -1:     */
                                  /* outside the mesh                         */
    struct dtensor_spec out, lse; /* of the results                           */
    double ns[DTENSOR_ATTENTION_METHODS];        /* predicted; INFINITY: no   */
    const char *why;              /* this method                              */
};

/* Find it for q, k and v of these specs.
 * Errors: EINVAL  as dtensor_attention();  ENOMEM
 */
int dtn_attention_way(const struct dtensor_spec in[3],
                      const struct dtensor_attention_options *options,
                      struct dtn_attention_way *way,
                      struct dtensor_error *err);

#endif

/* group.h - the ranks of one collective */
#ifndef DTN_JOB_GROUP_H
#define DTN_JOB_GROUP_H

#include <stdint.h>

struct dtensor_ctx;

/* The ranks of one collective, in order. */
struct dtn_group {
    struct dtensor_ctx *ctx;
    int n;
    int me;                       /* own position, -1: outside                 */
    const int *ranks;             /* [n] world ranks                           */
    uint64_t hash;                /* of n and ranks                            */
    uint32_t *calls;              /* collectives called over them, also those  */
                                  /* refused: the same on all when they call   */
};

#endif

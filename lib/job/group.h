/* group.h - the ranks of one collective */
#ifndef DTN_JOB_GROUP_H
#define DTN_JOB_GROUP_H

#include <stdbool.h>
#include <stdint.h>

struct dtensor_ctx;
struct dtensor_error;
struct dtn_ranks;

/* The ranks of one collective, in order. */
struct dtn_group {
    struct dtensor_ctx *ctx;      /* the context of the ranks                 */
    int n;                        /* number of ranks                          */
    int me;                       /* own position, -1: outside                */
    const struct dtn_ranks *ranks;     /* n ranks of the world; the address   */
                                  /* identifies them                          */
    uint64_t hash;                /* of n and ranks                           */
    uint32_t *calls;              /* collectives called over them, also those */
                                  /* refused: the same on all when they call  */
    bool on_device;               /* tensors of its mesh are on devices       */
};

/* This rank alone fails in a call of the group, and the others may wait in it:
 * send them the failure, copy *why to *err, return rc.   Never blocks.
 */
int dtn_call_give_up(const struct dtn_group *group, int rc,
                     const struct dtensor_error *why,
                     struct dtensor_error *err);

#endif

/* host_costs.h - what signals and bytes cost two ranks of one host */
#ifndef TESTS_COLL_HOST_COSTS_H
#define TESTS_COLL_HOST_COSTS_H

#include "sched/caches.h"

#include <stdbool.h>
#include <stddef.h>

struct dtensor_ctx;
struct dtensor_mesh;

/* What is used. */
struct host_areas {
    const struct dtensor_mesh *mesh;     /* of the two ranks                  */
    int me;                       /* 0 or 1                                   */
    void *in, *out;               /* memory of this rank                      */
    unsigned char *src, *dst;     /* in and out of rank 0, as this rank sees  */
                                  /* them                                     */
    unsigned char *other;         /* of this rank: fills the shared cache     */
    size_t cache_bytes;           /* of a core                                */
    size_t shared_bytes;          /* of all cores                             */
};

struct host_costs {
    struct host_areas areas;      /* where they are measured                  */
    double start_ns;              /* of a call, before its first step         */
    double post_ns;               /* to post a signal                         */
    double latency_ns;            /* from then until the peer has taken it    */
    double early_ns[DTN_CACHE_SIZES];  /* less for the first signal of a call */
                                  /* of so many bytes, if the peer began to   */
                                  /* wait later: what the program touches     */
                                  /* before the call pushes lines of the      */
                                  /* library out of the cache                 */
    double crossed_ns;            /* more for it if the peer sends one, too   */
    struct dtn_cache_costs caches; /* of bytes                                */
};

/* Begin, with memory of dtensor_alloc() of at least 2 MiB each.
 * Collective: yes, two ranks.
 */
void host_costs_begin(const struct dtensor_mesh *mesh, struct dtensor_ctx *ctx,
                      void *in, void *out, struct host_costs *costs);
void host_costs_end(struct dtensor_ctx *ctx, struct host_costs *costs);

/* Measure them.   Collective: yes */
void host_costs_measure(struct host_costs *costs);

/* Less for the first signal of a call of so many bytes. */
double host_costs_early(const struct host_costs *costs, size_t bytes);

/* Does a signal take as long as then, give or take a third?  Else the two CPUs
 * of a virtual machine have moved closer or apart.   Collective: yes
 */
bool host_costs_hold(const struct host_costs *costs);

#endif

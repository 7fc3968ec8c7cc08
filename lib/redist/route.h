/* route.h - private to the spec room: ways from one spec to another */
#ifndef DTN_ROUTE_H
#define DTN_ROUTE_H

#include "redist/phases.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

struct dtn_cost;

/* Two passes over the mesh dimensions, each step changing one. */
#define DTN_HOPS_MAX (2 * DTENSOR_MAX_DIMS)
#define DTN_ROUTE_PHASES_MAX (DTN_HOPS_MAX * DTN_MAX_PHASES)

/* A way: the placements after each hop, of which the last are the target's.
 * Each hop is carried out by dtn_phases().
 */
struct dtn_route {
    int nhops;
    struct dtensor_placement hop[DTN_HOPS_MAX][DTENSOR_MAX_DIMS];
    double ns;                    /* predicted, of the slowest rank            */
    double scratch;               /* bytes of the largest two results between  */
                                  /* exchanges, on the rank that has most      */
    int nphases;
    int nsums;                    /* phases that add terms, and round          */
    const char *refused;          /* why there is no such way; NULL: there is  */
    bool slower;                  /* than another: the search stopped          */
};

/* All candidates, and the one to take. */
struct dtn_routes {
    struct dtn_route route[DTENSOR_NROUTES];     /* AUTO stays empty           */
    enum dtensor_route chosen;
    const char *why;
};

/* Find all ways from src to dst, congruent and checked, and choose: the one
 * asked for, or with AUTO the fastest whose scratch is within the bound; direct
 * needs none.  Where that would round more often than direct, it is not taken.
 * Every way leaves the terms that direct leaves.  The same on every rank.
 *
 * Errors: EINVAL  the one asked for does not exist: says why
 */
int dtn_routes_find(const struct dtn_cost *cost, const struct dtensor_spec *src,
                    const struct dtensor_spec *dst, enum dtensor_route want,
                    uint64_t max_scratch, struct dtn_routes *routes,
                    struct dtensor_error *err);

/* The phases of a way, in order; returns how many. */
int dtn_route_phases(const struct dtn_route *route,
                     const struct dtensor_spec *src,
                     const struct dtensor_spec *dst,
                     struct dtn_phase phase[DTN_ROUTE_PHASES_MAX]);

/* min_cost.c: the cheapest way that changes one mesh dimension at a time; `slower`
 * when it would cost `limit_ns` or more, which HUGE_VAL never is.
 */
void dtn_route_min_cost(const struct dtn_cost *cost,
                        const struct dtensor_spec *src,
                        const struct dtensor_spec *dst, double limit_ns,
                        struct dtn_route *route);

const char *dtn_route_name(enum dtensor_route kind);

#endif

/* route.h - routes from one spec to another; private to this room */
#ifndef DTN_REDIST_ROUTE_H
#define DTN_REDIST_ROUTE_H

#include "redist/phases.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

struct dtn_cost;

/* Two passes over the mesh dimensions; each step changes one. */
#define DTN_HOPS_MAX (2 * DTENSOR_MAX_DIMS)
#define DTN_ROUTE_PHASES_MAX (DTN_HOPS_MAX * DTN_MAX_PHASES)

/* A route: the placements after each hop; those after the last hop are the
 * target's.  dtn_phases() gives the phases of each hop.
 */
struct dtn_route {
    int nhops;                    /* 0: nothing changes                       */
    struct dtensor_placement hop[DTN_HOPS_MAX][DTENSOR_MAX_DIMS];  /* [nhops] */
    double ns;                    /* predicted, of the slowest rank           */
    /* Only of the route that is chosen, or wanted: */
    double scratch;               /* bytes of the largest two results between */
                                  /* exchanges, on the rank that has most     */
    int nphases;                  /* of all hops                              */
    int nsums;                    /* phases that add terms, and so round      */
    const char *refused;          /* why there is no such route, or NULL      */
    bool slower;                  /* than another: the search stopped early   */
};

/* All routes, and the choice. */
struct dtn_routes {
    struct dtn_route route[DTENSOR_NROUTES];     /* AUTO stays empty          */
    enum dtensor_route chosen;    /* the one to take                          */
    const char *why;              /* it was chosen                            */
};

/* Find all routes from src to dst, which are checked and describe one tensor,
 * and choose one.  This is the wanted route; for AUTO it is the fastest one
 * whose scratch is within the limit (direct needs none).  A route that rounds
 * more often than direct is not taken.  Every route leaves the same terms as
 * direct.  The choice is the same on every rank.
 *
 * Errors: EINVAL  the wanted route does not exist; the text says why
 */
int dtn_routes_find(const struct dtn_cost *cost, const struct dtensor_spec *src,
                    const struct dtensor_spec *dst, enum dtensor_route want,
                    uint64_t max_scratch, struct dtn_routes *routes,
                    struct dtensor_error *err);

/* What the route takes that dtn_routes_find() chooses, in ns; HUGE_VAL: it does
 * not exist.  If it takes the limit or more, the result may be any number from
 * the limit on.
 */
double dtn_route_ns(const struct dtn_cost *cost, const struct dtensor_spec *src,
                    const struct dtensor_spec *dst, enum dtensor_route want,
                    uint64_t max_scratch, double limit_ns);

/* The phases of a route, in order; returns how many. */
int dtn_route_phases(const struct dtn_route *route,
                     const struct dtensor_spec *src,
                     const struct dtensor_spec *dst,
                     struct dtn_phase phase[DTN_ROUTE_PHASES_MAX]);

/* route.c: the hops of a route, into one that has none; and what applies to all
 * but direct: may it be taken, and must some of its hops be one?
 */
void dtn_route_direct(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, struct dtn_route *route);
void dtn_route_greedy(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, struct dtn_route *route);
void dtn_route_merged(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst,
                      const struct dtn_route *greedy, struct dtn_route *route);
void dtn_route_check(const struct dtensor_spec *src,
                     const struct dtensor_spec *dst, struct dtn_route *route);

/* min_cost.c: the cheapest route that changes one mesh dimension at a time;
 * `slower` if it costs `limit_ns` (HUGE_VAL: no limit) or more.
 */
void dtn_route_min_cost(const struct dtn_cost *cost,
                        const struct dtensor_spec *src,
                        const struct dtensor_spec *dst, double limit_ns,
                        struct dtn_route *route);

const char *dtn_route_name(enum dtensor_route kind);

#endif

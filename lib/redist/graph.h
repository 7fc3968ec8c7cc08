/* graph.h - the memory of a search for the cheapest route (min_cost.c) */
#ifndef DTN_REDIST_GRAPH_H
#define DTN_REDIST_GRAPH_H

#include "dtensor.h"

#include <stdbool.h>

struct dtn_cost;

enum {
    DTN_PLACES_MAX = 729,         /* 3 choices along 6 mesh dimensions        */
    DTN_CHOICES_MAX = 3 + 2 * DTENSOR_MAX_DIMS
};

struct dtn_route_graph {
    const struct dtn_cost *cost;  /* of changes                               */
    const struct dtensor_spec *src;            /* before                      */
    const struct dtensor_spec *spec;           /* the target                  */
    int ndim;                     /* of the mesh                              */
    int n[DTENSOR_MAX_DIMS];      /* choices along each dimension             */
    struct dtensor_placement choice[DTENSOR_MAX_DIMS][DTN_CHOICES_MAX];
                                  /* these                                    */
    int nplaces, goal;            /* nodes; the target's number               */
    bool chosen;                  /* some lengths were chosen                 */
    double limit_ns;              /* paths as long are of no use              */
    double ns[DTN_PLACES_MAX];    /* from the source; < 0: unknown            */
    double left[DTN_PLACES_MAX];  /* to the target, at least; < 0: unknown    */
    short from[DTN_PLACES_MAX];   /* the place before                         */
    bool done[DTN_PLACES_MAX];    /* its distance is final                    */
    short open[DTN_PLACES_MAX];   /* that are reached, not done               */
    int nopen;                    /* entries                                  */
};

#endif

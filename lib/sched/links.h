/* links.h - what a weight costs over the links inside and between hosts */
#ifndef DTN_SCHED_LINKS_H
#define DTN_SCHED_LINKS_H

#include "dtensor.h"

#include <stdbool.h>

struct dtn_model;
struct dtn_units;
struct dtn_weight;

/* Is each message a put and a signal, too long to go with the signal? */
bool dtn_load_puts(const struct dtn_model *model,
                   const struct dtn_weight *weight,
                   const struct dtn_units *units);

/* Add the cost of a weight over n ranks; `sharing` of them send through one
 * network device at the same time, 0: all are on one host.  A byte inside a
 * host costs `stretch` times what it costs in the caches.
 */
void dtn_load_add(const struct dtn_model *model,
                  const struct dtn_weight *weight, int n, double whole,
                  double sharing, double stretch, double load[DTENSOR_NCOSTS]);

/* Bytes through the device before the first chunk is at the end of a tree. */
double dtn_load_first(const struct dtn_model *model,
                      const struct dtn_weight *weight, int n, double whole,
                      double sharing);

/* Add it over all n ranks of several hosts. */
void dtn_load_hosts(const struct dtn_model *model,
                    const struct dtn_weight *weight, int n, double whole,
                    double stretch, double load[DTENSOR_NCOSTS]);

/* Take from the bytes between hosts those that move while other ranks of the
 * host wait, if `sharing` ranks send in shifts.  `filled` is the share of the
 * waits after which more bytes come.
 */
void dtn_load_turns(const struct dtn_model *model,
                    const struct dtn_weight *weight, double sharing,
                    double filled, double load[DTENSOR_NCOSTS]);

#endif

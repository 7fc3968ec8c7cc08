/* rails.h - private to the emitters: a flat algorithm among the hosts */
#ifndef DTN_RAILS_H
#define DTN_RAILS_H

#include "sched/call.h"
#include "sched/emit/hierarchy.h"
#include "sched/sched.h"

/* The ranks of a rail, one on each host, run a collective among them by an
 * algorithm that knows no hosts.
 */
struct dtn_rail {
    const struct dtn_hierarchy *h;          /* its hosts and this rank        */
    struct dtn_sched flat;        /* its schedule; positions are hosts        */
    int next;                     /* first step that is not appended yet      */
    struct dtn_span place[DTN_NSPACES];     /* where its spaces begin here;   */
                                  /* the rank is unused                       */
    size_t *counts;               /* and starts, of its call, or NULL         */
};

/* Each space is in its own place: change what is elsewhere. */
struct dtn_rail dtn_rail_make(const struct dtn_hierarchy *h);

/* The call among the hosts: `count` elements, no counts. */
struct dtn_call dtn_rail_call(const struct dtn_hierarchy *h, size_t count);

/* Blocks of the hosts: the share of this rail, if not all are as long. */
void dtn_rail_blocks(struct dtn_rail *rail, struct dtn_call *call);

/* The same of an all-to-all: what each host has for the share of each other. */
void dtn_rail_pairs(struct dtn_rail *rail, struct dtn_call *call);

/* Make the schedule of a call among the hosts, and append its first READY: they
 * need not wait for what is done inside the host.  Places that peers access are
 * the same on all hosts.
 */
void dtn_rail_open(struct dtn_rail *rail, const struct dtn_call *call,
                   dtn_emit_f *emit);

/* Append the other steps. */
void dtn_rail_run(struct dtn_rail *rail);

#endif

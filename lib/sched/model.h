/* model.h - from what an emitter takes of a rank to nanoseconds */
#ifndef DTN_SCHED_MODEL_H
#define DTN_SCHED_MODEL_H

#include "sched/call.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_call;
struct dtn_emitter;
struct dtn_group;
struct dtn_tuning;

/* All that a cost depends on besides the call: the same on every rank. */
struct dtn_model {
    enum dtn_reach reach;
    const struct dtn_tuning *tuning;     /* [DTN_NTUNED], or NULL              */
    double ns[DTENSOR_NCOSTS];    /* of one hop, message, byte: model.c says   */
                                  /* where each comes from                     */
    const int *host;              /* [n] of each position; NULL: all on one    */
    int hosts;                    /* of the group                              */
    int locals;                   /* ranks on the host that has most           */
    bool uneven;                  /* another host has fewer                    */
    double sharers;               /* of `locals`, for one network device       */
    double max_scratch;           /* bytes of a rank for one call              */
    double cache_bytes;           /* of a call; beyond them a byte within a    */
    double uncached;              /* host costs so many times as much          */
    double crowding;              /* ranks for each CPU, at least 1            */
    double congestion;            /* a byte between hosts costs so much more   */
                                  /* for each doubling of those that send at   */
                                  /* once to one                               */
};

/* The constants of a cluster: [tuning], or else the built-in ones. */
void dtn_model_costs(const struct dtensor_cluster *cluster,
                     struct dtn_model *model);

/* How many network devices the ranks of a host have between them. */
int dtn_model_devices(const struct dtensor_cluster *cluster, int host);

/* Ranks for each CPU of the fullest host: they share its time. */
void dtn_model_crowd(struct dtn_model *model, double crowding);

/* What a byte of such a call within a host costs, in prices of one in a cache. */
double dtn_model_cache_miss_factor(const struct dtn_model *model, double whole);

/* The time of a call by an emitter on the busiest rank, in nanoseconds.  load()
 * uses only what all ranks know, so it is the same on all of them, and they
 * choose by it.  told() also uses what only this rank knows: its own sizes.
 */
void dtn_model_told(const struct dtn_model *model, const struct dtn_call *call,
                    const struct dtn_emitter *emitter,
                    double load[DTENSOR_NCOSTS]);
void dtn_model_load(const struct dtn_model *model, const struct dtn_call *call,
                    const struct dtn_emitter *emitter,
                    double load[DTENSOR_NCOSTS]);
double dtn_model_ns(const struct dtn_model *model,
                    const double load[DTENSOR_NCOSTS]);

/* The most scratch that a rank needs for it, in bytes. */
double dtn_model_scratch(const struct dtn_model *model,
                         const struct dtn_call *call,
                         const struct dtn_emitter *emitter);

#endif

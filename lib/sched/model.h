/* model.h - the predicted time of a call */
#ifndef DTN_SCHED_MODEL_H
#define DTN_SCHED_MODEL_H

#include "sched/call.h"
#include "sched/crossings.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_call;
struct dtn_emitter;
struct dtn_group;
struct dtn_tuning;

/* All that the cost of a call depends on, besides the call.  It is the same on
 * every rank.
 */
struct dtn_model {
    enum dtn_reach reach;         /* which ranks load from each other         */
    const struct dtn_tuning *tuning;     /* [DTN_NTUNED], or NULL             */
    double ns[DTENSOR_NCOSTS];    /* cost of one hop, message or byte in ns:  */
                                  /* model.c says where each comes from       */
    const int *host;              /* [n] host of each position; NULL: all on  */
                                  /* one host                                 */
    int hosts;                    /* hosts of the group                       */
    int locals;                   /* ranks on the host with the most ranks    */
    bool uneven;                  /* some host has fewer ranks                */
    int rails;                    /* ranks on the host with the fewest, if    */
                                  /* uneven                                   */
    struct dtn_crossings crossings; /* between hosts: edges, levels if uneven */
    double ranks_per_device;      /* ranks of a host that share one network   */
                                  /* device                                   */
    size_t eager_bytes;           /* the longest eager message between its    */
                                  /* ranks; 0 means DTN_EAGER_MAX             */
    double max_scratch;           /* limit of the scratch of one call on a    */
                                  /* rank, in bytes                           */
    double cache_bytes;           /* cache capacity for a call in bytes       */
    double cache_miss_factor;     /* cost of a byte within a host above       */
                                  /* cache_bytes, as a multiple of one below  */
    double ranks_per_cpu;         /* ranks per CPU, at least 1; above 1: the  */
                                  /* host is oversubscribed                   */
    double incast_factor;         /* incast: relative extra cost of a byte    */
                                  /* between hosts for each doubling of the   */
                                  /* ranks that send to one rank at once      */
};

/* Ranks of a host that send to other hosts in a hierarchy. */
static inline int dtn_model_rails(const struct dtn_model *model)
{
    return model->uneven ? model->rails : model->locals;
}

/* The longest eager message, in bytes. */
static inline double dtn_model_eager(const struct dtn_model *model)
{
    return (double)dtn_eager_bytes(model->eager_bytes);
}

/* The constants of a cluster: [tuning], else the built-in ones. */
void dtn_model_costs(const struct dtensor_cluster *cluster,
                     struct dtn_model *model);

/* The number of network devices that the ranks of a host use. */
int dtn_model_devices(const struct dtensor_cluster *cluster, int host);

/* Set the ranks per CPU of the most oversubscribed host: they share CPU time.
 */
void dtn_model_oversubscribe(struct dtn_model *model, double ranks_per_cpu);

/* Cost of a byte of this call within a host, relative to a byte in a cache. */
double dtn_model_cache_miss_factor(const struct dtn_model *model, double whole);

/* The cost of a call by an emitter on the busiest rank, by kind of cost.
 * load() uses only what all ranks know; the result is the same on all ranks, so
 * ranks choose by it.  told() also uses the private counts of this rank.  ns()
 * turns a load into nanoseconds.
 */
void dtn_model_own_load(const struct dtn_model *model,
                        const struct dtn_call *call,
                        const struct dtn_emitter *emitter,
                        double load[DTENSOR_NCOSTS]);
void dtn_model_load(const struct dtn_model *model, const struct dtn_call *call,
                    const struct dtn_emitter *emitter,
                    double load[DTENSOR_NCOSTS]);
double dtn_model_ns(const struct dtn_model *model,
                    const double load[DTENSOR_NCOSTS]);

/* The largest scratch of a rank for this call, in bytes. */
double dtn_model_scratch(const struct dtn_model *model,
                         const struct dtn_call *call,
                         const struct dtn_emitter *emitter);

#endif

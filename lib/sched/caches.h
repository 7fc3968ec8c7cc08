/* caches.h - what bytes inside a host cost, by where their cache lines are
 *
 * The time of a copy depends on who used its lines last.  On two cores of a
 * Zen 4 a copy of 64 KiB takes 1.2 us if this core has all lines, 1.5 us if
 * another core has the source, and 7.5 us if this core wrote the destination
 * and another one has read it since.  A simulation that is given such costs
 * follows each piece of memory through the schedules: who wrote it last, who
 * read it since, and how much each of them has used since.
 */
#ifndef DTN_SCHED_CACHES_H
#define DTN_SCHED_CACHES_H

#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

/* Where a line is, for the rank that loads or stores it. */
enum dtn_lines {
    DTN_LINES_HERE,               /* in its own cache                         */
    DTN_LINES_THERE,              /* in that of another, which wrote it       */
    DTN_LINES_READ,               /* it wrote, another has read; or the       */
                                  /* writer has, once they had left its cache */
    DTN_LINES_AWAY,               /* and from there on: the same, but other   */
    DTN_LINES_AWAY_THERE,         /* memory has taken their places in the     */
    DTN_LINES_AWAY_READ,          /* caches of both                           */
    DTN_NLINES_STATES
};

/* Costs of bytes, in ns, of 64, 512, 4 Ki, 32 Ki, 256 Ki and 2 MiB. */
#define DTN_CACHE_SIZES 6
size_t dtn_cache_size(int index);

struct dtn_cache_costs {
    double capacity;              /* bytes of the cache of a rank             */
    double shared;                /* of the one that all ranks share          */
    double ready_ns[3];           /* more to take a READY than another        */
                                  /* signal, if it names so many buffers      */
    double beyond_ns;             /* more for a byte that is loaded or stored */
                                  /* if it has left the shared cache          */
    double copy[DTN_CACHE_SIZES]; /* a copy, all lines here                   */
    double fold[DTN_CACHE_SIZES]; /* a reduction of two terms, all lines here */
    double slot[DTN_CACHE_SIZES]; /* to take data from a signal that was just */
                                  /* sent, more than 64 bytes take            */
    double load[DTN_NLINES_STATES][DTN_CACHE_SIZES];  /* more, if a source is */
                                                      /* elsewhere            */
    double store[DTN_NLINES_STATES][DTN_CACHE_SIZES]; /* more, if the         */
                                                      /* destination is       */
    double both_load[DTN_CACHE_SIZES];   /* still more, if the other does so  */
    double both_store[DTN_CACHE_SIZES];  /* at the same time                  */
};

/* The caches of some ranks of one host, and the memory of these ranks. */
struct dtn_caches;

/* Nobody has used any memory yet.  _destroy(NULL) does nothing.
 * Owns: the caller; *costs is copied.   Errors: ENOMEM
 */
int dtn_caches_create(const struct dtn_cache_costs *costs, int ranks,
                      struct dtn_caches **cachesp, struct dtensor_error *err);
void dtn_caches_destroy(struct dtn_caches *caches);

/* The program of a rank writes, or reads, the first bytes of its space. */
void dtn_caches_touch(struct dtn_caches *caches, int rank,
                      enum dtn_space space, size_t bytes, bool writes);

/* A rank takes the READY of another, which names its buffers and may name a
 * place in one: how much longer that takes than another signal, in ns.
 */
double dtn_caches_ready(struct dtn_caches *caches, int rank, int from,
                        const struct dtn_sched *sched,
                        const struct dtn_step *ready);

/* A rank begins a step that moves bytes, now: the time in ns.  Ranks use their
 * caches at the same time, so steps come in the order in which they begin.
 */
double dtn_caches_step(struct dtn_caches *caches, const struct dtn_sched *sched,
                       const struct dtn_step *step, double now_ns);

/* Did it run out of memory?  Then times are wrong. */
bool dtn_caches_failed(const struct dtn_caches *caches);

#endif

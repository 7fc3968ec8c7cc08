/* trials.h - which method gives peers of the host private memory */
#ifndef DTN_EXEC_TRIALS_H
#define DTN_EXEC_TRIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_exec_peer;
struct dtn_exec_run;

/* A space of this size is not staged as a whole, which doubles its memory. */
#define DTN_STAGED_MAX_BYTES ((size_t)4 << 20)

enum dtn_exec_method {
    DTN_METHOD_STAGED,            /* IN and OUT in bounce buffers             */
    DTN_METHOD_CMA,               /* both by cross-memory attach              */
    DTN_METHOD_NT,                /* IN staged with non-temporal stores       */
    DTN_METHOD_NT_CMA,            /* and OUT by cross-memory attach           */
    DTN_METHOD_TURNS,             /* staged, each run in other cache lines    */
    DTN_METHOD_WINDOW,            /* neither is exposed, see window.c         */
    DTN_NMETHODS
};

struct dtn_exposure {
    bool cma[2];                  /* IN, OUT: by cross-memory attach          */
    bool nt;                      /* IN: with non-temporal stores             */
    bool turns;                   /* in the next part of a bounce buffer      */
};

/* The trials of an executable. */
struct dtn_exec_trials {
    int runs;                     /* with private memory since the trials     */
                                  /* began                                    */
    int tries;                    /* runs of all methods that are tried       */
    int best;                     /* fastest method; -1: not known yet        */
    bool cycled;                  /* all parts of a bounce buffer were used   */
    int64_t took_ns[DTN_NMETHODS];         /* fastest run of each method      */
};

/* Choose the method of a run.  `is_private`: peers cannot map its buffers. */
void dtn_trial_begin(struct dtn_exec_run *run, bool is_private);

/* The run has succeeded. */
void dtn_trial_end(const struct dtn_exec_run *run);

/* tells: the method of a run, for the peers; 0: no buffer is private.  hears: a
 * peer has told its method; if it is a lower rank of the host, the next run
 * uses that.
 */
unsigned dtn_trial_tells(const struct dtn_exec_run *run);
void dtn_trial_hears(struct dtn_exec_run *run, const struct dtn_exec_peer *peer,
                     unsigned told);

/* How the run exposes private memory. */
const struct dtn_exposure *dtn_run_exposure(const struct dtn_exec_run *run);

#endif

/* play.h - simulate the time that schedules take, for 2 ranks or 131,072 */
#ifndef DTN_SCHED_PLAY_H
#define DTN_SCHED_PLAY_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_caches;
struct dtn_model;
struct dtn_noise;
struct dtn_ranks;
struct dtn_sched;

/* What one message costs between two ranks, as LogGP has it: bytes b take
 * post_ns + latency_ns + b * byte_ns + notice_ns from the call of the sender to
 * the return of the receiver.
 */
struct dtn_play_wire {
    double latency_ns;            /* L: from the port to the receiver         */
    double post_ns;               /* o of the sender, for each put and signal */
    double notice_ns;             /* o of the receiver, for each signal taken */
    double gap_ns;                /* g: least time between two messages that  */
                                  /* a port sends, or that it receives        */
    double byte_ns;               /* G: of a port, or of the CPU in a host    */
};

/* The machine.  Inside a host the CPU of the sender or loader moves the bytes;
 * between hosts the port of the host does, and ranks that share it take turns.
 */
struct dtn_play_machine {
    int ranks;                    /* of the world                             */
    const int *host;              /* [ranks]; NULL: rank / per_host           */
    int per_host;                 /* ranks on each host, if host is NULL      */
    int rails;                    /* ports of a host, taken by its ranks in   */
                                  /* turn                                     */
    struct dtn_play_wire near;    /* inside a host                            */
    double early_ns;              /* inside a host: less latency of the first */
                                  /* signal from a peer, if the receiver      */
                                  /* waits since less than a post             */
    double crossed_ns;            /* or more, if the receiver has sent one,   */
                                  /* too                                      */
    struct dtn_play_wire far;     /* between hosts, through one switch        */
    double folded_ns;             /* of a byte of a term that is reduced      */
    double copied_ns;             /* of a byte that is copied                 */
    const char *topology;         /* struct dtensor_machine; NULL: flat       */
    const char *failed;           /* struct dtensor_machine; NULL: none       */
    const struct dtn_noise *noise;        /* interruptions, or NULL           */
    const double *slow;           /* [ranks] how much longer their CPUs take; */
                                  /* NULL: 1                                  */
    struct dtn_caches *caches;    /* of all ranks, on one host: what bytes    */
                                  /* cost there; NULL: the same for all bytes */
};

/* The schedule of one rank into *sched, initialised there. */
typedef int dtn_play_emit_f(void *arg, int position, struct dtn_sched *sched,
                            struct dtensor_error *err);

/* Schedules that run together: those of one call. */
struct dtn_play_job {
    int n;                        /* ranks of the group                       */
    const struct dtn_ranks *ranks;     /* n numbers in the world; NULL:       */
                                  /* position is rank                         */
    double start_ns;              /* when it is called                        */
    double stretch;               /* cost of bytes in a host, folded and      */
                                  /* copied; 0: 1                             */
    int period;                   /* ranks p and p + period do the same, with */
                                  /* their peers shifted likewise: only       */
                                  /* `period` ranks are played.  0: all       */
    dtn_play_emit_f *emit;        /* makes the schedules                      */
    void *arg;                    /* its argument                             */
};

/* What else is wanted of a simulation. */
struct dtn_play_watch {
    dtensor_simulated_f *visit;   /* called for each event by end, or NULL    */
    void *arg;                    /* its argument                             */
    bool path;                    /* the critical path is wanted              */
    bool ends;                    /* the end of each job is wanted            */
};

struct dtn_play_result {
    double ns;                    /* until the last rank is done              */
    int ranks;                    /* that were played                         */
    uint64_t steps;               /* of them                                  */
    uint64_t messages;            /* puts and signals among them              */
    int nlinks;                   /* busiest links, at most one of each level */
    struct dtensor_link_load link[DTENSOR_LINK_LOADS];   /* they              */
    int npath;                    /* events of the critical path              */
    struct dtensor_simulated_event *path; /* from start to end, for free()    */
    double *job_ns;               /* [njobs] when its last rank is done, for  */
                                  /* free(); NULL: not wanted                 */
};

/* Play the jobs together, until all ranks are done.  watch may be NULL.
 * Errors: EINVAL  a rank waits for ever, with rank, peer and step; a period
 *         that does not divide the ranks; too many steps; a topology or a
 *         failed link that is not so, or cuts a host off; noise shorter than
 *         the run;  ENOMEM;  those of emit
 */
int dtn_play(const struct dtn_play_machine *machine,
             const struct dtn_play_job jobs[], int njobs,
             const struct dtn_play_watch *watch,
             struct dtn_play_result *result, struct dtensor_error *err);

void dtn_play_result_fini(struct dtn_play_result *result);

/* After how many ranks the machine repeats; 0: it does not, or its ranks are
 * not in the order of its hosts.   Errors: as dtn_play()
 */
int dtn_play_unit(const struct dtn_play_machine *machine, int *unit,
                  struct dtensor_error *err);

/* Do ranks p and p + period do the same, as far as samples tell?  Then *repeats
 * is true, and the period may be that of the job.   Errors: those of emit
 */
int dtn_play_repeats(const struct dtn_play_job *job, int period, bool *repeats,
                     struct dtensor_error *err);

/* The machine that the predictions of a model are about; host and topology are
 * not set.
 */
void dtn_play_machine_of(const struct dtn_model *model,
                         struct dtn_play_machine *machine);

#endif

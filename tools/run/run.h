/* run.h - the parts of dtensor-run
 *
 * ../dtensor-run.c  the command line, and the guard over the supervisor
 * ranks.c           the supervisor: starts the ranks, and waits until they end
 * bind.c            the CPUs of each rank (--bind)
 * ending.c          how the job ends: signals, failures, deadlines
 * output.c          their output, merged line by line (-l)
 * report.c          which hosts a failed job blames (--json)
 */
#ifndef DTN_RUN_H
#define DTN_RUN_H

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define RUN_MAX_RANKS 1024

/* Exit codes of our own, as timeout(1) and env(1) have them. */
enum { RUN_USAGE = 2, RUN_FAILED = 125, RUN_CANNOT_RUN = 126,
       RUN_NOT_FOUND = 127 };

struct run_options {
    int nranks;                   /* ranks to start                           */
    bool label;                   /* -l: "[rank] " before each line           */
    bool bind;                    /* -b: each rank has CPUs of its own        */
    const char *cluster;          /* NULL: DTN_CLUSTER stays as it is         */
    const char *json;             /* NULL: no report                          */
    int64_t grace_ms;             /* from SIGTERM to SIGKILL                  */
    char **argv;                  /* PROG ARGS..., NULL                       */
};

/* What the guard changes for itself; the ranks get the old values back. */
struct run_before {
    sigset_t mask;                /* blocked signals                          */
    struct rlimit files;          /* limit of open files                      */
    pid_t guard;                  /* the process that the user started        */
};

/* CPUs, up to 8,192 of them: all that Linux can have. */
struct run_cpus {
    cpu_set_t set[8];             /* an array, as CPU_COUNT_S() takes it      */
};

/* One pipe from a rank. */
struct run_stream {
    int fd;                       /* -1: at its end                           */
    int rank;                     /* whose output it is                       */
    int target;                   /* 1 stdout or 2 stderr                     */
    size_t used;                  /* bytes in `line`                          */
    char *line;                   /* text that has no newline yet             */
};

struct run {
    const struct run_options *options;     /* the command line                */
    const struct run_before *before;       /* what the ranks get back         */
    int signals;                  /* signalfd                                 */
    long memory_kills;            /* run_memory_kills() at the start          */
    pid_t *pids;                  /* [nranks], 0: not started or ended        */
    struct run_cpus *cpus;        /* [nranks] with -b, else NULL              */
    int running;                  /* ranks that have not ended                */
    struct run_cause {            /* the first cause of the failure           */
        bool known;               /* there is one                             */
        bool told;                /* it was printed                           */
        int rank;                 /* the rank that failed first               */
        int status;               /* its wait status                          */
        pid_t pid;                /* its process                              */
    } cause;                      /* printed when the job fails               */
    int64_t settle_ms;            /* time until which the other ranks may end */
                                  /* after a failure; 0: none, or passed      */
    bool failed;                  /* `code` is final                          */
    bool told;                    /* a signal from outside ends the job       */
    int code;                     /* exit code of the job                     */
    bool lost;                    /* output could not be written              */
    int64_t deadline_ms;          /* time of SIGKILL; 0: none                 */
    bool killing;                 /* SIGKILL was sent                         */
    struct run_stream *streams;   /* [2 * nranks] with -l, else NULL          */
    struct pollfd *polls;         /* [1 + 2 * nranks]                         */
};

/* ------------------------------------------------------------- ranks.c --- */

/* Run the job in this process; the exit code. */
int run_job(const struct run_options *options, const struct run_before *before);

/* -------------------------------------------------------------- bind.c --- */

/* Divide the CPUs that this process may use.  With more ranks than CPUs some
 * have the same one.  False: errno; ENOSYS: this build has no hwloc.
 */
bool run_bind_divide(int nranks, struct run_cpus cpus[]);

/* ------------------------------------------------------------ ending.c --- */

/* Signals that are passed on to the ranks; `ends`: they end the job too. */
struct run_signal {
    int number;                   /* of the signal                            */
    bool ends;                    /* it ends the job                          */
};
extern const struct run_signal run_signals[];
extern const int run_nsignals;

/* Processes that the kernel has killed for lack of memory since it started. */
long run_memory_kills(void);

/* Send `sig` to every child of this process. */
void run_kill_children(int sig);

/* Send `sig` to all ranks, and SIGKILL after the grace time. */
void run_end(struct run *run, int sig);

/* Wait for polls[0..n), at most until the next deadline; handle signals and the
 * deadline.  polls[0] is the signalfd.
 */
void run_wait(struct run *run, struct pollfd polls[], int n);

/* Note which ranks have ended.  False: this process has no child any more. */
bool run_reap(struct run *run);

/* ------------------------------------------------------------ report.c --- */

/* Tell the ranks where the report goes, and remove an old one.  NULL, or why no
 * such file can be made.
 */
const char *run_report_begin(const struct run_options *options);

/* All ranks have ended: write the report if the job failed and no rank has. */
void run_report_end(const struct run *run);

/* ------------------------------------------------------------ output.c --- */

/* Make the pipes of a rank, [0] of its output and [1] of its errors: what the
 * rank writes to is in ends[].  False: errno.
 */
bool run_output_open(struct run *run, int rank, int ends[2]);

/* Read a piece of one stream and write its whole lines; false when nothing was
 * there or it is at its end.
 */
bool run_output_read(struct run *run, struct run_stream *stream);

/* All ranks have ended: read the rest of their output. */
void run_output_finish(struct run *run);

#endif

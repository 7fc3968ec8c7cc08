/* run.h - the three parts of dtensor-run
 *
 * ../dtensor-run.c  the command line, and the guard over the supervisor
 * ranks.c           the supervisor: starts the ranks and sees them end
 * output.c          their output, merged line by line (-l)
 */
#ifndef DTN_RUN_H
#define DTN_RUN_H

#include <poll.h>
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
    int nranks;
    bool label;
    const char *cluster;          /* NULL: DTN_CLUSTER stays as it is         */
    int64_t grace_ms;
    char **argv;                  /* PROG ARGS..., NULL                       */
};

/* What the guard found before it changed it; ranks get it back. */
struct run_before {
    sigset_t mask;
    struct rlimit files;
    pid_t guard;                  /* the process that the user knows          */
};

/* One pipe from a rank. */
struct run_stream {
    int fd;                       /* -1: at its end                           */
    int rank;
    int target;                   /* 1 or 2                                   */
    size_t used;
    char *line;                   /* what has no newline yet                  */
};

struct run {
    const struct run_options *options;
    const struct run_before *before;
    int signals;                  /* signalfd                                 */
    pid_t *pids;                  /* [nranks], 0: not started or ended        */
    int running;                  /* ranks                                    */
    struct run_cause {            /* why the job fails, as far as is known    */
        bool known, told;
        int rank, status;
        pid_t pid;
    } cause;
    int64_t settle_ms;            /* until then ranks may end by themselves;  */
                                  /* 0: nobody has failed, or it is over */
    bool failed;                  /* `code` is settled                        */
    bool told;                    /* a signal from outside ends the job       */
    int code;
    int64_t deadline_ms;          /* end by then, or be killed; 0: no hurry   */
    bool killing;
    struct run_stream *streams;   /* [2 * nranks] with -l, else NULL          */
    struct pollfd *polls;         /* [1 + 2 * nranks]                         */
};

/* ------------------------------------------------------------- ranks.c --- */

/* Signals that are passed on to the ranks; `ends`: they end the job too. */
struct run_signal {
    int number;
    bool ends;
};
extern const struct run_signal run_signals[];
extern const int run_nsignals;

/* Run the job in this process; the exit code. */
int run_job(const struct run_options *options, const struct run_before *before);

/* Send `sig` to every child of this process. */
void run_kill_children(int sig);

/* Wait for polls[0..n) at most until something is due; see to signals and to
 * the deadline.  polls[0] is the signalfd.
 */
void run_wait(struct run *run, struct pollfd polls[], int n);

/* ------------------------------------------------------------ output.c --- */

/* Make the pipes of a rank, [0] of its output and [1] of its errors: what the
 * rank writes to is in ends[].  False: errno.
 */
bool run_output_open(struct run *run, int rank, int ends[2]);

/* Read a piece of one stream and write its whole lines; false when nothing was
 * there or it is at its end.
 */
bool run_output_read(struct run *run, struct run_stream *stream);

/* Everybody is dead: read what is left. */
void run_output_finish(struct run *run);

#endif

/* boot_job.h - play a job: processes that open a bootstrap, and what they say
 *
 * A job is hosts "n0", "n1", ... on 127.0.0.2, 127.0.0.3, ... with some ranks
 * each; an actor is one process of it, normally one for each rank.
 */
#ifndef TESTS_BOOT_JOB_H
#define TESTS_BOOT_JOB_H

#include "tests/support/ranks.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/* The key of the jobs, in a build that has keys. */
#define JOB_KEY "000102030405060708090a0b0c0d0e0f" \
                "101112131415161718191a1b1c1d1e1f"
#define JOB_HOSTS 16
#define JOB_ACTORS 64

/* What is told at once takes less than a second, but the machine may be busy.
 * Jobs have a minute to start: what takes half of that is not told at all, and
 * only found at the end.
 */
enum { TOLD_MS = 30000, LIMIT_MS = 60000 };

struct actor {
    int rank;
    int delay_ms;                 /* before it opens                          */
    bool late;                    /* it opens when `during` is over           */
    int pipeline;                  /* of its cluster file, in K; 0: as others */
    int more_hosts;               /* it thinks that there are so many more    */
    int fds_left;                 /* file descriptors it may still open, + 1  */
    int other_port;               /* it uses the port after the job's         */
    enum {
        TAKES_PART,
        EXITS,                    /* after open                               */
        STUCK                     /* after open, until all others have ended  */
    } skips;                      /* the allgather                            */
    int job;                      /* of several that share hosts and port     */
    bool no_auth;                 /* its cluster file has auth = none         */
    bool munge;                   /* it has auth = munge                      */
    const char *key;              /* its DTN_KEY; NULL: as others             */
    unsigned uid;                 /* whose process it is; 0: as others        */
    bool fails;                   /* it cannot take part, and says so         */
    bool refuses;                 /* it opens, and cannot go on               */
};

struct said {
    int rc;
    struct dtensor_error err;
    int64_t open_ns;
    int64_t total_ns;
    int64_t cpu_us;               /* its CPU time in total_ns                 */
    int leaked_fds;
    bool right;                   /* what allgather gave                      */
    pid_t pid;
};

struct boot_job {
    int nhosts;
    int nranks[JOB_HOSTS];
    int timeout_ms;
    int rounds;                   /* allgathers after open                    */
    int cycles;                   /* opens and closes; 0: one                 */
    bool unprivileged;            /* root has no limits: be nobody            */
    bool foreign;                 /* host 0 has no address of this machine    */
    int nactors;
    struct actor actor[JOB_ACTORS];
};

/* What the ranks of a job have come to, if its program has joined.c. */
struct seen {
    _Atomic int joined;           /* their parents have accepted them; rank 0 */
                                  /* listens                                  */
    _Atomic int around;           /* ranks above their parents have           */
    _Atomic int ended;            /* actors that have said all                */
};

extern struct said *said;         /* [JOB_ACTORS] shared with the actors      */
extern struct seen *seen;         /* shared with them too                     */
extern int job_crashed;           /* actors that did, or leaked memory        */
extern int job_port;
void job_init(void);

/* One actor for every rank of hosts with so many ranks. */
struct boot_job job_of(int nhosts, const int nranks[]);
struct boot_job job_even(int nhosts, int each);
void job_drop(struct boot_job *job, int rank);

/* Start the actors; `during` is called meanwhile.  Late ones open after it. */
void job_run(const struct boot_job *job, void (*during)(void));

/* Meanwhile: wait until so many ranks have joined, or have been heard by
 * others; at most as long as a job has to start.
 */
void job_await(const _Atomic int *ranks, int n);

/* How many ranks can join before this one does, which are all but itself and
 * those below it.  All hosts have ranks.
 */
int job_others(const struct boot_job *job, int rank);

/* Meanwhile: kill this actor.  It is gone when this returns. */
void job_kill(int i);
int64_t job_slowest_ms(const struct boot_job *job);
void job_show(const struct boot_job *job);

/* Did every actor succeed, with the right bytes and no leak? */
bool job_good(const struct boot_job *job);

/* Did every actor that was not killed fail alike, naming `culprit`, with these
 * words in its text, within ms, and no leak?
 */
bool job_failed(const struct boot_job *job, int code, int culprit,
                const char *words, int within_ms);

/* How long the second host of such a job takes to join, which comes when
 * `during` is over, in ns; -1: a rank failed.  job_joins_ns(): the shortest of
 * five starts.
 */
int64_t job_join_ns(const struct boot_job *job, void (*during)(void));
int64_t job_joins_ns(const struct boot_job *job);

/* Something that is no rank listens on the job's port. */
int take_port(const char *address);
int knock_tcp(void);

/* The abstract name of host n0 in jobs of the caller of job_init(). */
socklen_t local_addr(struct sockaddr_un *addr);
int knock_local(void);

#endif

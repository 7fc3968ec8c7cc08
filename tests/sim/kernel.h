/* kernel.h - what the parts of the simulated kernel know of each other */
#ifndef TESTS_SIM_KERNEL_H
#define TESTS_SIM_KERNEL_H

#include "tests/sim/sim.h"

#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#define SIM_NEVER (INT64_MAX / 2)
#define SIM_FD_BASE 100000        /* smaller descriptors are real             */

struct sim_file;
struct sim_process;

/* A coroutine: the program of a rank, or a thread of it. */
struct sim_task {
    ucontext_t context;
    void *stack;
    struct sim_process *process;
    struct sim_task *next;        /* of the process                           */
    void *(*main)(void *arg);
    void *arg;
    int64_t wake;                 /* when it runs next                        */
    uint64_t order;               /* among those of the same time, random     */
    int place;                    /* in the heap; -1: it is not there         */
    bool alert;                   /* it also runs when something comes        */
    bool done;
    const void *waits;            /* for a condition, a mutex or a thread     */
    struct robust_list_head *robust;  /* as of set_robust_list()              */
};

enum sim_state { SIM_RUNS, SIM_ENDED, SIM_STOPPED, SIM_DEAD };

struct sim_process {
    int rank;
    int host;
    enum sim_state state;
    struct sim_task *tasks;
    struct sim_task *first;       /* its program                              */
    struct sim_file *files;       /* its open descriptors, of sockets etc.    */
    int64_t clock;                /* latest time that it has seen             */
    int64_t paused_until;
    int64_t gone_at;              /* ended or dead: when its pidfd says so    */
    uint64_t calls;               /* of the kernel, that count                */
    bool marked;                  /* those of a later fault count             */
    uint64_t blocks;              /* of memory, allocated                     */
    size_t held;                  /* bytes of them                            */
    struct sim_use use;           /* what it took from others and the host    */
    uint64_t real;                /* descriptors and mappings                 */
};

/* ------------------------------------------------------------- sim.c --- */

extern struct sim_task *sim_self;             /* that runs; NULL: none        */
extern const struct sim_options *sim_options;

struct sim_process *sim_process(int rank);    /* NULL: there is none          */

/* The running task calls the kernel, which takes some time.  The fault may
 * happen here.
 */
void sim_call(void);

/* It waits until `wake`; with `alert`, or until sim_alert(). */
void sim_block(int64_t wake, bool alert);

/* Something comes to the process at this time. */
void sim_alert(struct sim_process *process, int64_t at);

/* Tasks that wait for this run now. */
void sim_wake(const void *waits);

struct sim_task *sim_spawn(struct sim_process *process, void *(*main)(void *),
                           void *arg);

/* ---------------------------------------------------------- sockets.c --- */

/* When something comes to the process's files next; SIM_NEVER. */
int64_t sim_files_next(const struct sim_process *process);

/* Close all files.  Peers hear of it after `ns`; SIM_NEVER: nothing answers. */
void sim_files_close(struct sim_process *process, int64_t ns);

/* How many files it has. */
uint64_t sim_files_count(const struct sim_process *process);
void sim_files_end(void);         /* of a run                                 */

bool sim_ready(int fd, short events, short *revents);
int64_t sim_ready_next(int fd);   /* when that may change                     */

/* A descriptor that is ready when the process is no more. */
int sim_pidfd(struct sim_process *process);

/* ----------------------------------------------------------- memory.c --- */

/* Free what the process left. */
void sim_memory_drop(struct sim_process *process);

#endif

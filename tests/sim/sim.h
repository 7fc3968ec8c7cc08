/* sim.h - ranks of a job in one process, on a simulated kernel
 *
 * The linker wraps what the library asks of the kernel: sockets, clocks,
 * threads, sleeping.  Here each rank is a coroutine with a heart's coroutine
 * beside it; time is a number; a message takes as long as the seed says.  The
 * same seed does the same, so a failure is a seed.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What happens to a rank at its `call`th call of the kernel, or at a time. */
enum sim_fault_kind {
    SIM_NONE,
    SIM_PAUSE,                    /* it does not run for `ns`                 */
    SIM_KILL,                     /* it dies; others hear of it after `ns`    */
    SIM_STOP,                     /* it never runs again                      */
    SIM_POWER,                    /* its host is off: nobody there runs, and  */
                                  /* nothing answers                          */
    SIM_FAULTS
};
extern const char *const sim_fault_names[SIM_FAULTS];
struct sim_fault {
    enum sim_fault_kind kind;
    int rank;
    bool later;                   /* its calls count from sim_mark() on       */
    uint64_t call;
    int64_t ns;
    int64_t at_ns;                /* the time; 0: at the call                 */
};

struct sim_options {
    uint64_t seed;
    int nranks;
    int ranks_per_host;
    struct sim_fault fault;
    struct sim_fault second;      /* happens at_ns after the first            */
    int64_t latency_ns;           /* of a message, at most                    */
    int64_t limit_ns;             /* who has not ended by then hangs          */
    void (*main)(int rank);
    const char *(*env)(int rank, const char *name);   /* NULL: not set        */
    void (*end)(const struct sim_options *options);   /* when all have ended  */
};

struct sim_result {
    int64_t ns;                   /* when the last rank ended                 */
    uint64_t turns;               /* of all coroutines                        */
    uint64_t calls;               /* of the kernel, by all ranks              */
    int hung;                     /* ranks that did not end                   */
    int lost;                     /* ranks that died or stopped               */
    uint64_t leaked;              /* blocks, descriptors, mappings, threads   */
                                  /* of ranks that ended                      */
};

/* What a rank sent, and the memory that it had. */
struct sim_use {
    uint64_t sends;               /* pieces that it gave to a socket at once  */
    uint64_t bytes;               /* of all of them                           */
    size_t most;                  /* bytes of memory that it held at a time,  */
                                  /* without what it mapped                   */
};
struct sim_use sim_used(int rank);

void sim_run(const struct sim_options *options, struct sim_result *result);

/* Of the rank that runs. */
int sim_rank(void);
int64_t sim_now(void);            /* ns                                       */

/* From here on the calls of this rank count for a fault that is `later`. */
void sim_mark(void);

/* Is the rank dead or stopped? */
bool sim_lost(int rank);

/* A random number of the seed, below n. */
uint64_t sim_random(uint64_t n);

#endif

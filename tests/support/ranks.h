/* ranks.h - run a function as n real processes, one rank each
 *
 * Each child gets the variables dtensor-run would set.  A claim inside a rank
 * is `need(condition, ...)`: when it fails the rank says so as a TAP comment
 * and exits with 1.
 */
#ifndef TESTS_RANKS_H
#define TESTS_RANKS_H

#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

/* By which ranks of several hosts know each other. */
#define RANKS_KEY "5e50f09bd0d1a2c3b4e5f60718293a4b" \
                  "5c6d7e8f90a1b2c3d4e5f60718293a4b"

typedef void rank_main_f(int rank, int nranks, void *arg);

#define need(condition, ...)                                                  \
    do {                                                                      \
        if (!(condition)) {                                                   \
            printf("# rank %s, %s:%d: ", getenv("DTN_RANK"), __FILE__,        \
                   __LINE__);                                                 \
            printf(__VA_ARGS__);                                              \
            printf("\n");                                                     \
            fflush(stdout);                                                   \
            _exit(1);                                                         \
        }                                                                     \
    } while (0)

/* Do sanitizers make this build several times slower? */
bool sanitized(void);

/* Do times mean nothing here, in a slow build or on a slow machine? */
bool timeless(void);

/* Of many cases, is the next one of those to try when there is less time? */
bool rounds_pick(void);
void ranks_setenv(const char *name, int value);
pid_t rank_fork(int rank, int n, const char *job, rank_main_f *fn, void *arg);

/* A cluster file of n ranks on this host that talk over `wire`, on the devices
 * DTN_TEST_HCA if set, and over DTN_TEST_WIRE, if set, instead; `more` is the
 * rest of [transport] and what follows, NULL: patience.  The path is good until
 * the next call, the file until the caller removes it.
 */
const char *ranks_file(const char *wire, int n, const char *more);

/* Fork n ranks; wait status of each in status[] (may be NULL).  Returns how
 * many did not exit with 0.  `enough_s` is enough on a quiet machine: who still
 * runs after five times that hangs, and is killed.
 */
int ranks_run(int n, int enough_s, rank_main_f *fn, void *arg, int status[]);

/* From here on this process and those that it forks use one CPU only, the n-th
 * of those that it may use.  For jobs of which many run at once: ranks that
 * wait for each other then yield soon, for they know that they share a CPU.
 */
void one_cpu(int n);

#endif

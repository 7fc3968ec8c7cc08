/* interleave.h - all that C11 allows a few threads to see
 *
 * The code under test calls these hooks instead of the atomic operations and
 * of memcpy().  interleave_all() runs it again and again, until each load has
 * returned every value that it may return, and finds data races, claims that
 * do not hold, and threads that wait for ever.
 */
#ifndef TESTS_TRANSPORT_INTERLEAVE_H
#define TESTS_TRANSPORT_INTERLEAVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INTERLEAVE_THREADS = 4 };

/* Some threads that communicate. */
struct interleave_program {
    const char *name;
    int nthreads;                 /* at most INTERLEAVE_THREADS               */
    void (*begin)(void);          /* set the state that they begin with       */
    void (*run)(int thread);      /* what a thread does; it owns no memory    */
};

/* One wrong operation.  WEAKER: it is relaxed.  LOST: it is left out.  MORE:
 * its value is larger by 1.  LATE: a copy is made after the next store.
 */
enum interleave_fault {
    INTERLEAVE_NONE, INTERLEAVE_WEAKER, INTERLEAVE_LOST, INTERLEAVE_MORE,
    INTERLEAVE_LATE, INTERLEAVE_FAULTS
};
extern const char *const interleave_fault_names[INTERLEAVE_FAULTS];

/* An operation of the code under test: the function that does it, which does
 * one of each kind.
 */
enum interleave_kind {
    INTERLEAVE_LOAD, INTERLEAVE_STORE, INTERLEAVE_COPY, INTERLEAVE_KINDS
};
extern const char *const interleave_kind_names[INTERLEAVE_KINDS];
struct interleave_site {
    const char *function;
    enum interleave_kind kind;
};

struct interleave_mutant {
    struct interleave_site site;
    enum interleave_fault fault;
};

struct interleave_result {
    uint64_t executions;          /* that ended, with the threads done        */
    uint64_t tried;               /* also those that turned out as impossible */
    char failure[160];            /* what was wrong in the last; "": nothing  */
};

/* Run all executions of the program, with that mutant (NULL: none), up to the
 * first that fails.
 */
void interleave_all(const struct interleave_program *program,
                    const struct interleave_mutant *mutant,
                    struct interleave_result *result);

/* The operations that were called so far, in all programs. */
const struct interleave_site *interleave_sites(int *n);

/* ------------------------------------------- what the begin() may call --- */

/* Watch [mem, mem + bytes), which threads share, for data races.  The memory
 * is a multiple of 4 bytes.
 */
void interleave_share(const void *mem, size_t bytes);

/* ----------------------------------------------- what its threads call --- */

uint64_t interleave_load(const char *function, const _Atomic uint64_t *at,
                         memory_order order);
void interleave_store(const char *function, _Atomic uint64_t *at,
                      uint64_t value, memory_order order);
uint64_t interleave_or(const char *function, _Atomic uint64_t *at,
                       uint64_t bits, memory_order order);
void interleave_copy(const char *function, void *to, const void *from,
                     size_t bytes);

/* A turn of a loop that waits begins.  It was in vain: what it loaded has to
 * change before the next one.
 */
void interleave_turn(void);
void interleave_vain(void);

/* A claim. */
void interleave_must(bool condition, const char *claim);

#endif

/* syscalls.h - the system calls of the library, and its calls of libibverbs,
 * each of which can fail
 *
 * The linker sends them here: a test program is linked with syscalls.c and
 * $(WRAP_SYSCALLS) of tests/job/Makefile.inc.  Calls that cannot fail as the
 * library makes them (getpid, sched_yield, sysconf of the page size) are not
 * here.
 */
#ifndef TESTS_SYSCALLS_H
#define TESTS_SYSCALLS_H

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

enum { KINDS = 72 };              /* without libibverbs fewer are in use    */
extern const char *const kind_name[KINDS];

/* Call number `left` of a kind fails once, counted from 0.  The thread of the
 * heartbeats calls too.
 */
extern struct syscalls {
    int kind;                       /* which fails once; -1: none            */
    _Atomic long left;              /* of them that go well before           */
    int64_t at_ns;                  /* when it failed; 0: not yet            */
    _Atomic long made[KINDS];       /* calls of each kind so far             */
} syscalls;

/* For the test itself: these never fail on purpose. */
FILE *__real_fopen(const char *path, const char *mode);
char *__real_fgets(char *line, int size, FILE *file);
int __real_fclose(FILE *file);
int __real_nanosleep(const struct timespec *time, struct timespec *left);
void *__real_mmap(void *mem, size_t size, int prot, int flags, int fd,
                  off_t at);

#endif

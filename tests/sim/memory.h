/* memory.h - what a simulated process has of the real one: memory, mappings,
 * descriptors
 */
#ifndef TESTS_SIM_MEMORY_H
#define TESTS_SIM_MEMORY_H

#include <stddef.h>
#include <sys/types.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *mem, size_t size);
void __real_free(void *mem);
int __real_close(int fd);
int __real_fcntl(int fd, int command, long value);
void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t to);

/* The running process has this real descriptor, and no longer. */
void sim_real_note(int fd);
int sim_real_close(int fd);

struct sim_process;
pid_t sim_pid(const struct sim_process *process);     /* its number           */

#endif

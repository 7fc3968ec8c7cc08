/* process.h - private to shm: the process of a peer, and its memory */
#ifndef DTN_TRANSPORT_PROCESS_H
#define DTN_TRANSPORT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A process.  Its number alone is not enough: it can be used again. */
struct dtn_process {
    int64_t pid;                  /* its number                               */
    uint64_t start;               /* start time since boot, in clock ticks;   */
                                  /* 0: unknown                               */
    uint64_t pid_space;           /* inode of its pid namespace; 0: unknown   */
};

/* This process. */
struct dtn_process dtn_process_self(void);

/* Is it dead?  False if that is not certain. */
bool dtn_process_is_dead(const struct dtn_process *process);
bool dtn_pidfd_is_dead(int pidfd);

/* Copy `size` bytes at `addr` of the process to `mem`, or the other way.
 * Errors: EPEER  the process is gone
 *         ESYS   it may not be read, or has no such memory
 */
int dtn_process_read(const struct dtn_process *process, void *mem,
                     uint64_t addr, size_t size);
int dtn_process_write(const struct dtn_process *process, uint64_t addr,
                      const void *mem, size_t size);

#endif

/* kernel.h - what the fuzzer has in place of the kernel
 *
 * Most of the time of a target was spent in system calls.  The fuzzer is linked
 * with --wrap: calls on the sockets and files that a target makes for its input
 * work on memory; a sleep moves the clock and takes no time (clock.c); all
 * other calls go to the kernel.  The targets do not know, and test_corpora runs
 * the same ones on the kernel.
 */
#ifndef TESTS_FUZZ_KERNEL_H
#define TESTS_FUZZ_KERNEL_H

#include <stdbool.h>

/* Descriptors from here on are ours; a process never has so many. */
enum { FUZZ_SOCKET_FD = 1 << 20, FUZZ_FILE_FD = 1 << 21 };

/* Close a file; false: it is none of ours. */
bool fuzz_file_close(int fd);

#endif

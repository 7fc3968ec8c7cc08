/* standin.h - tests that need a CUDA driver use the one of tests/standin */
#ifndef TESTS_STANDIN_USE_H
#define TESTS_STANDIN_USE_H

#include <stdbool.h>
#include <stddef.h>

/* Begin main() with this: the program starts anew with an LD_LIBRARY_PATH where
 * libcuda.so.1 is the stand-in, and not the driver of this machine, if it has
 * one, and without a cuBLAS.  With DTN_TEST_GPU in the environment it is the
 * driver of this machine.
 * NULL: good; else why the stand-in cannot be used, for skip_all().
 */
const char *standin_use(void);

/* The folder of libcuda.so.1: of "" the stand-in, of "old" that of CUDA 11, of
 * "ancient" one that is too old.  Good until the next call.
 */
const char *standin_folder(const char *which);

/* "not measured: no GPU (...)", with the driver's or the loader's reason, for
 * skip_all(); "": the driver of this machine shows one.
 */
const char *standin_no_gpu(void);

/* Is libcuda.so.1 the stand-in, and not a real driver? */
bool standin_used(void);

/* May ranks map each other's device memory here?  For that a process takes a
 * file of another one that is no child of it, which a container or
 * kernel.yama.ptrace_scope may forbid.
 */
bool standin_maps(void);

/* standin_use(), for tests in which the GPUs of ranks signal each other: they
 * need kernels and memory that ranks can map.  NULL, or why they cannot run.
 */
const char *standin_use_signals(void);

/* How often this process launched a kernel on the stand-in; 0 with a real
 * driver.
 */
int standin_launched(void);

/* How often this process made that call of the stand-in, NULL: any; 0 with a
 * real driver.
 */
unsigned long standin_called(const char *call);

/* How many things of the driver this process has not freed, in words.  0 with a
 * real driver.
 */
int standin_left(char *text, size_t size);

#endif

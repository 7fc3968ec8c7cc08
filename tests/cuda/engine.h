/* engine.h - what runs a launch, where there is no GPU too */
#ifndef TESTS_CUDA_ENGINE_H
#define TESTS_CUDA_ENGINE_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_launch;

/* The kernels as the C compiler made them, and nvcc's PTX translated to C: that
 * for the oldest and that for the newest GPU, which differ.  With DTN_TEST_GPU
 * in the environment, only the GPU of this machine.  The last, which has the
 * kernels of curand.c alone, is none of the ENGINES.
 */
enum {
    ENGINE_TWIN, ENGINE_PTX, ENGINE_NEWEST, ENGINE_GPU, ENGINES,
    ENGINE_CURAND = ENGINES
};

/* Does this build have it?  If not, the claim is skipped with the reason. */
bool engine_is_here(int engine, const char *claim);
const char *engine_name(int engine);

/* Run all threads of the launch, in as many blocks as a small GPU would. */
void engine_run(int engine, const struct dtn_launch *launch);

/* Elements of the large arrays: DTN_TEST_ELEMENTS, or 200,000; for the newest
 * GPU a tenth.
 */
size_t engine_elements(int engine);

/* Elements of every kind: random bits, numbers between -32 and 32, zeros and
 * infinities, NaNs of either sign, signalling ones too.
 */
void engine_fill(uint64_t *seed, enum dtensor_dtype dtype, void *array,
                 size_t count);

/* The first byte in which two arrays differ, or -1. */
long engine_differs(const void *got, const void *want, size_t bytes);

/* engine_gpu.c: of ENGINE_GPU, which then is the only one. */
bool engine_gpu_is_wanted(void);
bool engine_gpu_is_here(const char *claim);
void engine_gpu_run(const struct dtn_launch *launch);

#endif

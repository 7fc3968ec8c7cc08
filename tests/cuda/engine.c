/* engine.c - launches of the twins, of translated PTX, and of the GPU */
#include "tests/cuda/engine.h"
#include "base/dtype.h"
#include "cuda/kernels.h"
#include "cuda/twin.h"
#include "dtensor.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_PTX
#include "tests/cuda/ptx.h"
#endif

enum { MOST_BLOCKS = 20 };

const char *engine_name(int engine)
{
    static const char *const names[ENGINES + 1] = {
        "C", "nvcc's PTX", "PTX of the newest GPU", "the GPU", "cuRAND's PTX"
    };

    return names[engine];
}

bool engine_is_here(int engine, const char *claim)
{
    if (engine_gpu_is_wanted() != (engine == ENGINE_GPU))
        return false;
    if (engine == ENGINE_GPU)
        return engine_gpu_is_here(claim);
#ifndef HAVE_CURAND
    if (engine == ENGINE_CURAND) {
        skip(claim, "built without nvcc, or without the header of cuRAND");
        return false;
    }
#endif
#ifndef HAVE_PTX
    if (engine != ENGINE_TWIN) {
        skip(claim, "built without nvcc");
        return false;
    }
#endif
    return true;
}

#ifdef HAVE_PTX
static const struct ptx_kernel *ptx_of(int engine)
{
#ifdef HAVE_CURAND
    if (engine == ENGINE_CURAND)
        return ptx_curand;
#endif
    return engine == ENGINE_PTX ? ptx_kernels : ptx_newest;
}
#endif

static void run_ptx(int engine, const struct dtn_launch *launch, uint64_t block,
                    uint64_t blocks)
{
#ifdef HAVE_PTX
    const char *name = dtn_kernels[launch->kernel].name;

    for (const struct ptx_kernel *k = ptx_of(engine); k->name; k++)
        if (strcmp(k->name, name) == 0
            && k->args_bytes == dtn_kernels[launch->kernel].args_bytes) {
            k->run(&launch->args, block, blocks);
            return;
        }
    abort();
#endif
}

void engine_run(int engine, const struct dtn_launch *launch)
{
    uint64_t blocks = (launch->threads + DTN_KERNEL_THREADS - 1)
                    / DTN_KERNEL_THREADS;

    if (engine == ENGINE_GPU) {
        engine_gpu_run(launch);
        return;
    }
    blocks = blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
    for (uint64_t block = 0; block < blocks; block++)
        if (engine == ENGINE_TWIN)
            dtn_twins[launch->kernel].run(&launch->args, block, blocks);
        else
            run_ptx(engine, launch, block, blocks);
}

size_t engine_elements(int engine)
{
    const char *text = getenv("DTN_TEST_ELEMENTS");
    const size_t all = text ? (size_t)strtoull(text, NULL, 10) : 200000;

    return engine == ENGINE_NEWEST ? all / 10 : all;
}

/* ------------------------------------------------------------- elements --- */

/* An exponent of all ones: infinity, or a NaN of any kind. */
static void make_nan(enum dtensor_dtype dtype, void *array, size_t i)
{
    switch (dtype) {
    case DTENSOR_F64:    ((uint64_t *)array)[i] |= 0x7ff0000000000000; break;
    case DTENSOR_F16:    ((uint16_t *)array)[i] |= 0x7c00; break;
    case DTENSOR_BF16:   ((uint16_t *)array)[i] |= 0x7f80; break;
    case DTENSOR_F8E4M3: ((uint8_t *)array)[i] |= 0x7f; break;
    case DTENSOR_F8E5M2: ((uint8_t *)array)[i] |= 0x7c; break;
    default:             ((uint32_t *)array)[i] |= 0x7f800000; break;
    }
}

void engine_fill(uint64_t *seed, enum dtensor_dtype dtype, void *array,
                 size_t count)
{
    static const double special[] = { 0.0, -0.0, 1, 1e300, -1e300 };

    if (dtn_dtype_kind(dtype) == DTN_DTYPE_COMPLEX) {
        engine_fill(seed, dtype == DTENSOR_C64 ? DTENSOR_F32 : DTENSOR_F64,
                    array, 2 * count);
        return;
    }
    rand_bytes(seed, array, count * dtn_dtype_size(dtype));
    for (size_t i = 0; dtype == DTENSOR_BOOL && i < count; i++)
        ((uint8_t *)array)[i] &= 1;
    for (size_t i = 0; dtn_dtype_is_float(dtype) && i < count; i++) {
        const uint64_t draw = rand_next(seed);

        if (draw % 8 == 0)
            make_nan(dtype, array, i);
        else if (draw % 8 == 1)
            dtn_store(dtype, array, i, special[draw / 8 % 5]);
        else if (draw % 8 < 5)
            dtn_store(dtype, array, i, (double)(int)(draw >> 52) / 64 - 32);
    }
}

long engine_differs(const void *got, const void *want, size_t bytes)
{
    const unsigned char *a = got, *b = want;

    if (memcmp(a, b, bytes) == 0)
        return -1;
    for (size_t i = 0; i < bytes; i++)
        if (a[i] != b[i])
            return (long)i;
    return -1;
}

/* dtensor/device.h - memory of GPUs
 *
 * With `memory = cuda` in a [mesh "NAME"] section of the cluster file the
 * tensors of that mesh lie in the memory of a GPU, and the same program runs.
 * dtensor_to_local() is then an address that kernels use and the CPU must not
 * touch.  NVIDIA's driver is loaded when a rank first needs it: a program that
 * uses host memory only runs without one.
 *
 * Each rank uses one GPU, [nodes "NAME"] gpus, by its primary context, which is
 * that of the CUDA runtime and of PyTorch.  Collectives, messages and tensors
 * take addresses of that GPU too, from any allocator.  It is opened when a mesh
 * has memory = cuda, by dtensor_alloc_on(), by dtensor_stream(), or by the
 * first address on a GPU in a call.  Managed memory, memory of another GPU and
 * memory of another context are EINVAL.
 */
#ifndef DTENSOR_DEVICE_H
#define DTENSOR_DEVICE_H

#include "context.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The same as dtensor_alloc(), in memory of that kind; dtensor_free() frees it.
 * DTENSOR_CUDA is memory of this rank's GPU, which is opened if need be.
 *
 * Collective: no.   Blocks: while the GPU is opened.
 * Owns:   *memp is the caller's, for dtensor_free().
 * Errors: EINVAL  no such memory
 *         ENODEV  no driver, or no such GPU: says what is missing
 *         ENOMEM  not enough memory: says how much there is
 *         ETIME   the GPU did not finish
 * Semantics: MPI_Alloc_mem, ncclMemAlloc.
 */
int dtensor_alloc_on(struct dtensor_ctx *ctx, enum dtensor_memory memory,
                     size_t size, void **memp, struct dtensor_error *err);

/* Order calls after `stream`, a CUstream or cudaStream_t of this rank's GPU;
 * NULL is its default stream.  Every later call that uses memory of the GPU
 * begins after what the program has enqueued on the stream until then, and what
 * the program enqueues after the call has returned, or its request has ended,
 * sees the results.  Without this the program waits for its own work before
 * each call.  The stream must live until the next one is given.
 *
 * Collective: no.   Blocks: while the GPU is opened.
 * Errors: EINVAL  a stream of another GPU or context, or none, or one that is
 *                 being captured into a graph
 *         ENODEV  no driver, or no such GPU: says what is missing
 *         ENOMEM
 * Semantics: the stream argument of ncclAllReduce.
 */
int dtensor_stream(struct dtensor_ctx *ctx, void *stream,
                   struct dtensor_error *err);

#ifdef __cplusplus
}
#endif
#endif

/* calls.h - the calls of the CUDA driver that the library and its tests make
 *
 * DTN_CUDA_CALLS(X) is one list: X(name, since, skill, (types of parameters)).
 * The struct of function pointers, the loader, its error texts, and the check
 * against NVIDIA's header are made from it.
 *
 * `since` is the version of CUDA that introduced this form of the call, 12000
 * for 12.0.  cuGetProcAddress() is asked for that version, because it then
 * returns this form of the call from every later driver, too.
 *
 * `skill` is what a driver without the call cannot do: see driver.h.  Without
 * the calls of the skill BASE a driver cannot be used.
 */
#ifndef DTN_DEVICE_CUDA_CALLS_H
#define DTN_DEVICE_CUDA_CALLS_H

#include "device/cuda/types.h"

#define DTN_CUDA_CALLS(X)                                                     \
    X(cuInit, 2000, BASE, (unsigned))                                         \
    X(cuDriverGetVersion, 2020, BASE, (int *))                                \
    X(cuGetErrorName, 6000, BASE, (CUresult, const char **))                  \
    X(cuGetErrorString, 6000, BASE, (CUresult, const char **))                \
    X(cuDeviceGetCount, 2000, BASE, (int *))                                  \
    X(cuDeviceGet, 2000, BASE, (CUdevice *, int))                             \
    X(cuDeviceGetName, 2000, BASE, (char *, int, CUdevice))                   \
    X(cuDeviceGetAttribute, 2000, BASE,                                       \
      (int *, CUdevice_attribute, CUdevice))                                  \
    X(cuDeviceGetPCIBusId, 4010, BASE, (char *, int, CUdevice))               \
    X(cuDeviceGetUuid, 9020, BASE, (CUuuid *, CUdevice))                      \
    X(cuDeviceTotalMem, 3020, BASE, (size_t *, CUdevice))                     \
    X(cuDevicePrimaryCtxRetain, 7000, BASE, (CUcontext *, CUdevice))          \
    X(cuDevicePrimaryCtxRelease, 11000, BASE, (CUdevice))                     \
    X(cuCtxGetCurrent, 4000, BASE, (CUcontext *))                             \
    X(cuCtxPushCurrent, 4000, BASE, (CUcontext))                              \
    X(cuCtxPopCurrent, 4000, BASE, (CUcontext *))                             \
    X(cuPointerGetAttributes, 7000, BASE,                                     \
      (unsigned, CUpointer_attribute *, void **, CUdeviceptr))                \
    X(cuPointerSetAttribute, 6000, BASE,                                      \
      (const void *, CUpointer_attribute, CUdeviceptr))                       \
    X(cuMemGetInfo, 3020, BASE, (size_t *, size_t *))                         \
    X(cuMemAlloc, 3020, BASE, (CUdeviceptr *, size_t))                        \
    X(cuMemFree, 3020, BASE, (CUdeviceptr))                                   \
    X(cuMemHostAlloc, 2020, BASE, (void **, size_t, unsigned))                \
    X(cuMemFreeHost, 2000, BASE, (void *))                                    \
    X(cuMemHostRegister, 6050, BASE, (void *, size_t, unsigned))              \
    X(cuMemHostUnregister, 4000, BASE, (void *))                              \
    X(cuMemcpyAsync, 4000, BASE,                                              \
      (CUdeviceptr, CUdeviceptr, size_t, CUstream))                           \
    X(cuMemsetD8Async, 3020, BASE,                                            \
      (CUdeviceptr, unsigned char, size_t, CUstream))                         \
    X(cuStreamCreate, 2000, BASE, (CUstream *, unsigned))                     \
    X(cuStreamDestroy, 4000, BASE, (CUstream))                                \
    X(cuStreamQuery, 2000, BASE, (CUstream))                                  \
    X(cuStreamSynchronize, 2000, BASE, (CUstream))                            \
    X(cuStreamWaitEvent, 3020, BASE, (CUstream, CUevent, unsigned))           \
    X(cuStreamGetCtx, 9020, BASE, (CUstream, CUcontext *))                    \
    X(cuStreamIsCapturing, 10000, BASE, (CUstream, CUstreamCaptureStatus *))  \
    X(cuLaunchHostFunc, 10000, BASE, (CUstream, CUhostFn, void *))            \
    X(cuEventCreate, 2000, BASE, (CUevent *, unsigned))                       \
    X(cuEventDestroy, 4000, BASE, (CUevent))                                  \
    X(cuEventRecord, 2000, BASE, (CUevent, CUstream))                         \
    X(cuEventQuery, 2000, BASE, (CUevent))                                    \
    X(cuEventSynchronize, 2000, BASE, (CUevent))                              \
    X(cuEventElapsedTime, 2000, BASE, (float *, CUevent, CUevent))            \
    X(cuMemGetAllocationGranularity, 10020, ARENA,                            \
      (size_t *, const CUmemAllocationProp *,                                 \
       CUmemAllocationGranularity_flags))                                     \
    X(cuMemCreate, 10020, ARENA,                                              \
      (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,   \
       unsigned long long))                                                   \
    X(cuMemRelease, 10020, ARENA, (CUmemGenericAllocationHandle))             \
    X(cuMemAddressReserve, 10020, ARENA,                                      \
      (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long))       \
    X(cuMemAddressFree, 10020, ARENA, (CUdeviceptr, size_t))                  \
    X(cuMemMap, 10020, ARENA,                                                 \
      (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,             \
       unsigned long long))                                                   \
    X(cuMemUnmap, 10020, ARENA, (CUdeviceptr, size_t))                        \
    X(cuMemSetAccess, 10020, ARENA,                                           \
      (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t))                 \
    X(cuMemExportToShareableHandle, 10020, ARENA,                             \
      (void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType,       \
       unsigned long long))                                                   \
    X(cuMemImportFromShareableHandle, 10020, ARENA,                           \
      (CUmemGenericAllocationHandle *, void *, CUmemAllocationHandleType))    \
    X(cuMemGetHandleForAddressRange, 11070, DMABUF,                           \
      (void *, CUdeviceptr, size_t, CUmemRangeHandleType,                     \
       unsigned long long))                                                   \
    X(cuStreamWriteValue64, 11070, VALUES,                                    \
      (CUstream, CUdeviceptr, cuuint64_t, unsigned))                          \
    X(cuStreamWaitValue64, 11070, VALUES,                                     \
      (CUstream, CUdeviceptr, cuuint64_t, unsigned))                          \
    X(cuLibraryLoadData, 12000, KERNELS,                                      \
      (CUlibrary *, const void *, CUjit_option *, void **, unsigned,          \
       CUlibraryOption *, void **, unsigned))                                 \
    X(cuLibraryUnload, 12000, KERNELS, (CUlibrary))                           \
    X(cuLibraryGetKernel, 12000, KERNELS,                                     \
      (CUkernel *, CUlibrary, const char *))                                  \
    X(cuKernelGetFunction, 12000, KERNELS, (CUfunction *, CUkernel))          \
    X(cuLaunchKernel, 4000, KERNELS,                                          \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,          \
       unsigned, unsigned, CUstream, void **, void **))                       \
    X(cuStreamBeginCapture, 10010, GRAPHS, (CUstream, CUstreamCaptureMode))   \
    X(cuStreamEndCapture, 10000, GRAPHS, (CUstream, CUgraph *))               \
    X(cuStreamGetCaptureInfo, 11030, GRAPHS,                                  \
      (CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *,            \
       const CUgraphNode **, size_t *))                                       \
    X(cuStreamBatchMemOp, 11070, GRAPHS,                                      \
      (CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned))             \
    X(cuGraphExecBatchMemOpNodeSetParams, 11070, GRAPHS,                      \
      (CUgraphExec, CUgraphNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *))      \
    X(cuGraphInstantiateWithFlags, 11040, GRAPHS,                             \
      (CUgraphExec *, CUgraph, unsigned long long))                           \
    X(cuGraphLaunch, 10000, GRAPHS, (CUgraphExec, CUstream))                  \
    X(cuGraphDestroy, 10000, GRAPHS, (CUgraph))                               \
    X(cuGraphExecDestroy, 10000, GRAPHS, (CUgraphExec))

#endif

/* types.h - types and numbers of the CUDA driver's interface
 *
 * The names are NVIDIA's, so that its manual can be searched for them.  The
 * header of the CUDA Toolkit is not needed to build.  Where it is installed, a
 * test compiles this file with DTN_CUDA_BY_NVIDIA beside it and compares them.
 */
#ifndef DTN_DEVICE_CUDA_TYPES_H
#define DTN_DEVICE_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

struct dtn_cuda_location {
    int type;                     /* CU_MEM_LOCATION_TYPE_...                 */
    int id;                       /* number of the device                     */
};

/* What physical memory cuMemCreate() makes. */
struct dtn_cuda_allocation {
    int type;                     /* CU_MEM_ALLOCATION_TYPE_...               */
    int requestedHandleTypes;     /* bits of CU_MEM_HANDLE_TYPE_...           */
    struct dtn_cuda_location location; /* where                               */
    void *win32HandleMetaData;    /* NULL                                     */
    struct {
        unsigned char compressionType;      /* 0                              */
        unsigned char gpuDirectRDMACapable; /* 1: RDMA cards may reach it     */
        unsigned short usage;     /* 0                                        */
        unsigned char reserved[4]; /* 0                                       */
    } allocFlags;                 /* attributes                               */
};

/* Who may reach a mapped range, and how. */
struct dtn_cuda_access {
    struct dtn_cuda_location location; /* who                                 */
    int flags;                    /* CU_MEM_ACCESS_FLAGS_...                  */
};

/* One operation of cuStreamBatchMemOp() that writes a word or waits for it. */
struct dtn_cuda_mem_op {
    int operation;                /* CU_STREAM_MEM_OP_..._VALUE_64            */
    unsigned long long address;   /* of the word                              */
    uint64_t value64;             /* written or waited for                    */
    unsigned flags;               /* as of the call for one word              */
    unsigned long long alias;     /* the driver's                             */
    uint64_t pad;                 /* to the size of the driver's union        */
};

/* A node of a graph with such operations. */
struct dtn_cuda_mem_ops {
    struct CUctx_st *ctx;         /* context                                  */
    unsigned count;               /* operations                               */
    struct dtn_cuda_mem_op *paramArray; /* [count]                            */
    unsigned flags;               /* 0                                        */
};

struct dtn_cuda_uuid {
    char bytes[16];               /* the same in every process                */
};

#define DTN_CUDA_NUMBERS(X)                                                   \
    X(CUDA_SUCCESS, 0)                                                        \
    X(CUDA_ERROR_INVALID_VALUE, 1)                                            \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                            \
    X(CUDA_ERROR_NOT_INITIALIZED, 3)                                          \
    X(CUDA_ERROR_STUB_LIBRARY, 34)                                            \
    X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46)                                      \
    X(CUDA_ERROR_NO_DEVICE, 100)                                              \
    X(CUDA_ERROR_INVALID_DEVICE, 101)                                         \
    X(CUDA_ERROR_INVALID_IMAGE, 200)                                          \
    X(CUDA_ERROR_INVALID_CONTEXT, 201)                                        \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                      \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                      \
    X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                                   \
    X(CUDA_ERROR_CONTAINED, 226)                                              \
    X(CUDA_ERROR_OPERATING_SYSTEM, 304)                                       \
    X(CUDA_ERROR_INVALID_HANDLE, 400)                                         \
    X(CUDA_ERROR_ILLEGAL_STATE, 401)                                          \
    X(CUDA_ERROR_NOT_FOUND, 500)                                              \
    X(CUDA_ERROR_NOT_READY, 600)                                              \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                        \
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)                                \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                         \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                                   \
    X(CUDA_ERROR_ASSERT, 710)                                                 \
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712)                         \
    X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713)                             \
    X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                                   \
    X(CUDA_ERROR_LAUNCH_FAILED, 719)                                          \
    X(CUDA_ERROR_TENSOR_MEMORY_LEAK, 721)                                     \
    X(CUDA_ERROR_NOT_PERMITTED, 800)                                          \
    X(CUDA_ERROR_NOT_SUPPORTED, 801)                                          \
    X(CUDA_ERROR_SYSTEM_NOT_READY, 802)                                       \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)                                 \
    X(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)                         \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                             \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)                             \
    X(CUDA_ERROR_UNKNOWN, 999)                                                \
    X(CU_GET_PROC_ADDRESS_DEFAULT, 0)                                         \
    X(CU_GET_PROC_ADDRESS_SUCCESS, 0)                                         \
    X(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, 1)                                \
    X(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, 2)                          \
    X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                           \
    X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)                 \
    X(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41)                             \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                       \
    X(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)           \
    X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103)   \
    X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 110)       \
    X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 116)                     \
    X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 118)               \
    X(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 122)                 \
    X(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 124)                             \
    X(CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE, 0)                             \
    X(CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER, 100)                          \
    X(CU_MEMORYTYPE_HOST, 1)                                                  \
    X(CU_MEMORYTYPE_DEVICE, 2)                                                \
    X(CU_POINTER_ATTRIBUTE_CONTEXT, 1)                                        \
    X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                                    \
    X(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 3)                                 \
    X(CU_POINTER_ATTRIBUTE_HOST_POINTER, 4)                                   \
    X(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 6)                                    \
    X(CU_POINTER_ATTRIBUTE_BUFFER_ID, 7)                                      \
    X(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)                                     \
    X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                                 \
    X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                              \
    X(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                                    \
    X(CU_POINTER_ATTRIBUTE_MAPPED, 13)                                        \
    X(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 14)                          \
    X(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, 15)                    \
    X(CU_MEMHOSTALLOC_PORTABLE, 1)                                            \
    X(CU_MEMHOSTREGISTER_PORTABLE, 1)                                         \
    X(CU_MEM_LOCATION_TYPE_DEVICE, 1)                                         \
    X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)                                       \
    X(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1)                            \
    X(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0)                                    \
    X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                                  \
    X(CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 1)                                 \
    X(CU_STREAM_NON_BLOCKING, 1)                                              \
    X(CU_EVENT_DEFAULT, 0)                                                    \
    X(CU_EVENT_DISABLE_TIMING, 2)                                             \
    X(CU_STREAM_WAIT_VALUE_GEQ, 0)                                            \
    X(CU_STREAM_WAIT_VALUE_EQ, 1)                                             \
    X(CU_STREAM_WAIT_VALUE_AND, 2)                                            \
    X(CU_STREAM_WAIT_VALUE_NOR, 3)                                            \
    X(CU_STREAM_WAIT_VALUE_FLUSH, 1 << 30)                                    \
    X(CU_STREAM_WRITE_VALUE_DEFAULT, 0)                                       \
    X(CU_STREAM_CAPTURE_STATUS_NONE, 0)                                       \
    X(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1)                                     \
    X(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2)                                \
    X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                                 \
    X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                                      \
    X(CU_STREAM_MEM_OP_WAIT_VALUE_64, 4)                                      \
    X(CU_STREAM_MEM_OP_WRITE_VALUE_64, 5)

#ifndef DTN_CUDA_BY_NVIDIA

enum {
#define DTN_CUDA_NUMBER(name, value) name = value,
    DTN_CUDA_NUMBERS(DTN_CUDA_NUMBER)
#undef DTN_CUDA_NUMBER
};

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef uint64_t cuuint64_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct dtn_cuda_mem_op CUstreamBatchMemOpParams;
typedef struct dtn_cuda_mem_ops CUDA_BATCH_MEM_OP_NODE_PARAMS;
typedef struct dtn_cuda_uuid CUuuid;
typedef struct dtn_cuda_location CUmemLocation;
typedef struct dtn_cuda_allocation CUmemAllocationProp;
typedef struct dtn_cuda_access CUmemAccessDesc;
typedef void (*CUhostFn)(void *);
typedef int CUdevice_attribute;
typedef int CUpointer_attribute;
typedef int CUjit_option;
typedef int CUlibraryOption;
typedef int CUmemAllocationHandleType;
typedef int CUmemAllocationGranularity_flags;
typedef int CUmemRangeHandleType;
typedef int CUstreamCaptureStatus;
typedef int CUstreamCaptureMode;
typedef int CUdriverProcAddressQueryResult;

#endif

#endif

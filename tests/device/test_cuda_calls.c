/* test_cuda_calls.c - the list of driver calls against NVIDIA's own header
 *
 * The types of all parameters, the version in which each form of a call came,
 * the numbers and the layout of structs: if one differs, this file does not
 * compile.
 *
 * Without this test, a call could be declared with an int where the driver
 * takes a size_t, or asked for in a version that has another form of it; both
 * would be seen on a GPU only.
 */
#include "tests/support/tap.h"

#ifdef HAVE_CUDA_H
#include <cuda.h>
#include <cudaTypedefs.h>
#define DTN_CUDA_BY_NVIDIA
#include "device/cuda/calls.h"

#include <stddef.h>

#define SAME_CALL(name, since, skill, params)                                 \
    _Static_assert(__builtin_types_compatible_p(CUresult (*) params,          \
                                                PFN_##name##_v##since),       \
                   #name " since " #since);
DTN_CUDA_CALLS(SAME_CALL)

#define SAME_NUMBER(name, value) _Static_assert(name == (value), #name);
DTN_CUDA_NUMBERS(SAME_NUMBER)

#define SAME_FIELD(ours, theirs, field)                                       \
    _Static_assert(offsetof(struct ours, field) == offsetof(theirs, field)    \
                   && sizeof(((struct ours *)0)->field)                       \
                      == sizeof(((theirs *)0)->field), #theirs "." #field);
#define SAME_SIZE(ours, theirs)                                               \
    _Static_assert(sizeof(struct ours) == sizeof(theirs), #theirs);
SAME_SIZE(dtn_cuda_uuid, CUuuid)
SAME_SIZE(dtn_cuda_location, CUmemLocation)
SAME_FIELD(dtn_cuda_location, CUmemLocation, type)
SAME_FIELD(dtn_cuda_location, CUmemLocation, id)
SAME_SIZE(dtn_cuda_allocation, CUmemAllocationProp)
SAME_FIELD(dtn_cuda_allocation, CUmemAllocationProp, type)
SAME_FIELD(dtn_cuda_allocation, CUmemAllocationProp, requestedHandleTypes)
SAME_FIELD(dtn_cuda_allocation, CUmemAllocationProp, location)
SAME_FIELD(dtn_cuda_allocation, CUmemAllocationProp, allocFlags)
SAME_FIELD(dtn_cuda_allocation, CUmemAllocationProp,
           allocFlags.gpuDirectRDMACapable)
SAME_FIELD(dtn_cuda_allocation, CUmemAllocationProp, allocFlags.usage)
SAME_SIZE(dtn_cuda_access, CUmemAccessDesc)
SAME_FIELD(dtn_cuda_access, CUmemAccessDesc, location)
SAME_FIELD(dtn_cuda_access, CUmemAccessDesc, flags)


/* The driver has a union for all kinds of operations. */
#define SAME_WORD(kind, field)                                                \
    _Static_assert(offsetof(struct dtn_cuda_mem_op, field)                    \
                   == offsetof(CUstreamBatchMemOpParams, kind.field),         \
                   #kind "." #field);
SAME_SIZE(dtn_cuda_mem_op, CUstreamBatchMemOpParams)
SAME_WORD(waitValue, operation)
SAME_WORD(waitValue, address)
SAME_WORD(waitValue, value64)
SAME_WORD(waitValue, flags)
SAME_WORD(waitValue, alias)
SAME_WORD(writeValue, address)
SAME_WORD(writeValue, value64)
SAME_WORD(writeValue, flags)
SAME_WORD(writeValue, alias)
SAME_SIZE(dtn_cuda_mem_ops, CUDA_BATCH_MEM_OP_NODE_PARAMS)
SAME_FIELD(dtn_cuda_mem_ops, CUDA_BATCH_MEM_OP_NODE_PARAMS, ctx)
SAME_FIELD(dtn_cuda_mem_ops, CUDA_BATCH_MEM_OP_NODE_PARAMS, count)
SAME_FIELD(dtn_cuda_mem_ops, CUDA_BATCH_MEM_OP_NODE_PARAMS, paramArray)
SAME_FIELD(dtn_cuda_mem_ops, CUDA_BATCH_MEM_OP_NODE_PARAMS, flags)

#define ONE_CALL(name, since, skill, params) + 1
#define ONE_NUMBER(name, value) + 1

int main(void)
{
    int calls = 0 DTN_CUDA_CALLS(ONE_CALL);
    int numbers = 0 DTN_CUDA_NUMBERS(ONE_NUMBER);

    ok(calls > 50, "%d calls are those of CUDA %d.%d, each in the version that "
       "the list names", calls, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    ok(numbers > 90, "%d numbers and 6 structs are NVIDIA's, too", numbers);
    return done();
}
#else
int main(void)
{
    return skip_all("no cuda.h: install the CUDA toolkit (configure looks in "
                    "--with-cuda=DIR, beside nvcc and in /usr/local/cuda)");
}
#endif

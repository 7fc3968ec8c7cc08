/* pass.c - chooses a kernel or the CPU for an operation
 *
 * A kernel works on memory of the device, the CPU on memory of the host.
 * Arrays on the other side are copied over the bus, piece by piece: by upload.c
 * for a kernel, by bounce.c for the CPU.  The side that needs fewer bytes
 * copied does the operation.  Example: an array on the device and one in host
 * memory are summed into the device.  The kernel needs one array copied, the
 * CPU two.
 */
#include "base/array.h"
#include "base/error.h"
#include "device/cuda/cuda.h"
#include "dtensor.h"

#include <stdbool.h>

/* Where the arrays are, and room for the addresses of two pieces of them. */
static int pass_find(struct dtn_cuda *cuda, struct dtn_cuda_pass *pass)
{
    const struct dtn_memory *memory = &cuda->memory;
    const int n = pass->nsrc;

    if (!dtn_array_reserve(&cuda->table, &cuda->capacity, 3 * n + 1,
                           sizeof *cuda->table))
        return dtn_fail_nomem(&cuda->failure, cuda->name,
                              3 * (size_t)n * sizeof *cuda->table);
    pass->here = cuda->table;
    pass->parts = cuda->table + n;
    pass->dst_here = !pass->dst || !dtn_cuda_holds(memory, pass->dst);
    for (int i = 0; i < n; i++)
        pass->here[i] = dtn_cuda_holds(memory, pass->src[i]) ? NULL
                                                             : pass->src[i];
    return 0;
}

/* Is less copied for a kernel than for the CPU? */
static bool pass_suits_kernel(const struct dtn_cuda_pass *pass)
{
    size_t here = pass->dst && pass->dst_here ? pass->dst_bytes : 0;
    size_t there = pass->dst_here ? 0 : pass->dst_bytes;

    for (int i = 0; i < pass->nsrc; i++)
        *(pass->here[i] ? &here : &there) += pass->src_bytes[i > 0];
    return here <= there;
}

int dtn_cuda_run(struct dtn_cuda *cuda, struct dtn_cuda_pass *pass)
{
    int rc = pass->count > 0 ? pass_find(cuda, pass) : 0;

    if (rc != 0 || pass->count == 0)
        return rc;
    if (cuda->library && pass->launch && pass_suits_kernel(pass)
        && dtn_cuda_room(cuda))
        return dtn_cuda_upload(cuda, pass);
    return dtn_cuda_bounce(cuda, pass);
}

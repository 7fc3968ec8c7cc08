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

/* The arrays that the CPU reaches, or those that it does not: bytes of an
 * element of all of them, and their number.
 */
static size_t pass_bytes(const struct dtn_cuda_pass *pass, bool here, int *np)
{
    const bool dst = pass->dst && pass->dst_here == here;
    size_t bytes = dst ? pass->dst_bytes : 0;

    *np = dst;
    for (int i = 0; i < pass->nsrc; i++)
        if ((pass->here[i] != NULL) == here) {
            bytes += pass->src_bytes[i > 0];
            ++*np;
        }
    return bytes;
}

/* Is less copied for a kernel than for the CPU? */
static bool pass_suits_kernel(const struct dtn_cuda_pass *pass)
{
    int here, there;

    return pass_bytes(pass, true, &here) <= pass_bytes(pass, false, &there);
}

/* Elements of a piece: as many as fit 4 MiB with all arrays that are copied, a
 * multiple of 64 if so many do; then all pieces are aligned.  0: none fits.
 */
static size_t pass_step(const struct dtn_cuda_pass *pass, bool kernel)
{
    int arrays;
    const size_t bytes = pass_bytes(pass, kernel, &arrays)
                       + (kernel ? pass->extra_bytes : 0);
    const size_t gaps = ((size_t)arrays + 1) * DTN_CUDA_ALIGN;
    size_t step;

    if (bytes == 0)
        return pass->count;
    step = gaps < DTN_CUDA_SLOT_BYTES ? (DTN_CUDA_SLOT_BYTES - gaps) / bytes
                                      : 0;
    return step < 64 ? step : step / 64 * 64;
}

int dtn_cuda_run(struct dtn_cuda *cuda, struct dtn_cuda_pass *pass)
{
    int rc = pass->count > 0 ? pass_find(cuda, pass) : 0;
    bool kernel;

    if (rc != 0 || pass->count == 0)
        return rc;
    kernel = cuda->library && pass->launch && pass_suits_kernel(pass)
          && dtn_cuda_room(cuda);
    pass->step = pass_step(pass, kernel);
    if (pass->step == 0)
        return dtn_fail(&cuda->failure, DTENSOR_ENOMEM, "%s: one element of %d "
                        "arrays does not fit %zu bytes (use fewer ranks)",
                        cuda->name, pass->nsrc + 1, DTN_CUDA_SLOT_BYTES);
    return kernel ? dtn_cuda_upload(cuda, pass) : dtn_cuda_bounce(cuda, pass);
}

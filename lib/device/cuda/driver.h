/* driver.h - the CUDA driver of this machine, loaded at run time */
#ifndef DTN_DEVICE_CUDA_DRIVER_H
#define DTN_DEVICE_CUDA_DRIVER_H

#include "base/compiler.h"
#include "device/cuda/calls.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

/* What drivers can do.  Every driver that loads has the calls of BASE: device
 * memory, streams, events, copies.  Others may be missing from old drivers.
 */
enum dtn_cuda_skill {
    DTN_CUDA_BASE,
    DTN_CUDA_ARENA,               /* virtual memory that processes share      */
    DTN_CUDA_DMABUF,              /* export of memory to RDMA cards           */
    DTN_CUDA_VALUES,              /* streams that wait for and write values   */
    DTN_CUDA_KERNELS,             /* loading and launching of kernels         */
    DTN_CUDA_GRAPHS,              /* recording and launching of graphs        */
    DTN_CUDA_SKILLS
};

/* A call that the driver does not have. */
struct dtn_cuda_lack {
    const char *call;             /* its name; NULL: nothing is missing       */
    int since;                    /* version of CUDA that has it, 12000: 12.0 */
};

#define DTN_CUDA_FIELD(name, since, skill, params) CUresult (*name) params;

struct dtn_cuda_driver {
    int version;                  /* of CUDA that it can do, 13000: 13.0      */
    struct dtn_cuda_lack lacks[DTN_CUDA_SKILLS]; /* the first missing call    */
    DTN_CUDA_CALLS(DTN_CUDA_FIELD) /* NULL: the driver does not have it       */
};

#undef DTN_CUDA_FIELD

/* The oldest driver that can be loaded: the first with cuGetProcAddress(). */
#define DTN_CUDA_OLDEST 11030

/* Load libcuda.so.1 and initialise it, once for the process; later calls return
 * the same.  It is never unloaded.  Call it after fork(): a child cannot use
 * what its parent has initialised.
 *
 * Errors: ENODEV  no driver, too old, without a call of BASE, or cuInit failed
 */
int dtn_cuda_driver_load(const struct dtn_cuda_driver **driverp,
                         struct dtensor_error *err);

/* Has the program, or this library, loaded libcuda.so.1?  It takes 20 ns if
 * nothing was loaded since the answer was no, else up to 20 us.
 */
bool dtn_cuda_driver_is_loaded(void);

/* The driver as it was loaded by anybody, NULL: by nobody, or too old.  It is
 * not initialised here, so its calls may fail.
 */
const struct dtn_cuda_driver *dtn_cuda_driver_seen(void);

/* Can it do that?  If not, *why (NULL: not wanted) says what is missing, such
 * as "the driver (CUDA 11.4) has no cuLibraryLoadData (CUDA 12.0)".
 */
bool dtn_cuda_can(const struct dtn_cuda_driver *driver,
                  enum dtn_cuda_skill skill, char *why, size_t size);

/* Fill *err for a call that returned `rc` and return the code of the library:
 * "FMT: cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
 */
int dtn_cuda_fail(struct dtensor_error *err,
                  const struct dtn_cuda_driver *driver, const char *call,
                  CUresult rc, const char *fmt, ...) DTN_PRINTF(5, 6);

/* Does every later call return this error, until the process ends? */
bool dtn_cuda_sticky(CUresult rc);

#endif

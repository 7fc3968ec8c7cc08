/* path.h - which path memory of GPUs takes to the peers, in words */
#ifndef DTN_FABRIC_PATH_H
#define DTN_FABRIC_PATH_H

#include <stdio.h>

struct dtensor_ctx;

/* Print the path of this rank and why not a better one, a few lines that begin
 * with "memory of GPUs: ".  Asks the driver and the RDMA devices of this
 * machine.
 */
void dtn_gpu_path_write(const struct dtensor_ctx *ctx, FILE *stream);

#endif

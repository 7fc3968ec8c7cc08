/* cma.h - the steps that copy and reduce private memory of peers */
#ifndef DTN_EXEC_CMA_H
#define DTN_EXEC_CMA_H

struct dtn_exec_run;
struct dtn_exec_step;

/* Allocate what the reductions of an executable need. */
int dtn_cma_warm(struct dtn_exec_run *run);

int dtn_cma_copy(struct dtn_exec_run *run, void *dst,
                 const struct dtn_exec_step *bound);
int dtn_cma_reduce(struct dtn_exec_run *run, const struct dtn_exec_step *bound);

#endif

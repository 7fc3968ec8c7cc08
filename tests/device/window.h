/* window.h - the memory of a real GPU, open to the CPU for a while */
#ifndef TESTS_DEVICE_WINDOW_H
#define TESTS_DEVICE_WINDOW_H

struct dtn_cuda;

/* Windows are in the memory of this GPU from now on.  It may be closed. */
void window_of(const struct dtn_cuda *cuda);

/* Let the CPU read and write the device memory at `mem`.  0: there is none. */
int window_open(const void *mem);

/* What the CPU wrote goes to the GPU; no window is open then. */
void window_shut(void);

#endif

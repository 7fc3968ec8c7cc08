/* rdma.h - is there an RDMA device for tests to run over? */
#ifndef TESTS_RDMA_H
#define TESTS_RDMA_H

/* Why nothing can run over rc here, or NULL. */
const char *rdma_absent(void);

#endif

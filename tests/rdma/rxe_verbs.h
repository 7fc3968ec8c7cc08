/* rxe_verbs.h - registers dma-bufs on soft RDMA devices, for tests */
#ifndef TESTS_RDMA_RXE_VERBS_H
#define TESTS_RDMA_RXE_VERBS_H

/* For how many more the device has room; then ENOMEM, as of a full table. */
extern int rxe_registrations_left;

#endif

/* end.h - one end of a reliable connection, by libibverbs alone
 *
 * For bare.c and bound.c, which ask what the device does without this library.
 * Two processes, ME = 1 and 2, meet through FILE.1 and FILE.2, which both see.
 */
#ifndef TESTS_RDMA_END_H
#define TESTS_RDMA_END_H

#include <infiniband/verbs.h>
#include <stddef.h>

enum { END_DEPTH = 512, END_INLINE = 220, END_PIECES = 16 };

/* What one end must know of the other. */
struct end_name {
    unsigned qpn, key;
    unsigned long long address;
    unsigned char gid[16];
};

struct end {
    const char *file;
    int me;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *from, *to;     /* what we write, and what is written to us */
    struct end_name other;
};

/* Exit with 1 and the reason of `what` unless it is good. */
void end_need(int good, const char *what);

/* Open the first device with two buffers of `bytes`, one to write from and one
 * to write to; meet the other end and join to it.  The device repeats a write
 * `retries` times; 7 means without limit.
 */
void end_open(struct end *end, const char *file, int me, size_t bytes,
              int retries);

#endif

/* writes.h - two processes that write to each other, by libibverbs alone
 *
 * What bound.c and turns.c share.  Each process has `out`, from which it
 * writes, and `in`, into which the other writes; a write goes to the same place
 * in `in` of the other.  The places:
 *
 *     0               4 blocks of 1 MiB
 *     WRITES_WORD     the number of the last exchange ends here
 *     WRITES_TIMES    the times of process 2, to be compared
 *     WRITES_FREE     64 bytes for the caller
 */
#ifndef TESTS_RDMA_WRITES_H
#define TESTS_RDMA_WRITES_H

#include "tests/rdma/end.h"

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WRITES_BLOCK = 1 << 20,
    WRITES_CALLS = 2000,          /* most times of one measurement            */
    WRITES_WORD = 4 * WRITES_BLOCK + 4096,
    WRITES_TIMES = WRITES_WORD + 64,
    WRITES_FREE = WRITES_TIMES + WRITES_CALLS * 8,
    WRITES_BYTES = WRITES_FREE + 64
};

struct writes {
    struct end end;               /* the connection                           */
    unsigned char *out, *in;      /* [WRITES_BYTES] each                      */
    uint64_t number;              /* of the last exchange                     */
    unsigned posted;              /* requests since the last completion       */
};

/* Meet the other process through FILE; me: 1 or 2.  `out` begins with small
 * whole numbers.
 */
void writes_open(struct writes *w, const char *file, int me);

/* A piece of `out`, and a write of such pieces to `at`. */
struct ibv_sge writes_piece(const struct writes *w, size_t at, size_t size);
struct ibv_send_wr writes_request(const struct writes *w, struct ibv_sge *sge,
                                  int pieces, size_t at);

/* Post a chain; one of 64 requests asks for a completion. */
void writes_post(struct writes *w, struct ibv_send_wr *wr, int n);

/* Write `size` bytes, of which the last eight are the next number; wait for
 * that number of the other; both.
 */
void writes_say(struct writes *w, size_t size);
void writes_hear(const struct writes *w, uint64_t number);
void writes_exchange(struct writes *w, size_t size);

/* Write a block from place to place, and exchange a number behind it. */
void writes_move(struct writes *w, size_t from, size_t to);

/* Every second row of two blocks goes to one block of the other: `gathered` of
 * them by one request, and 16 requests by one call.  Exchange a number.
 */
void writes_rows(struct writes *w, size_t row, int gathered);

/* Of each call the time of the slower process, in process 1. */
void writes_slower(struct writes *w, double *us, int calls);

/* Sort the times; us[0] is the best then, us[calls / 2] the median. */
void writes_sort(double *us, int calls);

#endif

/* tcp_pair.h - a connection of the tcp transport whose peer is the test */
#ifndef TESTS_TCP_PAIR_H
#define TESTS_TCP_PAIR_H

#include "transport/tcp/tcp.h"

#include <stddef.h>

/* Rank 0, and its connection to rank 1 at the other end of a socket pair. */
struct tcp_pair {
    struct dtn_tcp *tcp;          /* of rank 0                                */
    struct dtn_tcp_peer *peer;    /* there: rank 1                            */
    int far;                      /* the socket of rank 1: the test           */
};
extern struct tcp_pair pair;

void pair_open(void);
void pair_close(void);

/* Rank 1 sends bytes, and rank 0 receives what has come. */
void pair_arrive(const void *bytes, size_t size);

#endif

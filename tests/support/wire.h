/* wire.h - a transport between forked ranks, without the rooms above it
 *
 * wire_prepare() before the fork makes mailboxes for the addresses and a page
 * that all ranks share; wire_open() and wire_connect_all() in each rank do
 * what a context would.  The helpers that wait fail the rank after 20 s.
 */
#ifndef TESTS_WIRE_H
#define TESTS_WIRE_H

#include "base/log.h"
#include "base/wait.h"
#include "cluster/cluster.h"
#include "transport/arena.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct dtn_fault_plan;
struct dtn_transport;
struct dtn_transport_ops;

#define WIRE_MAX 8
#define WIRE_ARENA ((size_t)96 << 20)

/* What a suite runs over: a transport, and what is done to it, or NULL. */
struct wire_kind {
    const char *label;
    const struct dtn_transport_ops *ops;
    const struct dtn_fault_plan *plan;
};

/* One page seen by all ranks. */
struct wire_page {
    _Atomic int arrived, round;           /* of wire_barrier()               */
    _Atomic int flag[WIRE_MAX];
    pid_t pid[WIRE_MAX];
};

struct wire {
    const struct wire_kind *kind;
    int n, rank;
    struct dtn_transport *tp;
    struct dtn_arena arena;
    struct dtn_transport_conf conf;
    struct dtn_log log;
    struct dtn_open_args args;
    struct dtn_blob blobs[WIRE_MAX];
};

/* What wire_open() changes of the cluster file's keys, or NULL. */
extern void (*wire_settings)(struct dtn_transport_conf *conf);
extern struct wire_page *wire_page;

struct wire_letter {
    int from;
    struct dtn_blob blob;
    struct dtn_remote remote;
};

void wire_prepare(void);
void wire_cleanup(void);

/* One turn of waiting for `what`; true so that it can be a loop condition. */
bool wire_turn(struct wire *w, struct dtn_wait *wait, const char *what);
struct dtn_wait wire_patience(const struct wire *w);

/* All ranks are here; the transport goes on meanwhile. */
void wire_barrier(struct wire *w);

/* remotes[r] = what rank r gave as mine[own rank]. */
void wire_swap(struct wire *w, const struct dtn_remote mine[],
               struct dtn_remote remotes[]);
void wire_open(struct wire *w, const struct wire_kind *kind, int rank, int n);
void wire_connect(struct wire *w, int peer);

/* Swap addresses.  The descriptors are closed by wire_close_blobs(). */
void wire_meet(struct wire *w);
void wire_close_blobs(struct wire *w);
void wire_connect_all(struct wire *w);
void wire_close(struct wire *w);
struct dtn_remote wire_reg(struct wire *w, void *mem, size_t size);
void *wire_alloc(struct wire *w, size_t size);
void wire_put(struct wire *w, int peer, struct dtn_remote dst, const void *src,
              size_t size);
void wire_flush(struct wire *w, int peer);
void wire_signal(struct wire *w, int peer, uint16_t tag, uint32_t number);

/* The same with data, or NULL. */
void wire_send(struct wire *w, int peer, uint16_t tag, uint32_t number,
               const struct dtn_eager *data);

/* Take the next signal, which must be this one. */
void wire_check(struct wire *w, int peer, const struct dtn_signal *s,
                uint16_t tag, uint32_t number);
void wire_await(struct wire *w, int peer, uint16_t tag, uint32_t number);

/* Wait until health(peer) is no longer 0: what it is. */
int wire_health(struct wire *w, int peer, int *culprit, int *code);
int wire_count_fds(void);

#endif

/* queue.h - queue pairs: made, and joined to the peer's */
#ifndef DTN_TRANSPORT_VERBS_QUEUE_H
#define DTN_TRANSPORT_VERBS_QUEUE_H

#include "dtensor.h"

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_transport_conf;
struct dtn_verbs;
struct dtn_verbs_device;
struct dtn_verbs_end;
struct dtn_verbs_rail;

enum {
    DTN_VERBS_DEPTH = 128,       /* work requests of a queue pair             */
    DTN_VERBS_QUEUES_MAX = 16,   /* queue pairs to one peer, of all rails     */
    DTN_VERBS_MESSAGE_MAX = 1 << 23 /* bytes of one write                     */
};

/* One connection.  Requests are numbered from 1.  Queue q is of rail q modulo
 * their number; queue 0 carries the signals.
 */
struct dtn_verbs_queue {
    struct ibv_qp *qp;            /* owned                                    */
    struct dtn_verbs_rail *rail;  /* whose device it is of                    */
    uint32_t psn;                 /* our first packet number, random          */
    uint32_t share;               /* weight in striped puts: Mb/s, or 1       */
    size_t request_max;           /* bytes of one write                       */
    enum ibv_wc_status error;     /* first bad completion; 0: none            */
    uint64_t posted, completed;   /* number of the last request that is       */
    uint64_t last_put;            /* number of the newest put                 */
    uint64_t probe;               /* of the longest packet; 0: not sent yet   */
};

/* Queue pairs to each peer on each of so many rails. */
int dtn_verbs_queues_wanted(const struct dtn_transport_conf *conf, int nrails);

/* Make our queue pairs for a peer; join them to those of its greeting.
 * Errors: EMISMATCH, ESYS
 */
int dtn_verbs_queues_create(struct dtn_verbs *verbs, int peer,
                            struct dtensor_error *err);
int dtn_verbs_queues_join(struct dtn_verbs *verbs, int peer,
                          struct dtensor_error *err);

/* How packets get from a device to a peer's end, by the cluster file. */
void dtn_verbs_path(const struct dtn_verbs *verbs,
                    const struct dtn_verbs_device *device,
                    const struct dtn_verbs_end *end, struct ibv_ah_attr *attr);

#endif

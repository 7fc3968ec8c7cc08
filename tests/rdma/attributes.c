/* attributes.c - what the device is asked for
 *
 * Much of what makes a connection fast or allowed changes no result: a service
 * level, the number of the first packet, which requests are inline.  So this
 * program intercepts calls of libibverbs, and queries the attributes of queue
 * pairs.  It also plays other devices: one that takes less inline, one with
 * short completion queues, one that writes in order.
 */
#include "base/compiler.h"
#include "base/wait.h"
#include "cluster/cluster.h"
#include "transport/transport.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/events.h"
#include "transport/verbs/meet.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/rail.h"
#include "dtensor.h"
#include "tests/support/wire.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* --------------------------------------------------- intercepted calls --- */

enum { HEARD_MAX = 64 };

static struct heard {
    int npkeys, nways, npsns;
    uint16_t pkey[HEARD_MAX];     /* partitions of queue pairs, by index     */
    struct ibv_ah_attr way[HEARD_MAX];
    uint32_t psn[HEARD_MAX];
} heard;
static int any_pkey;              /* the device gets 0                       */

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int (*modify)(struct ibv_qp *, struct ibv_qp_attr *, int);

    *(void **)&modify = dlsym(RTLD_NEXT, "ibv_modify_qp");
    if (mask & IBV_QP_PKEY_INDEX)
        heard.pkey[heard.npkeys++ % HEARD_MAX] = attr->pkey_index;
    if (mask & IBV_QP_AV)
        heard.way[heard.nways++ % HEARD_MAX] = attr->ah_attr;
    if (mask & IBV_QP_SQ_PSN && qp->qp_type == IBV_QPT_RC)
        heard.psn[heard.npsns++ % HEARD_MAX] = attr->sq_psn;
    if (mask & IBV_QP_PKEY_INDEX && any_pkey)
        attr->pkey_index = 0;
    return modify(qp, attr, mask);
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct ibv_ah *(*create)(struct ibv_pd *, struct ibv_ah_attr *);

    *(void **)&create = dlsym(RTLD_NEXT, "ibv_create_ah");
    heard.way[heard.nways++ % HEARD_MAX] = *attr;
    return create(pd, attr);
}

/* ------------------------------------------------------ played devices --- */

static uint32_t inline_most = UINT32_MAX;
static int cqe_most = INT32_MAX;
static int in_order;

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct ibv_qp *(*create)(struct ibv_pd *, struct ibv_qp_init_attr *);
    uint32_t asked = init->cap.max_inline_data;
    struct ibv_qp *qp;

    *(void **)&create = dlsym(RTLD_NEXT, "ibv_create_qp");
    if (asked > inline_most) {
        errno = EINVAL;
        return NULL;
    }
    qp = create(pd, init);
    if (inline_most < UINT32_MAX)
        init->cap.max_inline_data = asked;
    return qp;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    int (*query)(struct ibv_context *, struct ibv_device_attr *);
    int rc;

    *(void **)&query = dlsym(RTLD_NEXT, "ibv_query_device");
    rc = query(context, attr);
    if (attr->max_cqe > cqe_most)
        attr->max_cqe = cqe_most;
    return rc;
}

/* The device does not let a completion queue grow. */
static bool keeps_size;

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    int (*resize)(struct ibv_cq *, int);

    *(void **)&resize = dlsym(RTLD_NEXT, "ibv_resize_cq");
    return keeps_size ? EOPNOTSUPP : resize(cq, cqe);
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
                               uint32_t flags)
{
    (void)qp;
    return op == IBV_WR_RDMA_WRITE && flags == 0 && in_order;
}

/* --------------------------------------------------- requests, counted --- */

static int (*posted_by)(struct ibv_qp *qp, struct ibv_send_wr *wr,
                        struct ibv_send_wr **bad);
static struct wire *posted_of;
static struct posted {
    int requests, told;
    int of_length;                /* have `length`                           */
    int inlined, alone;           /* of those, and those posted by themselves*/
    int under_way;                /* at most, of what the CQ must hold       */
} posted;
static uint32_t length;

static int post_counted(struct ibv_qp *qp, struct ibv_send_wr *first,
                        struct ibv_send_wr **bad)
{
    const struct dtn_verbs_rail *rail = &dtn_verbs_of(posted_of->tp)->rail[0];

    if (qp->qp_type != IBV_QPT_RC)
        return posted_by(qp, first, bad);
    for (struct ibv_send_wr *wr = first; wr; wr = wr->next) {
        posted.requests++;
        posted.told += (wr->send_flags & IBV_SEND_SIGNALED) != 0;
        if (wr->num_sge != 1 || wr->sg_list[0].length != length)
            continue;
        posted.of_length++;
        posted.inlined += (wr->send_flags & IBV_SEND_INLINE) != 0;
        posted.alone += wr == first && !wr->next;
    }
    if (rail->outstanding > posted.under_way)
        posted.under_way = rail->outstanding;
    return posted_by(qp, first, bad);
}

static void post_listen(struct wire *w)
{
    struct ibv_context *context = dtn_verbs_of(w->tp)->rail[0].device.context;

    posted_of = w;
    posted_by = context->ops.post_send;
    context->ops.post_send = post_counted;
}

/* A signal of `len` bytes to the other rank, and from it. */
static void turn(struct wire *w, uint16_t len, uint32_t number)
{
    struct dtn_signal s = { .fingerprint = number, .len = len };
    struct dtn_wait wait = wire_patience(w);
    const struct dtn_signal *got;

    for (int i = 0; i < len; i++)
        s.payload[i] = (unsigned char)(number * 5 + (uint32_t)i);
    while (w->tp->ops->signal(w->tp, !w->rank, &s, NULL) == DTENSOR_EAGAIN)
        wire_turn(w, &wait, "room");
    while ((got = w->tp->ops->peek(w->tp, !w->rank)) == NULL)
        wire_turn(w, &wait, "a signal");
    need(got->fingerprint == number && got->len == len
         && memcmp(got->payload, s.payload, len) == 0,
         "signal %u of %d bytes is wrong", number, len);
    w->tp->ops->consume(w->tp, !w->rank);
}

/* --------------------------------------------------------- queue pairs --- */

static void settings_all(struct dtn_transport_conf *conf)
{
    conf->mtu = 1024;
    conf->service_level = 5;
    conf->traffic_class = 106;
    conf->retry_count = 4;
    conf->rnr_retry = 3;
    conf->timeout = 13;
    conf->qp_per_peer = 2;
}

/* Partition 1, which the device here has not. */
static void open_partition(struct wire *w)
{
    struct dtn_verbs *verbs = dtn_verbs_of(w->tp);
    struct dtensor_error err;

    dtn_verbs_meet_close(verbs);
    heard = (struct heard){ 0 };
    any_pkey = 1;
    verbs->rail[0].device.pkey_index = 1;
    need(dtn_verbs_meet_open(verbs, &err) == 0, "%s", err.text);
}

static void queue_is_as_set(const struct dtn_verbs_peer *peer, int q)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    need(ibv_query_qp(peer->queue[q].qp, &attr, IBV_QP_AV | IBV_QP_PATH_MTU
                      | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY
                      | IBV_QP_DEST_QPN, &init) == 0, "ibv_query_qp");
    need(attr.path_mtu == IBV_MTU_1024, "MTU %d", 128 << attr.path_mtu);
    need(attr.timeout == 13 && attr.retry_cnt == 4 && attr.rnr_retry == 3,
         "timeout %d, retry_count %d, rnr_retry %d", attr.timeout,
         attr.retry_cnt, attr.rnr_retry);
    need(attr.dest_qp_num == peer->greeting.qpn[q], "another queue pair");
    need(attr.ah_attr.is_global && attr.ah_attr.grh.traffic_class == 106,
         "traffic class %d", attr.ah_attr.grh.traffic_class);
}

static void queues_rank(int rank, int n, void *arg)
{
    struct wire w;

    wire_open(&w, arg, rank, n);
    open_partition(&w);
    wire_connect_all(&w);
    for (int q = 0; q < 2; q++)
        queue_is_as_set(dtn_verbs_peer(w.tp, !rank), q);
    need(heard.npkeys == 3 && heard.nways == 3, "%d queue pairs, %d ways",
         heard.npkeys, heard.nways);
    for (int i = 0; i < 3; i++)
        need(heard.pkey[i] == 1 && heard.way[i].sl == 5
             && heard.way[i].grh.traffic_class == 106
             && heard.way[i].grh.hop_limit == 64, "queue pair %d: partition "
             "%d, service level %d, traffic class %d, hop limit %d", i,
             heard.pkey[i], heard.way[i].sl, heard.way[i].grh.traffic_class,
             heard.way[i].grh.hop_limit);
    need(heard.npsns == 2 && heard.psn[0] != heard.psn[1]
         && heard.psn[0] < 1 << 24 && heard.psn[1] < 1 << 24,
         "packets begin at %u and %u", heard.psn[0], heard.psn[1]);
    wire_barrier(&w);
    wire_close(&w);
}

/* ------------------------------------------------------------ requests --- */

/* 64 signals of 8 bytes, each a request of 56, and one of 44 bytes, of 128. */
static void inline_rank(int rank, int n, void *arg)
{
    struct wire w;

    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    post_listen(&w);
    length = 56;
    for (uint32_t i = 0; i < 64; i++)
        turn(&w, 8, i);
    need(posted.of_length == 64 && posted.inlined == 64 && posted.alone == 64,
         "of %d signals %d were inline, %d alone", posted.of_length,
         posted.inlined, posted.alone);
    need(posted.told <= posted.requests / 16 + 1, "%d of %d ask for a "
         "completion", posted.told, posted.requests);
    posted.inlined = posted.of_length = 0;
    length = 128;
    turn(&w, DTN_PAYLOAD_MAX, 64);
    need(posted.of_length == 1 && posted.inlined == (inline_most > 128),
         "of %d long ones %d were inline", posted.of_length, posted.inlined);
    wire_barrier(&w);
    wire_close(&w);
}

/* ----------------------------------------------------- few completions --- */

/* Only every 100th poll finds completions, so that they accumulate. */
static int (*polled_by)(struct ibv_cq *cq, int n, struct ibv_wc *wc);

static int poll_late(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    static int looks;

    return ++looks % 100 ? 0 : polled_by(cq, n, wc);
}

static void poll_delay(struct wire *w)
{
    struct ibv_context *context = dtn_verbs_of(w->tp)->rail[0].device.context;

    polled_by = context->ops.poll_cq;
    context->ops.poll_cq = poll_late;
}

static void settings_queues(struct dtn_transport_conf *conf)
{
    conf->qp_per_peer = 4;
}

/* 1 MiB to the others over four queue pairs each, 16 times. */
static void completions_rank(int rank, int n, void *arg)
{
    const size_t size = (size_t)1 << 20;
    struct dtn_remote mine[3], there[3];
    unsigned char *in[3], *out;
    struct dtn_verbs *verbs;
    struct wire w;

    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    verbs = dtn_verbs_of(w.tp);
    need(verbs->rail[0].cqe == cqe_most, "%d completions", verbs->rail[0].cqe);
    post_listen(&w);
    poll_delay(&w);
    out = wire_alloc(&w, size);
    for (int r = 0; r < n; r++) {
        in[r] = wire_alloc(&w, size);
        mine[r] = wire_reg(&w, in[r], size);
    }
    wire_swap(&w, mine, there);
    for (uint32_t round = 1; round <= 16; round++) {
        memset(out, rank * 16 + (int)round, size);
        for (size_t at = 0; at < size; at += size / 16)
            for (int r = 0; r < n; r++)
                if (r != rank)
                    wire_put(&w, r, (struct dtn_remote){ there[r].addr + at,
                             there[r].key }, out + at, size / 16);
        for (int r = 0; r < n; r++)
            if (r != rank)
                wire_signal(&w, r, 1, round);
        for (int r = 0; r < n; r++) {
            if (r == rank)
                continue;
            wire_await(&w, r, 1, round);
            for (size_t i = 0; i < size; i++)
                need(in[r][i] == (unsigned char)(r * 16 + (int)round),
                     "round %u: byte %zu from %d", round, i, r);
            wire_flush(&w, r);
        }
        wire_barrier(&w);
    }
    need(posted.under_way > cqe_most / 2 && posted.under_way <= cqe_most,
         "%d under way", posted.under_way);
    need(dtn_verbs_events_poll(verbs) == 0 &&
             verbs->rail[0].device.events.number == 0,
         "the device has something to say");
    wire_close(&w);
}

/* Two peers of four queue pairs each. */
static void growth_rank(int rank, int n, void *arg)
{
    const struct dtn_verbs_rail *rail;
    struct wire w;
    int want;

    wire_open(&w, arg, rank, n);
    rail = dtn_verbs_of(w.tp)->rail;
    want = 4 * DTN_VERBS_DEPTH * (keeps_size ? n : 1);
    need(rail->cqe == want && rail->cq->cqe >= want, "%d completions at first",
         rail->cqe);
    wire_connect_all(&w);
    want = 4 * DTN_VERBS_DEPTH * (keeps_size ? n : n - 1);
    need(rail->cqe == want && rail->cq->cqe >= want, "%d completions",
         rail->cqe);
    wire_barrier(&w);
    wire_close(&w);
}

/* --------------------------------------------------------------- order --- */

/* Signals of all lengths, some with data. */
static void order_lengths(struct wire *w)
{
    static const size_t along[] = { 0, 1, 100, 4000, 4096 };
    struct dtn_remote mine[2], there[2];
    unsigned char *in, *out;
    uint32_t number = 0;

    in = wire_alloc(w, 4096);
    out = wire_alloc(w, 4096);
    mine[!w->rank] = wire_reg(w, in, 4096);
    wire_swap(w, mine, there);
    for (int round = 0; round < 3; round++)
        for (uint16_t len = 0; len <= DTN_PAYLOAD_MAX; len++)
            for (size_t i = 0; i < DTN_COUNT(along); i++) {
                memset(in, 0, 4096);
                memset(out, (int)++number, 4096);
                wire_barrier(w);
                if (along[i] > 0)
                    wire_put(w, !w->rank, there[!w->rank], out, along[i]);
                turn(w, len, number);
                for (size_t b = 0; b < 4096; b++)
                    need(in[b] == (b < along[i] ? (unsigned char)number : 0),
                         "%zu bytes along: byte %zu", along[i], b);
            }
}

/* A device that writes in order gets plain lines: 8 bytes, 24 more, a number.
 */
static void order_rank(int rank, int n, void *arg)
{
    bool both = in_order == 1;
    struct wire w;

    if (!both)
        in_order = rank;
    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    need(dtn_verbs_peer(w.tp, !rank)->plain == both, "lines are of %s form",
         both ? "the numbered" : "the plain");
    order_lengths(&w);
    post_listen(&w);
    length = both ? 40 : 56;
    turn(&w, 8, 1);
    need(posted.of_length == 1, "a signal of 8 bytes has another length");
    wire_barrier(&w);
    wire_close(&w);
}

/* ----------------------------------------------------------------- all --- */

static const struct attribute_case {
    int n;
    rank_main_f *run;
    const char *claim;
    void (*settings)(struct dtn_transport_conf *conf);
    uint32_t inline_most;
    int cqe_most, in_order;
    bool keeps_size;
} cases[] = {
    { 2, queues_rank, "MTU, service level, traffic class, partition, hop limit "
      "64, retries and timeouts reach queue pairs; numbers begin at random",
      settings_all, UINT32_MAX, INT32_MAX, 0, false },
    { 2, inline_rank, "a short signal is one inline request by itself, one of "
      "16 tells", NULL, UINT32_MAX, INT32_MAX, 0, false },
    { 2, inline_rank, "where 60 bytes may be inline, those that fit are", NULL,
      60, INT32_MAX, 0, false },
    { 3, completions_rank, "never more is under way than a short completion "
      "queue holds", settings_queues, UINT32_MAX, 48, 0, false },
    { 3, growth_rank, "a completion queue grows with the peers that are met",
      settings_queues, UINT32_MAX, INT32_MAX, 0, false },
    { 3, growth_rank, "where it cannot grow, it has room for all",
      settings_queues, UINT32_MAX, INT32_MAX, 0, true },
    { 2, order_rank, "devices that keep order get plain lines", NULL,
      UINT32_MAX, INT32_MAX, 1, false },
    { 2, order_rank, "unless only one of two does", NULL, UINT32_MAX,
      INT32_MAX, 2, false }
};

int main(void)
{
    struct wire_kind kind = { .label = "rc", .ops = &dtn_verbs_ops };

    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        wire_settings = cases[i].settings;
        inline_most = cases[i].inline_most;
        cqe_most = cases[i].cqe_most;
        in_order = cases[i].in_order;
        keeps_size = cases[i].keeps_size;
        wire_prepare();
        ok(ranks_run(cases[i].n, 60, cases[i].run, &kind, NULL) == 0, "rc: %s",
           cases[i].claim);
        wire_cleanup();
    }
    return done();
}

/* mishaps.c - failures that a good device rarely shows
 *
 * This program intercepts calls of libibverbs: the n-th queue pair is refused,
 * or the n-th registration; a completion says that the peer's device failed.
 * The error texts are compared word for word.  It also checks that memory is
 * never registered with relaxed ordering, and that children made by fork() and
 * their writes do no harm.
 */
#include "base/compiler.h"
#include "base/wait.h"
#include "transport/transport.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/meet.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/peer.h"
#include "dtensor.h"
#include "tests/support/wire.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

static int queues_left = 1000000, registrations_left = 1000000;
static size_t longest = SIZE_MAX;         /* to be registered                */
static int registered, relaxed;

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct ibv_qp *(*create)(struct ibv_pd *, struct ibv_qp_init_attr *);

    *(void **)&create = dlsym(RTLD_NEXT, "ibv_create_qp");
    if (init->qp_type == IBV_QPT_RC && queues_left-- <= 0) {
        errno = ENOMEM;
        return NULL;
    }
    return create(pd, init);
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
                          int access)
{
    struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t, int);

    *(void **)&reg = dlsym(RTLD_NEXT, "ibv_reg_mr");
    registered++;
    relaxed += (access & IBV_ACCESS_RELAXED_ORDERING) != 0;
    if (registrations_left-- <= 0 || length > longest) {
        errno = ENOMEM;
        return NULL;
    }
    return reg(pd, addr, length, access);
}

/* The next event of the device. */
static struct ibv_async_event message;
static bool says;

int ibv_get_async_event(struct ibv_context *context,
                        struct ibv_async_event *event)
{
    int (*get)(struct ibv_context *, struct ibv_async_event *);

    *(void **)&get = dlsym(RTLD_NEXT, "ibv_get_async_event");
    if (!says)
        return get(context, event);
    *event = message;
    says = false;
    return 0;
}

/* The next completions of device `taken` are these. */
static struct ibv_context *taken;
static int (*taken_poll)(struct ibv_cq *cq, int n, struct ibv_wc *wc);
static struct ibv_wc staged[2];
static int nstaged;

static int poll_staged(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    int count = nstaged;

    if (count == 0 || n < count)
        return taken_poll(cq, n, wc);
    memcpy(wc, staged, (size_t)count * sizeof *wc);
    nstaged = 0;
    return count;
}

static void poll_take(struct ibv_context *context)
{
    taken = context;
    taken_poll = context->ops.poll_cq;
    context->ops.poll_cq = poll_staged;
}

/* ---------------------------------------------------------- bad words --- */

/* Each status of a completion, and how its text begins. */
static const struct {
    enum ibv_wc_status status;
    const char *words;
} rows[] = {
    { IBV_WC_REM_OP_ERR, "its device failed to carry out a request (status 11, "
      "vendor 0x89) over rxe0 GID 10.77.0.1 -> rxe0 GID 10.77.0.1 (see its "
      "kernel log)" },
    { IBV_WC_RETRY_EXC_ERR, "it does not answer (status 12, vendor 0x89) over "
      "rxe0 GID 10.77.0.1 -> rxe0 GID 10.77.0.1, given up after 0.47 s = 7 x "
      "4.096 us x 2^14 (is the process alive, and the link up? on RoCE: do both "
      "GIDs route?)" },
    { IBV_WC_REM_ACCESS_ERR, "it refused access to its memory (status 10, " },
    { IBV_WC_REM_INV_REQ_ERR,
      "it could not make sense of a request (status 9" },
    { IBV_WC_RNR_RETRY_EXC_ERR, "it was never ready to receive (status 13, " },
    { IBV_WC_LOC_PROT_ERR, "memory here is not registered as it must be (" },
    { IBV_WC_LOC_QP_OP_ERR, "the device here could not send to it (status 2" },
    { IBV_WC_FATAL_ERR, "fatal error (status 19, vendor 0x89) over rxe0 GID" }
};

/* The first bad completion counts, not the flushed requests behind it. */
static void words_of(struct wire *w, int peer, size_t row)
{
    struct dtn_verbs_peer *p = dtn_verbs_peer(w->tp, peer);
    int culprit = -1, code = 0;
    char why[320];

    p->error = IBV_WC_SUCCESS;
    staged[0] = (struct ibv_wc){ .wr_id = (uint64_t)p->index << 8,
                                 .status = rows[row].status,
                                 .vendor_err = 0x89 };
    staged[1] = (struct ibv_wc){ .wr_id = (uint64_t)p->index << 8,
                                 .status = IBV_WC_WR_FLUSH_ERR };
    nstaged = 2;
    need(w->tp->ops->health(w->tp, peer, &culprit, &code) == DTENSOR_EPEER,
         "a bad completion is EPEER");
    w->tp->ops->why(w->tp, peer, why, sizeof why);
    need(strncmp(why, rows[row].words, strlen(rows[row].words)) == 0,
         "status %d is worded: %s", (int)rows[row].status, why);
}

static void words_rank(int rank, int n, void *arg)
{
    struct wire w;

    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    poll_take(dtn_verbs_of(w.tp)->rail[0].device.context);
    for (size_t i = 0; i < DTN_COUNT(rows); i++)
        words_of(&w, !rank, i);
    wire_barrier(&w);
    wire_close(&w);
}

/* ---------------------------------------------------------- bad news --- */

/* The device reports `type` for that port: what does health() return? */
static int hear(struct wire *w, enum ibv_event_type type, int port)
{
    int culprit = -1, code = 0;

    message = (struct ibv_async_event){ .event_type = type,
                                        .element.port_num = port };
    says = true;
    return w->tp->ops->health(w->tp, !w->rank, &culprit, &code);
}

static void words_of_device(struct wire *w, const char *words)
{
    char why[320];

    w->tp->ops->why(w->tp, !w->rank, why, sizeof why);
    need((strstr(why, "; ") != NULL) == (words != NULL)
         && (!words || strstr(why, words)), "%s", why);
}

/* A port that goes down is reported, and forgotten when it is up again.  Events
 * of another port or another GID are ignored.  A fatal event of the device ends
 * the job.
 */
static void events_rank(int rank, int n, void *arg)
{
    struct wire w;

    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    need(hear(&w, IBV_EVENT_PORT_ERR, 2) == 0, "another port");
    words_of_device(&w, NULL);
    need(hear(&w, IBV_EVENT_GID_CHANGE, 1) == 0, "another GID");
    words_of_device(&w, NULL);
    need(hear(&w, IBV_EVENT_PORT_ERR, 1) == 0, "retries decide, not the port");
    words_of_device(&w, "-> rxe0 GID 10.77.0.1; port 1 of rxe0 went down ");
    need(hear(&w, IBV_EVENT_PORT_ACTIVE, 1) == 0, "the port is up");
    words_of_device(&w, NULL);
    wire_barrier(&w);
    need(hear(&w, IBV_EVENT_DEVICE_FATAL, 0) == DTENSOR_ENODEV,
         "without a device there is no health");
    words_of_device(&w, "; rxe0 failed altogether ");
    wire_barrier(&w);
    wire_close(&w);
}

/* ------------------------------------------------------------ refused --- */

/* The device refuses the queue pair for the second peer. */
static void queues_rank(int rank, int n, void *arg)
{
    struct dtensor_error err = { 0 };
    struct wire w;
    int rc;

    wire_open(&w, arg, rank, n);
    wire_meet(&w);
    queues_left = 1;
    rc = w.tp->ops->connect(w.tp, (rank + 1) % 3, &w.blobs[(rank + 1) % 3],
                            &err);
    need(rc == DTENSOR_EAGAIN, "the first: %s", err.text);
    rc = w.tp->ops->connect(w.tp, (rank + 2) % 3, &w.blobs[(rank + 2) % 3],
                            &err);
    need(rc == DTENSOR_ENOMEM
         && strstr(err.text, "on rxe0: Cannot allocate memory; this rank has 1, "
                             "the device ")
         && strstr(err.text, "(fewer ranks a host, ring or tree in [tuning], or "
                             "a higher ulimit -l)"), "%s", err.text);
    wire_close_blobs(&w);
    wire_barrier(&w);
    wire_close(&w);
}

/* The second rail refuses memory: then the first deregisters it, too. */
static void memory_rank(int rank, int n, void *arg)
{
    struct dtn_remote remote = { 7, 7 };
    struct dtn_verbs_memory *memory;
    struct wire w;
    void *mem;
    int rc;

    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    memory = &dtn_verbs_of(w.tp)->memory;
    mem = wire_alloc(&w, 1 << 20);
    registrations_left = dtn_verbs_of(w.tp)->nrails - 1;
    rc = w.tp->ops->reg(w.tp, mem, 1 << 20, &remote);
    need(rc == DTENSOR_ENOMEM || rc == DTENSOR_ESYS, "refused: %s",
         dtensor_errname(rc));
    need(remote.addr == 7 && remote.key == 7 && memory->n == 0,
         "%d regions after all", memory->n);
    registrations_left = 1000000;
    need(w.tp->ops->reg(w.tp, mem, 1 << 20, &remote) == 0, "once it may");
    wire_barrier(&w);
    wire_close(&w);
}

/* Parts of a block are one region, unless the whole block may not be locked. */
static void parts_rank(int rank, int n, void *arg)
{
    const size_t part = 1 << 16, parts = 16;
    struct dtn_remote first, name;
    unsigned char *mem;
    struct wire w;
    int before;

    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    mem = wire_alloc(&w, parts * part);
    before = registered;
    first = wire_reg(&w, mem, part);
    for (size_t i = 1; i < parts; i++) {
        name = wire_reg(&w, mem + i * part, part);
        need(name.key == first.key && name.addr == first.addr + i * part,
             "part %zu has another key", i);
    }
    need(registered == before + dtn_verbs_of(w.tp)->nrails, "%d registrations",
         registered - before);
    mem = wire_alloc(&w, parts * part);
    longest = part;
    name = wire_reg(&w, mem + part, part);
    need(name.addr == (uintptr_t)(mem + part), "a part of what is too long");
    longest = SIZE_MAX;
    wire_barrier(&w);
    wire_close(&w);
}

/* --------------------------------------------------------- unlike ends --- */

/* The address of the other rank says that its device is on InfiniBand. */
static void networks_rank(int rank, int n, void *arg)
{
    struct dtn_verbs_address *address;
    struct dtensor_error err = { 0 };
    char words[160];
    struct wire w;
    int rc;

    wire_open(&w, arg, rank, n);
    wire_meet(&w);
    address = (void *)w.blobs[!rank].bytes;
    address->end[0].ethernet = 0;
    snprintf(words, sizeof words, "verbs: rank %d has InfiniBand on rxe0, this "
             "rank RoCE on rxe0 (one fabric must carry both: see hca)", !rank);
    rc = w.tp->ops->connect(w.tp, !rank, &w.blobs[!rank], &err);
    need(rc == DTENSOR_ENODEV && err.rank == !rank
         && strcmp(err.text, words) == 0, "%s: %s", dtensor_errname(rc),
         err.text);
    wire_close_blobs(&w);
    wire_barrier(&w);
    wire_close(&w);
}

/* Rank 1 makes two queue pairs and greets; rank 0 makes one. */
static void numbers_rank(int rank, int n, void *arg)
{
    struct dtensor_error err = { 0 };
    struct dtn_wait wait;
    struct wire w;
    int rc;

    if (rank == 1)
        setenv("DTN_TEST_QPS", "2", 1);
    wire_open(&w, arg, rank, n);
    wire_meet(&w);
    if (rank == 1)
        need(w.tp->ops->connect(w.tp, 0, &w.blobs[0], &err) == DTENSOR_EAGAIN,
             "%s", err.text);
    wire_barrier(&w);
    wait = wire_patience(&w);
    while (rank == 0 && (rc = w.tp->ops->connect(w.tp, 1, &w.blobs[1], &err))
                        == DTENSOR_EAGAIN)
        wire_turn(&w, &wait, "a greeting");
    need(rank == 1 || (rc == DTENSOR_EMISMATCH && err.rank == 1
         && strcmp(err.text, "verbs: rank 1 made 2 queue pairs, this rank 1 "
                   "(is qp_per_peer the same?)") == 0), "%s: %s",
         dtensor_errname(rc), err.text);
    wire_close_blobs(&w);
    wire_barrier(&w);
    wire_close(&w);
}

/* ------------------------------------------- order, and other processes --- */

/* In each round both ranks put what they have just written, while each has a
 * child that wrote to the same pages before or after.
 */
static void fork_rank(int rank, int n, void *arg)
{
    struct dtn_remote mine[2], there[2];
    unsigned char *out, *in;
    pid_t child;
    int status;
    struct wire w;

    wire_open(&w, arg, rank, n);
    wire_connect_all(&w);
    out = wire_alloc(&w, 1 << 20);
    in = wire_alloc(&w, 1 << 20);
    mine[!rank] = wire_reg(&w, in, 1 << 20);
    wire_swap(&w, mine, there);
    for (uint32_t round = 1; round <= 5; round++) {
        memset(out, (int)round, 1 << 20);
        wire_put(&w, !rank, there[!rank], out, 1 << 20);
        wire_flush(&w, !rank);
        child = fork();
        if (child == 0) {
            memset(out, 0xee, 1 << 20);
            memset(in, 0xee, 1 << 20);
            _exit(0);
        }
        memset(out, (int)round + 100, 1 << 20);
        wire_put(&w, !rank, there[!rank], out, 1 << 20);
        wire_signal(&w, !rank, 1, round);
        wire_await(&w, !rank, 1, round);
        for (size_t i = 0; i < 1 << 20; i++)
            need(in[i] == round + 100, "round %u: byte %zu is %d", round, i,
                 in[i]);
        need(waitpid(child, &status, 0) == child && status == 0, "child");
        wire_flush(&w, !rank);
        wire_barrier(&w);
    }
    need(registered > 4 && relaxed == 0,
         "%d of %d registrations have relaxed ordering", relaxed, registered);
    wire_close(&w);
}

int main(void)
{
    static const struct {
        int n;
        rank_main_f *run;
        const char *claim;
    } cases[] = {
        { 2, words_rank,
          "each bad completion has its words, the first counts" },
        { 2, events_rank, "what a device says is taken, worded, and weighed" },
        { 3, queues_rank, "a device without a queue pair left is named" },
        { 2, networks_rank, "InfiniBand and RoCE do not meet, in words" },
        { 2, numbers_rank, "nor do other numbers of queue pairs" },
        { 2, memory_rank, "memory that is refused is known to no rail" },
        { 2, parts_rank, "a block is registered once, whatever part is named" },
        { 2, fork_rank, "children of fork() are no harm; no relaxed ordering" }
    };
    struct wire_kind kind = { .label = "rc", .ops = &dtn_verbs_ops };

    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        if (cases[i].run == memory_rank)
            setenv("DTN_TEST_HCA", "rxe0+rxe1", 1);
        wire_prepare();
        ok(ranks_run(cases[i].n, 60, cases[i].run, &kind, NULL) == 0, "rc: %s",
           cases[i].claim);
        wire_cleanup();
    }
    return done();
}

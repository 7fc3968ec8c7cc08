/* child.c - connections that this rank accepts
 *
 * A connection is a stranger until it has sent HELLO, and before that, from
 * another host, the proof that it belongs to the job (knock.c).  For that a
 * stranger has two seconds; it occupies one descriptor and one place, and no
 * memory is allocated for what it sends.  At most 64 more strangers than
 * expected children are kept, and eight that have not said which job they are
 * of: each turn looks at all of them.  The oldest of the eight goes first.
 * So a port scanner costs the job nothing; it is only counted.
 *
 * Between two turns over the ranks that are known, 16 connections are taken.
 * What each has said by then is read at once: who sends garbage gets no place.
 *
 * A rank of another job is a stranger.  So two jobs that start at the same time
 * with one file never take each other's ranks.
 *
 * After HELLO the other side is a child, a rank on a detour (see route.c), or a
 * rank that is wrong and gets an error.
 */
#include "boot/child.h"
#include "base/error.h"
#include "base/wait.h"
#include "boot/fail.h"
#include "boot/frame.h"
#include "boot/gather.h"
#include "boot/knock.h"
#include "boot/link.h"
#include "boot/places.h"
#include "boot/socket.h"
#include "boot/state.h"
#include "boot/tree.h"
#include "boot/watch.h"
#include "boot/words.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHILD_BURST 64            /* frames taken from one child, or ranks of */
                                  /* this host, at a time                     */
#define CHILD_NOBODIES 8          /* of them: who have not said a whole KNOCK */

struct child_hello {
    unsigned version;
    uint32_t rank;
    uint32_t world;
    uint32_t pid;
    bool detour;
    uint64_t digest;
    char host[DTN_HOST_MAX];
    char job[DTN_FRAME_JOB_MAX];
};

static void child_drop(struct dtn_boot_link *link)
{
    dtn_frame_close(&link->io);
    link->state = DTN_LINK_IDLE;
}

static void child_stranger(struct dtn_boot *boot, struct dtn_boot_link *link)
{
    child_drop(link);
    boot->strangers++;
}

/* ------------------------------------------------------------ accepting --- */

static bool child_is_stranger(const struct dtn_boot_link *link)
{
    return link->state == DTN_LINK_KNOCKING || link->state == DTN_LINK_GREETING;
}

/* Has it not said yet, or not credibly, that it is of this job? */
static bool child_is_nobody(const struct dtn_boot_link *link)
{
    return link->io.accepts == DTN_FRAME_BIT(DTN_FRAME_KNOCK);
}

static bool child_goes_before(const struct dtn_boot_link *a,
                              const struct dtn_boot_link *b)
{
    return child_is_nobody(a) != child_is_nobody(b)
         ? child_is_nobody(a) : a->since_ns < b->since_ns;
}

/* One came: if there are too many strangers now, one goes. */
static void child_evict(struct dtn_boot *boot)
{
    struct dtn_boot_link *first = NULL;
    int strangers = 0, nobodies = 0;

    for (int i = 0; i < boot->nchildren; i++) {
        struct dtn_boot_link *link = &boot->children[i];

        if (!child_is_stranger(link))
            continue;
        if (!first || child_goes_before(link, first))
            first = link;
        strangers++;
        nobodies += child_is_nobody(link);
    }
    if (nobodies > CHILD_NOBODIES ||
        strangers > boot->nexpected + DTN_BOOT_STRANGERS)
        child_stranger(boot, first);
}

static struct dtn_boot_link *child_add(struct dtn_boot *boot, int fd,
                                       bool local)
{
    struct dtn_boot_link *link = dtn_boot_places_take(boot);

    if (!link) {
        close(fd);
        dtn_boot_fail_nomem(boot);
        return NULL;
    }
    dtn_frame_init(&link->io, fd, local);
    link->io.accepts = DTN_FRAME_BIT(local ? DTN_FRAME_HELLO : DTN_FRAME_KNOCK);
    link->state = local ? DTN_LINK_GREETING : DTN_LINK_KNOCKING;
    link->rank = -1;
    link->since_ns = dtn_now_ns();
    return link;
}

/* False: there is none. */
static bool child_accept_one(struct dtn_boot *boot, bool local, bool reads)
{
    struct dtn_boot_link *link;
    struct dtensor_error error;
    int rc, fd = dtn_boot_socket_accept(boot, local, &error, &rc);

    if (rc != 0) {
        error.rank = boot->rank;
        dtn_boot_fail_propose(boot, &error);
    }
    if (fd < 0)
        return false;
    link = child_add(boot, fd, local);
    if (link && reads)
        dtn_boot_child_progress(boot, link);
    if (link && link->state == DTN_LINK_IDLE)
        boot->nchildren--;
    else
        child_evict(boot);
    return true;
}

void dtn_boot_child_accept(struct dtn_boot *boot, bool reads)
{
    for (int i = 0; i < CHILD_BURST && boot->unix_fd >= 0; i++)
        if (!child_accept_one(boot, true, reads))
            break;
    for (int i = 0; i < DTN_BOOT_ACCEPTS && boot->tcp_fd >= 0; i++)
        if (!child_accept_one(boot, false, reads))
            break;
}

/* ---------------------------------------------------------------- HELLO --- */

static bool child_parse_hello(const struct dtn_frame *frame,
                              struct child_hello *hello)
{
    const char *text = (const char *)frame->body + DTN_FRAME_HELLO_BYTES;
    size_t n, left;

    if (frame->size < DTN_FRAME_HELLO_BYTES)
        return false;
    left = frame->size - DTN_FRAME_HELLO_BYTES;
    n = strnlen(text, left);
    left -= n < left ? n + 1 : n;
    if (n >= sizeof hello->host || left >= sizeof hello->job)
        return false;
    hello->version = frame->version;
    hello->rank = dtn_frame_get32(frame->body);
    hello->world = dtn_frame_get32(frame->body + 4);
    hello->pid = dtn_frame_get32(frame->body + 8);
    hello->detour = dtn_frame_get32(frame->body + 12) != 0;
    hello->digest = dtn_frame_get64(frame->body + 16);
    for (size_t i = 0; i < n; i++)
        hello->host[i] = text[i] > ' ' && text[i] < 127 ? text[i] : '?';
    hello->host[n] = '\0';
    memcpy(hello->job, text + n + 1, left);
    hello->job[left] = '\0';
    return true;
}

/* The pid of another process that has the same rank; 0: none. */
static uint32_t child_twin(const struct dtn_boot *boot,
                           const struct dtn_boot_link *self)
{
    if (self->rank == boot->rank)
        return (uint32_t)getpid();
    for (int i = 0; i < boot->nchildren; i++) {
        const struct dtn_boot_link *link = &boot->children[i];

        if (link != self && link->known && link->rank == self->rank &&
            link->pid != self->pid)
            return link->pid;
    }
    return 0;
}

/* Can this be a rank of this job at all? */
static bool child_check(struct dtn_boot *boot, const struct dtn_boot_link *link,
                        const struct child_hello *hello)
{
    struct dtensor_error error;
    char name[DTN_HOST_MAX + 32];
    uint32_t twin;

    dtn_boot_rank_name(boot, boot->rank, name, sizeof name);
    if (hello->version != DTN_FRAME_VERSION) {
        dtn_fail_rank(&error, DTENSOR_EMISMATCH, link->rank, "boot: rank %u on "
                      "%s speaks version %u of the bootstrap, %s version %d "
                      "(install the same libdtensor on all hosts)",
                      (unsigned)hello->rank, hello->host, hello->version, name,
                      DTN_FRAME_VERSION);
        dtn_boot_fail_propose(boot, &error);
        return false;
    }
    if (link->rank < 0) {
        dtn_fail(&error, DTENSOR_EMISMATCH, "boot: rank %u on %s was started "
                 "for a world of %u ranks, %s for one of %d (give every rank "
                 "the same cluster file)", (unsigned)hello->rank, hello->host,
                 (unsigned)hello->world, name, boot->cluster->world_size);
        dtn_boot_fail_propose(boot, &error);
        return false;
    }
    twin = child_twin(boot, link);
    if (twin != 0)
        dtn_boot_fail_twice(boot, link->rank, twin, link->pid);
    return twin == 0;
}

static void child_welcome(struct dtn_boot *boot, struct dtn_boot_link *link)
{
    unsigned char body[4];
    const struct dtn_frame frame = { .type = DTN_FRAME_WELCOME,
                                     .size = sizeof body,
                                     .body = body };

    link->io.accepts =
        DTN_FRAME_BIT(DTN_FRAME_ENTRIES) | DTN_FRAME_BIT(DTN_FRAME_EXPIRED)
        | DTN_FRAME_BIT(DTN_FRAME_FAIL);
    dtn_boot_gather_limits(boot, link);
    dtn_frame_put32(body, (uint32_t)boot->rank);
    if (!dtn_frame_post(&link->io, &frame, false))
        dtn_boot_fail_nomem(boot);
}

void dtn_boot_child_arrived(struct dtn_boot *boot, int rank)
{
    const struct dtn_host *host = boot->hosts[boot->host];
    int i = rank - host->first_rank;

    if (rank < 0 || rank == boot->rank ||
        dtn_boot_tree_parent(boot, rank) != boot->rank)
        return;
    if (i < 0 || i >= host->nranks)
        i = host->nranks + (rank != dtn_boot_tree_child(boot, 0));
    boot->narrived += !boot->arrived[i];
    boot->arrived[i] = true;
}

static void child_hello(struct dtn_boot *boot, struct dtn_boot_link *link,
                        const struct child_hello *hello)
{
    bool mine;

    if (strcmp(hello->job, boot->job) != 0) {
        child_stranger(boot, link);
        return;
    }
    link->known = true;
    link->pid = hello->pid;
    link->state = DTN_LINK_JOINED;
    link->detour = hello->detour;
    if (hello->rank < (uint32_t)boot->cluster->world_size)
        link->rank = (int)hello->rank;
    mine = link->rank >= 0 && link->rank != boot->rank && !link->detour &&
           dtn_boot_tree_parent(boot, link->rank) == boot->rank;
    dtn_boot_child_arrived(boot, link->rank);
    if (boot->state == DTN_BOOT_DRAINING) {
        dtn_boot_fail_send(boot, link);
        return;
    }
    if (!child_check(boot, link, hello))
        return;
    /* If it has another cluster file, it may believe that this rank is its
     * parent.  It is accepted, so that rank 0 can find and report this.
     */
    if (!mine && !link->detour && hello->digest == boot->digest) {
        dtn_boot_fail_garbage(boot, link->rank);
        return;
    }
    link->counted = mine;
    link->detour = !mine;
    child_welcome(boot, link);
    dtn_boot_gather_who(boot, link, hello->pid, hello->digest);
}

/* -------------------------------------------------------------- reading --- */

/* Rank 0 keeps the identity; other ranks forward it. */
static void child_identity(struct dtn_boot *boot, const struct dtn_frame *frame)
{
    size_t n;

    if (frame->size < 4 || boot->answer)
        return;
    n = frame->size - 4;
    if (!boot->root) {
        if (!dtn_boot_link_post(boot, DTN_FRAME_IDENTITY, frame->body,
                                frame->size))
            dtn_boot_fail_nomem(boot);
        return;
    }
    if (dtn_frame_get32(frame->body) != (uint32_t)boot->asked)
        return;
    boot->answer = malloc(n + 1);
    if (!boot->answer)
        return;
    memcpy(boot->answer, frame->body + 4, n);
    boot->answer[n] = '\0';
}

/* A child reports that it cannot start or continue.  This is a proposal; the
 * verdict comes from the parent.
 */
static void child_failed(struct dtn_boot *boot, struct dtn_boot_link *link,
                         const struct dtensor_error *error)
{
    dtn_boot_child_arrived(boot, link->rank);
    if (link->rank >= 0 && link->rank == dtn_boot_tree_parent(boot, boot->rank))
        dtn_boot_fail_final(boot, error);
    else
        dtn_boot_fail_propose(boot, error);
}

/* The deadline of a rank below has passed.  Rank 0 notes which leaders say so.
 */
static void child_expired(struct dtn_boot *boot,
                          const struct dtn_boot_link *link,
                          const struct dtn_frame *frame)
{
    uint32_t rank;

    if (frame->size == DTN_FRAME_EXPIRED_BYTES && !link->io.local
        && boot->state == DTN_BOOT_GATHERING) {
        rank = dtn_frame_get32(frame->body);
        if (!boot->root)
            dtn_boot_link_post(boot, DTN_FRAME_EXPIRED, frame->body,
                               frame->size);
        else if (rank < (uint32_t)boot->cluster->world_size)
            boot->members[rank].answered = true;
    }
    dtn_boot_fail_expire(boot, dtn_now_ns());
}

/* A stranger says who it is, or proves it. */
static void child_knock(struct dtn_boot *boot, struct dtn_boot_link *link,
                        const struct dtn_frame *frame)
{
    bool good = frame->type == DTN_FRAME_KNOCK
              ? dtn_boot_knock_answer(boot, link, frame)
              : dtn_boot_knock_check(boot, link, frame);

    dtn_frame_flush(&link->io);
    if (!good)
        child_stranger(boot, link);
    else if (link->io.accepts == DTN_FRAME_BIT(DTN_FRAME_HELLO))
        link->state = DTN_LINK_GREETING;
}

static void child_frame(struct dtn_boot *boot, struct dtn_boot_link *link,
                        const struct dtn_frame *frame)
{
    struct dtensor_error error;
    struct child_hello hello;

    if (frame->type == DTN_FRAME_KNOCK || frame->type == DTN_FRAME_PROOF)
        child_knock(boot, link, frame);
    else if (frame->type == DTN_FRAME_HELLO && child_parse_hello(frame, &hello))
        child_hello(boot, link, &hello);
    else if (frame->type == DTN_FRAME_HELLO)
        child_stranger(boot, link);
    else if (boot->state == DTN_BOOT_DRAINING)
        return;
    else if (frame->type == DTN_FRAME_EXPIRED && frame->seq != boot->seq)
        return;                      /* crossed the end of its round         */
    else if (frame->type == DTN_FRAME_ENTRIES)
        dtn_boot_gather_entries(boot, link, frame);
    else if (frame->type == DTN_FRAME_IDENTITY)
        child_identity(boot, frame);
    else if (frame->type == DTN_FRAME_EXPIRED)
        child_expired(boot, link, frame);
    else if (frame->type == DTN_FRAME_FAIL
             && dtn_boot_fail_parse(frame, &error))
        child_failed(boot, link, &error);
    else if (DTN_FRAME_BIT(frame->type) & DTN_FRAMES_WATCHED)
        dtn_watch_frame(boot, link, frame);
    else
        dtn_boot_fail_garbage(boot, link->rank);
}

/* A child is lost.  If the child did not cause this, it is sent the reason. */
static void child_lost(struct dtn_boot *boot, struct dtn_boot_link *link,
                       enum dtn_frame_got got)
{
    if (!link->known) {
        child_stranger(boot, link);
        return;
    }
    if (link->rank >= 0 && boot->state != DTN_BOOT_DRAINING) {
        if (got == DTN_FRAME_CLOSED)
            dtn_boot_fail_closed(boot, link->rank);
        else if (got == DTN_FRAME_NOMEM)
            dtn_boot_fail_nomem(boot);
        else if (got == DTN_FRAME_NOFDS)
            dtn_boot_fail_nofds(boot);
        else
            dtn_boot_fail_garbage(boot, link->rank);
        if (boot->state == DTN_BOOT_FAILING)
            dtn_boot_fail_send(boot, link);
        dtn_frame_flush(&link->io);
    }
    child_drop(link);
}

void dtn_boot_child_progress(struct dtn_boot *boot, struct dtn_boot_link *link)
{
    struct dtn_frame frame;
    enum dtn_frame_got got;

    for (int i = 0; i < CHILD_BURST && link->state != DTN_LINK_IDLE; i++) {
        got = dtn_frame_recv(&link->io, &frame);
        if (got == DTN_FRAME_MORE)
            return;
        if (got == DTN_FRAME_READY)
            child_frame(boot, link, &frame);
        else
            child_lost(boot, link, got);
    }
}

/* ------------------------------------------------------------- sweeping --- */

/* Remove closed connections, and strangers that were silent for too long. */
void dtn_boot_child_sweep(struct dtn_boot *boot, int64_t now)
{
    int kept = 0;

    for (int i = 0; i < boot->nchildren; i++) {
        struct dtn_boot_link *link = &boot->children[i];

        if (child_is_stranger(link) &&
            now - link->since_ns > DTN_BOOT_HANDSHAKE_NS)
            child_stranger(boot, link);
        if (link->state == DTN_LINK_IDLE)
            continue;
        if (kept != i)
            boot->children[kept] = *link;
        kept++;
    }
    boot->nchildren = kept;
}

void dtn_boot_child_keep_tree(struct dtn_boot *boot)
{
    for (int i = 0; i < boot->nchildren; i++)
        if (!boot->children[i].counted)
            child_drop(&boot->children[i]);
    dtn_boot_child_sweep(boot, dtn_now_ns());
}

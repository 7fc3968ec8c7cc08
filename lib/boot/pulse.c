/* pulse.c - the page in which the ranks of a host show that they run
 *
 * Each rank has a line in a page that the leader of the host has made.  A
 * thread of the rank (heart.c) counts a beat there every `heartbeat`.  A
 * process that is stopped, or gets no CPU, counts no more.
 *
 * The line also has the number of that thread as a robust futex: when the
 * thread dies, the kernel writes FUTEX_OWNER_DIED there.  A process that is
 * killed loses its threads first and its memory after that.  With 4 GiB of
 * memory its pidfd and its sockets report the death 120 ms later, this word
 * after less than 1 ms, for the price of a load.
 *
 * A rank that is stopped itself sees no beats either.  So time counts as
 * silence only while this rank looks: after a stop of the whole job, the
 * others have two heartbeats to count before they have been silent for long.
 */
#include "boot/pulse.h"
#include "base/compiler.h"
#include "base/error.h"
#include "boot/boot.h"
#include "dtensor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

struct pulse_line {
    _Alignas(DTN_CACHE_LINE) _Atomic uint64_t beats;  /* made so far          */
    _Atomic uint32_t thread;      /* that beats, by its number; or            */
                                  /* FUTEX_OWNER_DIED, by the kernel          */
    _Atomic uint32_t left;        /* 1: it beats no more, for it has left     */
};

enum { NEWS = 63 };               /* beside one of each rank of the host      */

struct dtn_pulse_page {
    _Alignas(DTN_CACHE_LINE) _Atomic uint64_t agreed; /* culprit: loss,       */
                                  /* rank + 1; 0: none yet                    */
    _Atomic uint32_t asked;       /* the loss for which a rank asks whom to   */
                                  /* name, + 1; 0: none does                  */
    struct pulse_line line[];     /* [ranks of the host]; and behind them     */
                                  /* news: how, culprit, rank + 1; 0: none    */
};

/* Lists of the kernel: one futex, at any distance from its entry. */
struct pulse_robust {
    struct robust_list_head head; /* what the kernel is told                  */
    struct robust_list entry;     /* of the futex                             */
};

#define RANK_BITS 24

/* ----------------------------------------------------------------- page --- */

static int pulse_places(const struct dtn_pulse *pulse)
{
    return NEWS + pulse->n;
}

static _Atomic uint64_t *pulse_news(const struct dtn_pulse *pulse)
{
    return (_Atomic uint64_t *)(void *)&pulse->page->line[pulse->n];
}

static size_t pulse_bytes(const struct dtn_pulse *pulse)
{
    return sizeof(struct dtn_pulse_page)
         + (size_t)pulse->n * sizeof(struct pulse_line)
         + (size_t)pulse_places(pulse) * sizeof(uint64_t);
}

static int pulse_refused(const struct dtn_pulse *pulse,
                         struct dtensor_error *err)
{
    return dtn_fail_sys(err, errno, "boot: cannot share %zu bytes with the "
                        "ranks of this host: %m (see ulimit -n and -v)",
                        pulse_bytes(pulse));
}

int dtn_pulse_map(struct dtn_pulse *pulse, int fd, struct dtensor_error *err)
{
    void *page = mmap(NULL, pulse_bytes(pulse), PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd, 0);

    if (page == MAP_FAILED)
        return pulse_refused(pulse, err);
    pulse->page = page;
    pulse->robust = calloc(1, sizeof(struct pulse_robust));
    pulse->seen = calloc((size_t)pulse->n, sizeof *pulse->seen);
    return pulse->robust && pulse->seen
         ? 0 : dtn_fail_nomem(err, "boot", (size_t)pulse->n
                                           * sizeof *pulse->seen);
}

/* The seals keep a rank from killing others by a truncation. */
int dtn_pulse_create(struct dtn_pulse *pulse, struct dtensor_error *err)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) == 0
        && limit.rlim_cur < pulse_bytes(pulse))
        return 0;                 /* ftruncate() would be a fatal signal      */
    pulse->fd = memfd_create("dtensor-pulse", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (pulse->fd < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS))
        return 0;
    if (pulse->fd < 0 || ftruncate(pulse->fd, (off_t)pulse_bytes(pulse)) != 0
        || fcntl(pulse->fd, F_ADD_SEALS, seals) != 0)
        return pulse_refused(pulse, err);
    return dtn_pulse_map(pulse, pulse->fd, err);
}

void dtn_pulse_close(struct dtn_pulse *pulse)
{
    if (pulse->page)
        munmap(pulse->page, pulse_bytes(pulse));
    if (pulse->fd >= 0)
        close(pulse->fd);
    free(pulse->robust);
    free(pulse->seen);
    pulse->robust = NULL;
    pulse->page = NULL;
    pulse->seen = NULL;
    pulse->fd = -1;
}

/* -------------------------------------------------------------- beating --- */

void dtn_pulse_begin(struct dtn_pulse *pulse)
{
    struct pulse_robust *robust = pulse->robust;
    struct pulse_line *line;
    long thread;

    if (!pulse->page)
        return;
    line = &pulse->page->line[pulse->me];
    thread = syscall(SYS_gettid);
    robust->head.list.next = &robust->entry;
    robust->entry.next = &robust->head.list;
    robust->head.futex_offset = (char *)&line->thread - (char *)&robust->entry;
    robust->head.list_op_pending = NULL;
    if (thread > 0 && syscall(SYS_set_robust_list, &robust->head,
                              sizeof robust->head) == 0)
        atomic_store(&line->thread, (uint32_t)thread);
}

void dtn_pulse_beat(struct dtn_pulse *pulse)
{
    if (pulse->page)
        atomic_fetch_add_explicit(&pulse->page->line[pulse->me].beats, 1,
                                  memory_order_relaxed);
}

void dtn_pulse_end(struct dtn_pulse *pulse)
{
    struct pulse_robust *robust = pulse->robust;
    struct pulse_line *line;

    if (!pulse->page)
        return;
    line = &pulse->page->line[pulse->me];
    atomic_store(&line->left, 1);
    atomic_store(&line->thread, 0);
    robust->head.list.next = &robust->head.list;
}

/* -------------------------------------------------------------- looking --- */

int64_t dtn_pulse_look(struct dtn_pulse *pulse, int64_t now, int64_t most_ns)
{
    int64_t passed = pulse->looked_ns ? now - pulse->looked_ns : 0;

    pulse->looked_ns = now;
    if (passed > most_ns)
        passed = most_ns;
    for (int i = 0; pulse->page && i < pulse->n; i++) {
        struct dtn_pulse_seen *seen = &pulse->seen[i];
        const uint64_t beats = atomic_load_explicit(
            &pulse->page->line[i].beats, memory_order_relaxed);

        seen->silent_ns = beats == seen->beats ? seen->silent_ns + passed : 0;
        seen->beats = beats;
    }
    return passed;
}

enum dtn_loss dtn_pulse_loss(const struct dtn_pulse *pulse, int i,
                             int64_t dead_after_ns)
{
    const struct pulse_line *line;

    if (!pulse->page || i == pulse->me)
        return DTN_LOSS_NONE;
    line = &pulse->page->line[i];
    if (atomic_load(&line->thread) & FUTEX_OWNER_DIED)
        return DTN_LOSS_DIED;
    return !atomic_load(&line->left)
           && pulse->seen[i].silent_ns > dead_after_ns
         ? DTN_LOSS_STOPPED : DTN_LOSS_NONE;
}

bool dtn_pulse_beats(const struct dtn_pulse *pulse, int64_t within_ns)
{
    bool all = true;

    for (int i = 0; pulse->page && i < pulse->n; i++)
        all = all && (pulse->seen[i].silent_ns <= within_ns || i == pulse->me
                      || atomic_load(&pulse->page->line[i].left)
                      || atomic_load(&pulse->page->line[i].thread)
                         & FUTEX_OWNER_DIED);
    return all;
}

/* ----------------------------------------------------------------- news --- */

/* Others may post at the same time.  When the page is full, news comes over the
 * tree only.
 */
void dtn_pulse_post(struct dtn_pulse *pulse, int rank, int culprit,
                    unsigned how)
{
    const uint64_t mine = (uint64_t)how << 2 * RANK_BITS
                        | (uint64_t)culprit << RANK_BITS | ((uint64_t)rank + 1);

    for (int i = 0; pulse->page && i < pulse_places(pulse); i++) {
        _Atomic uint64_t *place = &pulse_news(pulse)[i];
        uint64_t there = atomic_load(place);

        if (there == 0)
            atomic_compare_exchange_strong(place, &there, mine);
        if (there == 0 || there == mine)
            return;
    }
}

bool dtn_pulse_read(struct dtn_pulse *pulse, int *rank, int *culprit,
                    unsigned *how)
{
    const uint64_t mask = (1 << RANK_BITS) - 1;
    uint64_t news;

    if (!pulse->page || pulse->nread == pulse_places(pulse)
        || (news = atomic_load(&pulse_news(pulse)[pulse->nread])) == 0)
        return false;
    pulse->nread++;
    *rank = (int)(news & mask) - 1;
    *culprit = (int)(news >> RANK_BITS & mask);
    *how = (unsigned)(news >> 2 * RANK_BITS);
    return true;
}

/* ------------------------------------------------------------- agreeing --- */

int dtn_pulse_agree(struct dtn_pulse *pulse, int rank, enum dtn_loss *loss)
{
    const uint64_t mine = (uint64_t)*loss << RANK_BITS | ((uint64_t)rank + 1);
    uint64_t agreed = 0;

    if (!pulse->page
        || atomic_compare_exchange_strong(&pulse->page->agreed, &agreed, mine))
        return rank;
    *loss = (enum dtn_loss)(agreed >> RANK_BITS);
    return (int)(agreed & ((1 << RANK_BITS) - 1)) - 1;
}

int dtn_pulse_agreed(const struct dtn_pulse *pulse, enum dtn_loss *loss)
{
    const uint64_t agreed = pulse->page ? atomic_load(&pulse->page->agreed) : 0;

    *loss = (enum dtn_loss)(agreed >> RANK_BITS);
    return (int)(agreed & ((1 << RANK_BITS) - 1)) - 1;
}

void dtn_pulse_ask(struct dtn_pulse *pulse, int rank)
{
    uint32_t asked = 0;

    if (pulse->page)
        atomic_compare_exchange_strong(&pulse->page->asked, &asked,
                                       (uint32_t)rank + 1);
}

int dtn_pulse_asked(const struct dtn_pulse *pulse)
{
    return pulse->page ? (int)atomic_load(&pulse->page->asked) - 1 : -1;
}

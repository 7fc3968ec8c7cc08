/* gather.c - entries of ranks, sent up and down the tree
 *
 * An entry is a rank and some bytes: in round 0 twelve bytes, the process id
 * and the digest of its identity; later a blob.  Every rank forwards new
 * entries of its subtree upward at once.  So rank 0 always knows which ranks
 * have joined, and at the deadline it can name the others.  When all have
 * joined, the answer goes down.  In round 0 it is empty, later it has all
 * entries: for 1024 ranks with blobs of 200 bytes, 1024 x 208 bytes = 208 KiB
 * for each of at most two child hosts.  The other ranks of a host get the file
 * of the table instead.
 *
 * The ranks of a host exchange file descriptors through their leader, over
 * AF_UNIX.  The entry of a rank that sends one has a flag.
 */
#include "boot/gather.h"
#include "base/error.h"
#include "base/units.h"
#include "base/wait.h"
#include "boot/fail.h"
#include "boot/frame.h"
#include "boot/judge.h"
#include "boot/state.h"
#include "boot/table.h"
#include "cluster/cluster.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool bytes_append(struct dtn_boot_bytes *bytes, const void *mem,
                         size_t size)
{
    size_t want = bytes->size + size;

    if (want > bytes->capacity) {
        size_t capacity = want + want / 2 + 64;
        unsigned char *grown = realloc(bytes->mem, capacity);

        if (!grown)
            return false;
        bytes->mem = grown;
        bytes->capacity = capacity;
    }
    if (size > 0)
        memcpy(bytes->mem + bytes->size, mem, size);
    bytes->size = want;
    return true;
}

/* -------------------------------------------------------------- entries --- */

static bool gather_append(struct dtn_boot *boot,
                          const struct dtn_boot_entry *entry)
{
    unsigned char head[DTN_BOOT_ENTRY_HEAD];

    dtn_frame_put32(head, entry->rank);
    dtn_frame_put32(head + 4, (uint32_t)entry->size | entry->flags << 16);
    return bytes_append(&boot->gathered, head, sizeof head) &&
           bytes_append(&boot->gathered, entry->bytes, entry->size);
}

/* Add an entry that is new here; false: it cannot be kept. */
static bool gather_add(struct dtn_boot *boot,
                       const struct dtn_boot_entry *entry)
{
    uint32_t pid = 0;
    uint64_t digest = boot->digest;

    if (boot->root) {
        if (boot->seq == 0) {
            pid = dtn_frame_get32(entry->bytes);
            digest = dtn_frame_get64(entry->bytes + 4);
        }
        dtn_boot_judge_member(boot, (int)entry->rank,
                              entry->flags & DTN_ENTRY_DETOUR, pid, digest);
        if (boot->seq == 0)
            return true;              /* the answer is empty                 */
    }
    if (gather_append(boot, entry))
        return true;
    dtn_boot_fail_nomem(boot);
    return false;
}

bool dtn_boot_gather_who(struct dtn_boot *boot,
                         const struct dtn_boot_link *link, uint32_t pid,
                         uint64_t digest)
{
    unsigned char who[DTN_BOOT_WHO_BYTES];
    const struct dtn_boot_entry entry = {
        .rank = (uint32_t)(link ? link->rank : boot->rank),
        .flags = link && link->detour ? DTN_ENTRY_DETOUR : 0,
        .size = sizeof who,
        .bytes = who
    };

    dtn_frame_put32(who, pid);
    dtn_frame_put64(who + 4, digest);
    return gather_add(boot, &entry);
}

/* The largest body of ENTRIES or ALL in this round. */
static size_t gather_max(const struct dtn_boot *boot)
{
    size_t one = DTN_BOOT_ENTRY_HEAD;
    size_t all;

    one += boot->seq == 0 ? DTN_BOOT_WHO_BYTES : DTN_BLOB_MAX;
    if (!dtn_mul_size(one, (size_t)boot->cluster->world_size, &all) ||
        all > UINT32_MAX)
        all = UINT32_MAX;
    return all;
}

void dtn_boot_gather_limits(const struct dtn_boot *boot,
                            struct dtn_boot_link *link)
{
    int fds = link == &boot->up.link ? boot->hosts[boot->host]->nranks : 1;

    link->io.entries_max = gather_max(boot);
    link->io.fds_max = link->io.local && boot->seq > 0 ? fds : 0;
}

static void gather_reset(struct dtn_boot *boot)
{
    boot->gathered.size = 0;
    boot->up.link.forwarded = boot->aside.link.forwarded = 0;
    dtn_boot_gather_limits(boot, &boot->up.link);
    for (int i = 0; i < boot->nchildren; i++)
        dtn_boot_gather_limits(boot, &boot->children[i]);
    boot->njoined = 0;
    for (int r = 0; boot->members && r < boot->cluster->world_size; r++)
        boot->members[r] = (struct dtn_boot_member){
            .pid = boot->members[r].pid, .digest = boot->members[r].digest
        };
}

int dtn_boot_gather_start(struct dtn_boot *boot, const struct dtn_blob *mine,
                          struct dtensor_error *err)
{
    bool good;

    gather_reset(boot);
    if (!mine) {
        good = dtn_boot_gather_who(boot, NULL, (uint32_t)getpid(),
                                   boot->digest);
    } else {
        const struct dtn_boot_entry entry = {
            .rank = (uint32_t)boot->rank,
            .flags = mine->fd >= 0 ? DTN_ENTRY_HAS_FD : 0,
            .size = mine->size,
            .bytes = mine->bytes
        };

        boot->mine_fd = mine->fd;
        good = gather_add(boot, &entry);
    }
    return good ? 0 : dtn_fail_nomem(err, "boot", boot->gathered.size);
}

/* ----------------------------------------------------------------- up --- */

static void gather_forward_to(struct dtn_boot *boot, struct dtn_boot_link *link)
{
    size_t n = boot->gathered.size - link->forwarded;
    struct dtn_frame frame = { .type = DTN_FRAME_ENTRIES, .seq = boot->seq,
                               .size = (uint32_t)n,
                               .body = boot->gathered.mem + link->forwarded };

    if (link->state != DTN_LINK_JOINED || n == 0)
        return;
    if (link->io.local && boot->seq > 0 && boot->mine_fd >= 0) {
        frame.nfds = 1;
        frame.fds = &boot->mine_fd;
    }
    link->forwarded = boot->gathered.size;
    if (!dtn_frame_post(&link->io, &frame, false))
        dtn_boot_fail_nomem(boot);
}

/* Forward the entries that are new since the last call. */
void dtn_boot_gather_forward(struct dtn_boot *boot)
{
    if (boot->root || boot->state == DTN_BOOT_DRAINING)
        return;
    gather_forward_to(boot, &boot->up.link);
    gather_forward_to(boot, &boot->aside.link);
}

static void gather_keep_fd(struct dtn_boot *boot, int rank, int fd)
{
    int *slot = &boot->local_fds[rank - boot->hosts[boot->host]->first_rank];

    if (*slot >= 0)
        close(*slot);
    *slot = fd;
}

static bool gather_entry_fits(const struct dtn_boot *boot,
                              const struct dtn_boot_link *link,
                              const struct dtn_boot_entry *entry)
{
    if (entry->rank >= (uint32_t)boot->cluster->world_size)
        return false;
    if (boot->seq == 0)
        return entry->size == DTN_BOOT_WHO_BYTES;
    return entry->size <= DTN_BLOB_MAX &&
           (!link->io.local || entry->rank == (uint32_t)link->rank);
}

void dtn_boot_gather_entries(struct dtn_boot *boot, struct dtn_boot_link *link,
                             const struct dtn_frame *frame)
{
    const unsigned char *p = frame->body;
    size_t left = frame->size;
    struct dtn_boot_entry entry;
    int fds = 0;

    while (left > 0) {
        if (frame->seq != boot->seq ||
            !dtn_boot_entry_next(&p, &left, &entry) ||
            !gather_entry_fits(boot, link, &entry)) {
            dtn_boot_fail_garbage(boot, link->rank);
            return;
        }
        if (link->detour)
            entry.flags |= DTN_ENTRY_DETOUR;
        fds += link->io.local && entry.flags & DTN_ENTRY_HAS_FD;
        if (!gather_add(boot, &entry))
            return;
    }
    if (fds != frame->nfds) {
        dtn_boot_fail_garbage(boot, link->rank);
    } else if (fds == 1) {
        gather_keep_fd(boot, link->rank, frame->fds[0]);
        dtn_frame_take_fds(&link->io);
    }
}

/* ---------------------------------------------------------------- down --- */

/* Is the answer a file, which the leader shares with the ranks of its host? */
static bool gather_is_shared(const struct dtn_boot_link *link,
                             const struct dtn_frame *frame)
{
    return link->io.local && frame->size == 0 && frame->nfds > 0;
}

/* How many other ranks of this host sent a descriptor? */
static int gather_count_fds(const struct dtn_boot *boot)
{
    const struct dtn_host *host = boot->hosts[boot->host];
    int n = 0;

    for (int r = host->first_rank; r < host->first_rank + host->nranks; r++)
        n += r != boot->rank && dtn_table_awaits_fd(boot->table, r);
    return n;
}

/* Assign the descriptors of ALL, in rank order, to the ranks of this host that
 * sent one.  The first may be the file of the table.  False: their numbers
 * differ.
 */
static bool gather_deal_fds(struct dtn_boot *boot, struct dtn_boot_link *link,
                            const struct dtn_frame *frame)
{
    const struct dtn_host *host = boot->hosts[boot->host];
    int next = gather_is_shared(link, frame);

    if (!link->io.local)
        return true;
    if (next + gather_count_fds(boot) != frame->nfds)
        return false;
    if (next > 0)
        close(frame->fds[0]);
    for (int i = 0; i < host->nranks; i++)
        if (host->first_rank + i != boot->rank
            && dtn_table_awaits_fd(boot->table, host->first_rank + i))
            boot->local_fds[i] = frame->fds[next++];
    dtn_frame_take_fds(&link->io);
    return true;
}

/* Make the table of a valid answer.  False: it is not valid, or there is not
 * enough memory.
 */
static bool gather_tabulate(struct dtn_boot *boot,
                            const struct dtn_boot_link *link,
                            const struct dtn_frame *frame)
{
    const struct dtn_host *host = boot->hosts[boot->host];
    const int world = boot->cluster->world_size;
    bool good = true;

    if (link && gather_is_shared(link, frame))
        boot->table = dtn_table_open(frame->fds[0], world, host->first_rank,
                                     host->nranks, &good);
    else
        boot->table = dtn_table_make(frame->body, frame->size, world,
                                     host->first_rank, host->nranks, &good);
    if (!boot->table && good)
        dtn_boot_fail_nomem(boot);
    return boot->table != NULL;
}

/* Read the answer.  Only a valid one replaces the gathered entries; an invalid
 * one is a failure, and until then entries are still forwarded.
 */
void dtn_boot_gather_all(struct dtn_boot *boot, struct dtn_boot_link *link,
                         const struct dtn_frame *frame)
{
    bool good = frame->seq == boot->seq;

    if (good && boot->seq > 0)
        good = gather_tabulate(boot, link, frame) &&
               gather_deal_fds(boot, link, frame);
    if (good && boot->seq > 0) {
        free(boot->gathered.mem);
        boot->gathered.size = boot->gathered.capacity = frame->size;
        boot->gathered.mem = dtn_frame_take_body(&link->io);
    }
    if (good)
        dtn_boot_gather_done(boot);
    else
        dtn_boot_fail_garbage(boot, link->rank);
}

/* The descriptors for a child on this host: all but its own. */
static int gather_fds_for(const struct dtn_boot *boot, int rank, int fds[])
{
    const struct dtn_host *host = boot->hosts[boot->host];
    int n = 0;

    for (int i = 0; i < host->nranks; i++) {
        int r = host->first_rank + i;
        int fd = r == boot->rank ? boot->mine_fd : boot->local_fds[i];

        if (r != rank && fd >= 0)
            fds[n++] = fd;
    }
    return n;
}

/* The answer for a child: in round 0 nothing, else the table or all entries. */
static bool gather_answer(struct dtn_boot *boot, struct dtn_boot_link *link,
                          int file)
{
    struct dtn_frame frame = { .type = DTN_FRAME_ALL, .seq = boot->seq };
    const bool local = link->io.local && boot->seq > 0;
    int fds[DTN_MAX_LOCAL];

    if (local && file >= 0) {
        fds[frame.nfds++] = file;
    } else if (boot->seq > 0) {
        frame.body = boot->gathered.mem;
        frame.size = (uint32_t)boot->gathered.size;
    }
    if (local)
        frame.nfds += gather_fds_for(boot, link->rank, fds + frame.nfds);
    frame.fds = fds;
    return dtn_frame_post(&link->io, &frame, true);
}

/* All entries have arrived: make the table, and send them down. */
void dtn_boot_gather_done(struct dtn_boot *boot)
{
    const struct dtn_frame all = {
        .body = boot->gathered.mem, .size = (uint32_t)boot->gathered.size
    };
    int file = -1;

    if (boot->seq > 0 && !boot->table && !gather_tabulate(boot, NULL, &all)) {
        dtn_boot_fail_garbage(boot, boot->rank);
        return;
    }
    if (boot->seq > 0 && boot->hosts[boot->host]->nranks > 1
        && boot->nchildren > 0)
        file = dtn_table_share(boot->table);
    for (int i = 0; i < boot->nchildren; i++)
        if (boot->children[i].counted
            && !gather_answer(boot, &boot->children[i], file)) {
            dtn_boot_fail_nomem(boot);
            return;
        }
    boot->state = DTN_BOOT_DRAINING;
    boot->drained_ns = dtn_now_ns();
    boot->until_ns = boot->deadline_ns + dtn_boot_fail_wait_ns(boot) +
                     DTN_BOOT_DRAIN_NS;
}

/* The round is over: forget the entries, and give the table to the caller; NULL
 * after a failure.
 */
struct dtn_table *dtn_boot_gather_take(struct dtn_boot *boot)
{
    const struct dtn_host *host = boot->hosts[boot->host];
    struct dtn_table *table = boot->table;

    free(boot->gathered.mem);
    boot->gathered = (struct dtn_boot_bytes){ .mem = NULL };
    boot->table = NULL;
    if (!table || boot->failure.code != 0) {
        dtn_boot_gather_close_fds(boot);
        dtn_table_free(table);
        return NULL;
    }
    dtn_table_unshare(table);
    for (int i = 0; i < host->nranks; i++) {
        dtn_table_put_fd(table, host->first_rank + i, boot->local_fds[i]);
        boot->local_fds[i] = -1;
    }
    return table;
}

void dtn_boot_gather_close_fds(struct dtn_boot *boot)
{
    for (int i = 0; boot->local_fds && i < boot->hosts[boot->host]->nranks; i++)
        if (boot->local_fds[i] >= 0) {
            close(boot->local_fds[i]);
            boot->local_fds[i] = -1;
        }
}

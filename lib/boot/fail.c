/* fail.c - one error text for all ranks
 *
 * The rank that finds a failure first writes the text and proposes it upward.
 * Rank 0 takes the first proposal and sends it down to all.  So 1024 ranks
 * return one text about the cause, not 1023 about closed connections.  A rank
 * that cannot reach rank 0 uses its own text, for itself and for all ranks
 * below it.
 *
 * A timeout works the same way.  The rank whose deadline passes first reports
 * it to all its neighbours, and each rank that gets the report passes it on.
 * Rank 0 knows best which ranks are missing, and which hosts have not answered
 * (judge.c). It answers with a verdict.  Example with connect_timeout = 60s:
 * the report is sent at 60.0 s and answered some ms later.  Ranks wait for the
 * verdict until 60.4 s, plus 20 ms for each level of the tree (18 at most), and
 * then pass it on for 0.15 s.  So everything is closed by 60.91 s.
 *
 * After the first exchange a rank that is lost is no such failure: all hear of
 * it and agree, as those do that have joined (agree.c).
 */
#include "boot/fail.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/units.h"
#include "base/wait.h"
#include "boot/frame.h"
#include "boot/link.h"
#include "boot/news.h"
#include "boot/state.h"
#include "boot/tree.h"
#include "boot/words.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------- the way of a failure --- */

/* A rank waits longer the deeper it is in the tree.  So the child of a rank
 * that does not answer gives up first, and all ranks below get its error text.
 */
int64_t dtn_boot_fail_wait_ns(const struct dtn_boot *boot)
{
    return DTN_BOOT_VERDICT_NS + boot->depth * DTN_BOOT_STEP_NS;
}

static int64_t fail_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Can this rank still send to rank 0? */
static bool fail_way_up(const struct dtn_boot *boot)
{
    return !boot->root && (boot->up.target >= 0 || boot->aside.target >= 0);
}

/* How long to wait for the verdict, or for children that have not connected
 * yet.
 */
static int64_t fail_early(const struct dtn_boot *boot)
{
    if (boot->unfit)
        return DTN_BOOT_OWN_NS;
    return boot->root || boot->up.target >= 0 ? DTN_BOOT_EARLY_NS
                                              : DTN_BOOT_VERDICT_NS;
}

void dtn_boot_fail_post(struct dtn_frame_stream *io, uint32_t seq,
                        const struct dtensor_error *e)
{
    unsigned char body[12 + sizeof e->text];
    size_t n = strlen(e->text);
    struct dtn_frame frame = { .type = DTN_FRAME_FAIL, .seq = seq,
                               .size = (uint32_t)(12 + n), .body = body };

    dtn_frame_put32(body, (uint32_t)e->code);
    dtn_frame_put32(body + 4, (uint32_t)e->rank);
    dtn_frame_put32(body + 8, (uint32_t)e->sys_errno);
    memcpy(body + 12, e->text, n);
    dtn_frame_post(io, &frame, false);       /* no memory: the peer sees EOF */
}

void dtn_boot_fail_send(struct dtn_boot *boot, struct dtn_boot_link *link)
{
    dtn_boot_fail_post(&link->io, boot->seq, &boot->failure);
}

bool dtn_boot_fail_parse(const struct dtn_frame *frame,
                         struct dtensor_error *error)
{
    size_t n;

    if (frame->size < 12)
        return false;
    n = frame->size - 12;
    if (n >= sizeof error->text)
        n = sizeof error->text - 1;
    error->code = (int)(int32_t)dtn_frame_get32(frame->body);
    error->rank = (int)(int32_t)dtn_frame_get32(frame->body + 4);
    error->sys_errno = (int)(int32_t)dtn_frame_get32(frame->body + 8);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = frame->body[12 + i];

        error->text[i] = c >= ' ' && c != 127 ? (char)c : '?';
    }
    error->text[n] = '\0';
    return error->code <= DTENSOR_EINVAL && error->code >= DTENSOR_EABORT;
}

void dtn_boot_fail_final(struct dtn_boot *boot,
                         const struct dtensor_error *error)
{
    int64_t now = dtn_now_ns();
    bool late = boot->expired ||
                (boot->state == DTN_BOOT_FAILING && now >= boot->until_ns);

    if (boot->state == DTN_BOOT_DRAINING)
        return;
    boot->failure = *error;
    boot->state = DTN_BOOT_DRAINING;
    boot->until_ns = fail_earlier(
        now + (late ? DTN_BOOT_DRAIN_NS : fail_early(boot)),
        boot->deadline_ns + dtn_boot_fail_wait_ns(boot) + DTN_BOOT_DRAIN_NS);
    for (int i = 0; i < boot->nchildren; i++)
        if (boot->children[i].known)
            dtn_boot_fail_send(boot, &boot->children[i]);
}

void dtn_boot_fail_propose(struct dtn_boot *boot,
                           const struct dtensor_error *error)
{
    if (boot->state == DTN_BOOT_DRAINING)
        return;
    if (boot->failure.code == 0) {
        boot->failure = *error;
        boot->state = DTN_BOOT_FAILING;
        boot->until_ns = fail_earlier(
            dtn_now_ns() + fail_early(boot),
            boot->deadline_ns + dtn_boot_fail_wait_ns(boot));
        if (boot->up.link.state == DTN_LINK_JOINED)
            dtn_boot_fail_send(boot, &boot->up.link);
        if (boot->aside.link.state == DTN_LINK_JOINED)
            dtn_boot_fail_send(boot, &boot->aside.link);
    }
    if (!fail_way_up(boot))
        dtn_boot_fail_final(boot, &boot->failure);
}

void dtn_boot_fail_own(struct dtn_boot *boot, const struct dtensor_error *error)
{
    struct dtensor_error own = *error;
    char name[DTN_HOST_MAX + 32], number[32];
    const char *text = error->text;
    bool ours = strncmp(text, "boot: ", 6) == 0;

    snprintf(number, sizeof number, "rank %d ", boot->rank);
    if (!strstr(text, number))
        dtn_fail(&own, error->code, "%s: %s failed: %s",
                 ours ? "boot" : "init",
                 dtn_boot_rank_name(boot, boot->rank, name, sizeof name),
                 ours ? text + 6 : text);
    own.rank = boot->rank;
    own.sys_errno = error->sys_errno;
    boot->unfit = true;
    dtn_boot_route_fail(boot);
    dtn_boot_fail_propose(boot, &own);
}

bool dtn_boot_fail_post_expired(struct dtn_boot *boot)
{
    unsigned char body[DTN_FRAME_EXPIRED_BYTES];

    dtn_frame_put32(body, (uint32_t)boot->rank);
    return dtn_boot_link_post(boot, DTN_FRAME_EXPIRED, body, sizeof body);
}

void dtn_boot_fail_expire(struct dtn_boot *boot, int64_t now)
{
    const struct dtn_frame frame = { .type = DTN_FRAME_EXPIRED,
                                     .seq = boot->seq };
    bool good;

    if (boot->expired || boot->state != DTN_BOOT_GATHERING)
        return;
    boot->expired = true;
    boot->until_ns = now + dtn_boot_fail_wait_ns(boot);
    good = dtn_boot_fail_post_expired(boot);
    for (int i = 0; i < boot->nchildren && good; i++)
        if (boot->children[i].known
            && boot->children[i].state == DTN_LINK_JOINED)
            good = dtn_frame_post(&boot->children[i].io, &frame, false);
    if (!good)
        dtn_boot_fail_nomem(boot);
}

/* No rank on the path to rank 0 could be reached: list them all.  The others
 * may have given up long ago.  The nearest one, through which all is heard, is
 * named.
 */
static void fail_cut_off(struct dtn_boot *boot)
{
    int ranks[64], n = 0;
    int r = dtn_boot_tree_parent(boot, boot->rank);

    for (; r >= 0 && n < (int)DTN_COUNT(ranks);
         r = dtn_boot_tree_parent(boot, r))
        n++;
    r = dtn_boot_tree_parent(boot, boot->rank);
    for (int i = n; i-- > 0; r = dtn_boot_tree_parent(boot, r))
        ranks[i] = r;                                /* ascending            */
    dtn_boot_fail_missing(boot, ranks, n,
                          dtn_boot_tree_parent(boot, boot->rank));
}

void dtn_boot_fail_silent(struct dtn_boot *boot, int rank)
{
    struct dtensor_error error;
    char name[DTN_HOST_MAX + 32], time[32];

    dtn_fail_rank(&error, DTENSOR_ETIME, rank, "boot: %s did not answer within "
                  "%s (is it stuck or stopped?)",
                  dtn_boot_rank_name(boot, rank, name, sizeof name),
                  dtn_format_time(boot->cluster->transport.connect_timeout_ns,
                                  time, sizeof time));
    dtn_boot_fail_propose(boot, &error);
}

/* The time is over and rank 0 did not answer: name the ranks on the path. */
void dtn_boot_fail_alone(struct dtn_boot *boot)
{
    if (boot->up.link.state == DTN_LINK_JOINED || boot->up.target == boot->rank)
        dtn_boot_fail_silent(boot, boot->up.target);
    else if (boot->aside.link.state == DTN_LINK_JOINED)
        dtn_boot_fail_silent(boot, boot->aside.target);
    else
        fail_cut_off(boot);
    dtn_boot_fail_final(boot, &boot->failure);
}

/* ----------------------------------------------------------- the texts --- */

/* If no rank of a host has joined, the host may be unreachable: "is n1
 * reachable on port 17800?", or "".
 */
static char *fail_reach_text(const struct dtn_boot *boot, const int ranks[],
                             int n, char *buf, size_t size)
{
    char hosts[160];
    size_t used = 0;
    int count = 0;

    hosts[0] = buf[0] = '\0';
    for (int i = 0; i < n && boot->nhosts > 1; i++) {
        const struct dtn_host *host;

        host = boot->hosts[dtn_boot_tree_host(boot, ranks[i])];
        if (ranks[i] != host->first_rank)
            continue;
        if (used + strlen(host->name) + 8 > sizeof hosts) {
            snprintf(hosts + used, sizeof hosts - used, ", ...");
            break;
        }
        used += (size_t)snprintf(hosts + used, sizeof hosts - used, "%s%s",
                                 count++ ? ", " : "", host->name);
    }
    if (count > 0)
        snprintf(buf, size, " %s %s reachable on port %d?",
                 count == 1 ? "is" : "are", hosts,
                 boot->port);
    return buf;
}

char *dtn_boot_fail_refused_text(const struct dtn_boot *boot, char *buf,
                                 size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (int i = 0; i < DTN_NREFUSALS && used < size; i++)
        if (boot->refused[i] > 0)
            used += (size_t)snprintf(buf + used, size - used,
                                     "; %u connection%s refused: %s",
                                     boot->refused[i],
                                     boot->refused[i] == 1 ? " was" : "s were",
                                     dtn_boot_refusal_words(i));
    return buf;
}

void dtn_boot_fail_missing(struct dtn_boot *boot, const int ranks[], int n,
                           int culprit)
{
    struct dtensor_error error;
    char names[256], reach[220], refused[512], time[32];

    dtn_boot_ranks_text(boot, ranks, n, names, sizeof names);
    dtn_format_time(boot->cluster->transport.connect_timeout_ns, time,
                    sizeof time);
    if (boot->seq == 0)
        dtn_fail_rank(&error, DTENSOR_ETIME, culprit, "boot: %s did not join "
                      "within %s (%s started?%s)%s", names, time,
                      n == 1 ? "is it" : "are they",
                      fail_reach_text(boot, ranks, n, reach, sizeof reach),
                      dtn_boot_fail_refused_text(boot, refused,
                                                 sizeof refused));
    else
        dtn_fail_rank(&error, DTENSOR_ETIME, culprit, "boot: %s did not take "
                      "part in an exchange within %s (%s stuck or stopped?)",
                      names, time, n == 1 ? "is it" : "are they");
    dtn_boot_fail_propose(boot, &error);
}

void dtn_boot_fail_closed(struct dtn_boot *boot, int rank)
{
    struct dtensor_error error;
    char name[DTN_HOST_MAX + 32];

    if (boot->heart && boot->state == DTN_BOOT_GATHERING) {
        dtn_news_lost(boot, NULL, rank, DTN_LOSS_DIED);
        return;
    }
    dtn_fail_rank(&error, DTENSOR_EPEER, rank, "boot: %s closed its connection "
                  "(did it crash or exit? see its output)",
                  dtn_boot_rank_name(boot, rank, name, sizeof name));
    dtn_boot_fail_propose(boot, &error);
}

void dtn_boot_fail_garbage(struct dtn_boot *boot, int rank)
{
    struct dtensor_error error;
    char name[DTN_HOST_MAX + 32];

    dtn_fail_rank(&error, DTENSOR_EPEER, rank,
                  "boot: %s sent invalid data (install the same libdtensor on "
                  "all hosts)",
                  dtn_boot_rank_name(boot, rank, name, sizeof name));
    dtn_boot_fail_propose(boot, &error);
}

void dtn_boot_fail_twice(struct dtn_boot *boot, int rank, uint32_t pid1,
                         uint32_t pid2)
{
    struct dtensor_error error;
    char name[DTN_HOST_MAX + 32];

    if (pid1 > pid2) {
        uint32_t pid = pid1;

        pid1 = pid2;
        pid2 = pid;
    }
    dtn_fail_rank(&error, DTENSOR_EMISMATCH, rank, "boot: %s was started "
                  "twice, as processes %u and %u (start each rank once; does "
                  "an older job still run?)",
                  dtn_boot_rank_name(boot, rank, name, sizeof name),
                  (unsigned)pid1, (unsigned)pid2);
    dtn_boot_fail_propose(boot, &error);
}

void dtn_boot_fail_nomem(struct dtn_boot *boot)
{
    struct dtensor_error error;
    char name[DTN_HOST_MAX + 32];

    dtn_fail_rank(&error, DTENSOR_ENOMEM, boot->rank, "boot: %s is out of "
                  "memory (see ulimit -v and free -h)",
                  dtn_boot_rank_name(boot, boot->rank, name, sizeof name));
    dtn_boot_fail_propose(boot, &error);
}

void dtn_boot_fail_nofds(struct dtn_boot *boot)
{
    struct dtensor_error error;

    dtn_boot_fd_limit(boot, &error);
    dtn_boot_fail_propose(boot, &error);
}

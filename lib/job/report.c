/* report.c - choose the rank that prints an error
 *
 * When rank 3 of eight dies, seven ranks have the same line to print.  Each
 * rank sends the others that it gives up before it returns the error, so each
 * sees without another message which ranks have failed.  The lowest of the
 * ranks that gave up within half a second of the first prints.  A rank that
 * sends nothing in that time may be busy with other work, and nobody relies on
 * it: in doubt there are two lines rather than none.
 *
 * A rank with EABORT only knows that another one gave up: if rank 6 has no
 * memory, its error says so, and the errors of the others say "see the message
 * of rank 6".  So such a rank prints only if no rank gave up for a reason.
 *
 * If dtensor_init() fails there is no context to ask.  But all ranks then have
 * the same error, which names the rank at fault.
 */
#include "base/units.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "job/ctx.h"
#include "job/failure.h"
#include "job/poison.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define WINDOW_NS INT64_C(500000000)

enum report_peer { PEER_HERE, PEER_FAILED, PEER_ABORTED, PEER_GONE };

/* It gave up: for a reason of its own, or because another one had. */
static enum report_peer report_gave_up(int code)
{
    return code == DTENSOR_EABORT ? PEER_ABORTED : PEER_FAILED;
}

/* A failure of this rank alone; code 0: others have it, too. */
struct report_alone {
    int code;
    int64_t at_ns;
};

/* What a rank has said that is here no more.  A failure of this rank alone may
 * be the same as that of a rank that has just failed, and left.
 */
static enum report_peer report_gone(const struct dtn_peer_failure *failure,
                                    int rank, const struct report_alone *alone)
{
    if (alone->code != 0 && failure->heard_ns < alone->at_ns - WINDOW_NS)
        return PEER_GONE;
    if (failure->code != 0
        && (failure->culprit != rank || failure->code != DTENSOR_EPEER))
        return report_gave_up(failure->code);
    return alone->code != 0 && failure->failed == alone->code ? PEER_FAILED
                                                              : PEER_GONE;
}

/* The state of a rank: failed too, gone without a report, or neither. */
static enum report_peer report_peer(const struct dtensor_ctx *ctx, int rank,
                                    const struct report_alone *alone)
{
    const struct dtn_peer_failure *failure = dtn_boot_peer_failure(ctx->boot,
                                                                   rank);
    struct dtn_transport *tp = dtn_wire_to(ctx, rank);
    int culprit = rank, word = 0, health;

    if (failure->order > 0)
        return report_gone(failure, rank, alone);
    health = tp && alone->code == 0 ? tp->ops->health(tp, rank, &culprit, &word)
                                    : 0;
    return health == DTENSOR_EABORT ? report_gave_up(dtn_poison_code(word))
         : health == DTENSOR_EPEER ? PEER_GONE : PEER_HERE;
}

/* When the first rank failed, as far as is known. */
static int64_t report_first_ns(const struct dtensor_ctx *ctx, int64_t own_ns)
{
    int64_t first = own_ns;

    for (int r = 0; r < ctx->world.size; r++) {
        const struct dtn_peer_failure *failure = dtn_boot_peer_failure(
            ctx->boot, r);
        const enum report_peer peer = report_peer(
            ctx, r, &(struct report_alone){ .code = 0 });

        if (r != ctx->world.rank && failure->order > 0
            && (peer == PEER_FAILED || peer == PEER_ABORTED)
            && failure->heard_ns < first)
            first = failure->heard_ns;
    }
    return first;
}

/* Does another rank print?  *here: one that may is not heard yet. */
static bool report_yields(const struct dtensor_ctx *ctx,
                          const struct report_alone *alone, bool *here)
{
    const struct dtensor_error *own = &ctx->failure.err;
    const bool aborted = own->code == DTENSOR_EABORT;
    const int me = ctx->world.rank;

    *here = false;
    for (int r = 0; r < (aborted ? ctx->world.size : me); r++) {
        const enum report_peer peer = r == me ? PEER_GONE
                                              : report_peer(ctx, r, alone);

        if ((peer == PEER_FAILED && (r < me || aborted))
            || (peer == PEER_ABORTED && r < me
                && (aborted || alone->code != 0)))
            return true;
        *here = *here || (peer == PEER_HERE && (r < me || r == own->rank));
    }
    return false;
}

static int report_joined(struct dtensor_ctx *ctx, int code)
{
    const struct timespec nap = { 0, 1000000 };
    const int64_t now = dtn_now_ns();
    const struct report_alone alone = {
        .code = ctx->failure.err.code == 0 ? code : 0, .at_ns = now };
    int64_t own_ns, first_ns;
    bool here;

    if (alone.code != 0 && code != DTENSOR_EINVAL && code != DTENSOR_ESYS)
        return 1;
    if (alone.code != 0)
        dtn_boot_call_failed(ctx->boot, code);
    dtn_boot_watch(ctx->boot);
    own_ns = alone.code != 0 ? now : ctx->failure.at_ns;
    first_ns = alone.code != 0 ? now : report_first_ns(ctx, own_ns);
    if (own_ns > first_ns + WINDOW_NS)
        return 0;
    do {
        dtn_boot_watch(ctx->boot);
        if (report_yields(ctx, &alone, &here))
            return 0;
        if (here)
            nanosleep(&nap, NULL);
    } while (here && dtn_now_ns() < first_ns + WINDOW_NS);
    return 1;
}

/* The number in the first of two variables that is set; -1: in none. */
static int report_number(const char *run, const char *slurm)
{
    const char *text = getenv(run);
    uint64_t value;

    if (!text)
        text = getenv(slurm);
    return text && dtn_parse_u64(text, false, INT32_MAX, &value) ? (int)value
                                                                 : -1;
}

/* Is the error in the file, which all ranks of a host share? */
static bool report_file(const struct dtensor_error *err)
{
    return err->code == DTENSOR_ECONF
        || (err->code == DTENSOR_ESYS && (err->sys_errno == ENOENT
                                          || err->sys_errno == EACCES));
}

/* Joining failed.  A rank prints an error that it alone found; an error of the
 * file is found by all ranks of a host, so the first one prints it.  An error
 * that was sent to all is printed by the rank that differs, or by rank 0,
 * unless rank 0 is the one that is missing.
 */
static int report_outside(const struct dtensor_error *err)
{
    const int rank = report_number("DTN_RANK", "SLURM_PROCID");
    const int local = report_number("DTN_LOCAL_RANK", "SLURM_LOCALID");

    if (rank < 0 || rank == err->rank)
        return 1;
    if (err->rank < 0)
        return !report_file(err) || local <= 0;
    if (err->code == DTENSOR_EMISMATCH)
        return 0;
    return rank == 0 || (err->rank == 0 && (err->code == DTENSOR_EPEER
                                            || err->code == DTENSOR_ETIME));
}

int dtensor_should_report(struct dtensor_ctx *ctx,
                          const struct dtensor_error *failure)
{
    if (failure->code == 0)
        return 0;
    if (!ctx)
        return report_outside(failure);
    if (!ctx->boot)
        return 1;
    /* All ranks have the error of one, as for a file: nothing is poisoned. */
    if (ctx->failure.err.code == 0 && failure->rank >= 0)
        return failure->rank == ctx->world.rank;
    return report_joined(ctx, failure->code);
}

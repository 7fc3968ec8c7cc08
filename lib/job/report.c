/* report.c - choose the rank that prints an error
 *
 * When rank 3 of eight dies, seven ranks have the same line to print.  Each
 * rank sends the others that it gives up before it returns the error, so each
 * sees without another message which ranks have failed.  The lowest of the
 * ranks that gave up within half a second of the first prints.  A rank that
 * sends nothing in that time may be busy with other work, and nobody relies on
 * it: in doubt there are two lines rather than none.
 *
 * If dtensor_init() fails there is no context to ask.  But all ranks then have
 * the same error, which names the rank at fault.
 */
#include "base/units.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "job/ctx.h"
#include "job/failure.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define WINDOW_NS INT64_C(500000000)

enum report_peer { PEER_HERE, PEER_FAILED, PEER_GONE };

/* The state of a rank: failed too, gone without a report, or neither.  For a
 * failure of this rank alone, a rank that has just left counts as failed,
 * because its call was refused too.
 */
static enum report_peer report_peer(const struct dtensor_ctx *ctx, int rank,
                                    int64_t alone_ns)
{
    const struct dtn_peer_failure *failure = dtn_boot_peer_failure(ctx->boot,
                                                                   rank);
    struct dtn_transport *tp = dtn_wire_to(ctx, rank);
    int culprit = rank, code = 0, health;

    if (failure->order > 0 && failure->code != 0
        && (failure->culprit != rank || failure->code != DTENSOR_EPEER))
        return PEER_FAILED;
    if (failure->order > 0 && alone_ns > 0)
        return failure->heard_ns > alone_ns - WINDOW_NS ? PEER_FAILED
                                                        : PEER_GONE;
    if (failure->order > 0)
        return PEER_GONE;
    health = tp && alone_ns == 0 ? tp->ops->health(tp, rank, &culprit, &code)
                                 : 0;
    return health == DTENSOR_EABORT ? PEER_FAILED
         : health == DTENSOR_EPEER ? PEER_GONE : PEER_HERE;
}

/* When the first rank failed, as far as is known. */
static int64_t report_first_ns(const struct dtensor_ctx *ctx, int64_t own_ns)
{
    int64_t first = own_ns;

    for (int r = 0; r < ctx->world.size; r++) {
        const struct dtn_peer_failure *failure = dtn_boot_peer_failure(
            ctx->boot, r);

        if (r != ctx->world.rank && report_peer(ctx, r, 0) == PEER_FAILED
            && failure->order > 0 && failure->heard_ns < first)
            first = failure->heard_ns;
    }
    return first;
}

static int report_joined(struct dtensor_ctx *ctx, int code)
{
    const struct timespec nap = { 0, 1000000 };
    const int64_t now = dtn_now_ns();
    const int64_t alone_ns = ctx->failure.err.code == 0 ? now : 0;
    int64_t own_ns, first_ns;
    bool here;

    if (ctx->planning || (alone_ns > 0 && code != DTENSOR_EINVAL))
        return 1;
    dtn_boot_watch(ctx->boot);
    own_ns = alone_ns > 0 ? now : ctx->failure.at_ns;
    first_ns = alone_ns > 0 ? now : report_first_ns(ctx, own_ns);
    if (own_ns > first_ns + WINDOW_NS)
        return 0;
    do {
        here = false;
        dtn_boot_watch(ctx->boot);
        for (int r = 0; r < ctx->world.rank; r++) {
            const enum report_peer peer = report_peer(ctx, r, alone_ns);

            if (peer == PEER_FAILED)
                return 0;
            here = here || peer == PEER_HERE;
        }
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
    /* All ranks have the error of one, as for a file: nothing is poisoned. */
    if (ctx->failure.err.code == 0 && failure->code == DTENSOR_ESYS
        && failure->rank >= 0)
        return failure->rank == ctx->world.rank;
    return report_joined(ctx, failure->code);
}

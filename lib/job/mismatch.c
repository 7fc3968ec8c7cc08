/* mismatch.c - mismatched calls: one error text on all ranks
 *
 * A rank that receives a signal with another fingerprint than its own does not
 * know what the other side called.  So each rank sends over the tree what it
 * called, and that it gives up.  Rank 0 waits for these records, finds the rank
 * whose call differs from that of most, and sends which two ranks to name.  All
 * others wait for that, and return "rank 1 on n0 called allreduce of 3 f32 sum,
 * rank 0 on n0 called allreduce of 4 f32 sum".  Records are looked up by rank
 * and number of the call.
 */
#include "base/wait.h"
#include "boot/boot.h"
#include "cluster/world.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/failure.h"
#include "job/poison.h"
#include "job/suspects.h"
#include "job/wire.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#define MISMATCH_TAG (DTN_TAG_MAX - 1)

enum { JUDGE = 0 };               /* decides which two all ranks name         */

/* How long to wait: for the records of the two ranks, which come at once unless
 * a rank computes or is kept off its CPU; for those of all others; and for what
 * rank 0 decides.
 */
#define MISMATCH_RECORD_NS INT64_C(2000000000)
#define MISMATCH_OTHERS_NS INT64_C(200000000)
#define MISMATCH_JUDGE_NS INT64_C(3000000000)

bool dtn_signal_mismatch(const struct dtn_signal *signal,
                         struct dtn_mismatch *mismatch)
{
    if (signal->tag != MISMATCH_TAG || signal->len != sizeof *mismatch)
        return false;
    memcpy(mismatch, signal->payload, sizeof *mismatch);
    return true;
}

/* Send the mismatch to all peers.  Best effort: if a peer's queue is full, it
 * still finds the abort with its code.
 */
static void mismatch_tell(struct dtensor_ctx *ctx,
                          const struct dtn_mismatch *mismatch)
{
    struct dtn_signal signal = { .tag = MISMATCH_TAG,
                                 .len = sizeof *mismatch };

    memcpy(signal.payload, mismatch, sizeof *mismatch);
    for (int r = 0; r < ctx->world.size; r++) {
        struct dtn_transport *tp = ctx->peers[r].tp;

        if (tp && ctx->peers[r].connected
            && tp->ops->signal(tp, r, &signal, NULL) == 0)
            ctx->peers[r].sent++;
    }
}

/* Send what this rank called, if it made that call. */
static void mismatch_own(struct dtensor_ctx *ctx, int rank, int other,
                         uint64_t fingerprint)
{
    struct dtn_call_record record;

    if (rank == ctx->world.rank
        && (ctx->describer->recall(ctx, fingerprint, &record)
            || ctx->describer->message(ctx, other, fingerprint, &record)))
        dtn_boot_report_call(ctx->boot, rank, &record);
}

/* The record of that call from that rank; or from another rank that made the
 * same call, because the rank itself may be computing, or dead.  For a message
 * each side sends its own record.
 */
static const struct dtn_call_record *mismatch_said(
    const struct dtensor_ctx *ctx, int rank, uint64_t fingerprint, int other)
{
    const struct dtn_call_record *record = dtn_boot_call_record(
        ctx->boot, rank, fingerprint, other);
    const struct dtn_peer_call_report *report;

    for (uint32_t i = 0;
         !record && (report = dtn_boot_call_report(ctx->boot, i)); i++)
        if (report->record.fingerprint == fingerprint
            && report->record.kind < DTN_RECORD_SENT)
            record = &report->record;
    return record;
}

/* The records of both sides; NULL: unknown. */
struct sides {
    const struct dtn_call_record *called, *expected;
};

static struct sides mismatch_sides(const struct dtensor_ctx *ctx,
                                   const struct dtn_mismatch *found)
{
    return (struct sides){
        mismatch_said(ctx, found->rank, found->called, found->witness),
        mismatch_said(ctx, found->witness, found->expected, found->rank)
    };
}

/* Receive records from the tree. */
static void mismatch_turn(struct dtensor_ctx *ctx)
{
    const struct timespec pause = { 0, 1000000 };

    dtn_ctx_progress(ctx);
    dtn_boot_watch(ctx->boot);
    for (int r = 0; r < ctx->world.size; r++) {
        const struct dtn_peer_failure *failure = dtn_boot_peer_failure(
            ctx->boot, r);

        if (failure->order == 0 || failure->code != DTENSOR_EMISMATCH)
            continue;
        mismatch_own(ctx, failure->mismatch.rank, failure->mismatch.witness,
                     failure->mismatch.called);
        mismatch_own(ctx, failure->mismatch.witness, failure->mismatch.rank,
                     failure->mismatch.expected);
    }
    nanosleep(&pause, NULL);
}

/* The decision of rank 0, if it has arrived: `other` is the witness, `group`
 * holds the fingerprint of its call.
 */
static const struct dtn_call_record *mismatch_judged(
    const struct dtensor_ctx *ctx)
{
    const struct dtn_peer_call_report *report;

    for (uint32_t i = 0; (report = dtn_boot_call_report(ctx->boot, i)); i++)
        if (report->record.kind == DTN_RECORD_JUDGED && report->rank == JUDGE)
            return &report->record;
    return NULL;
}

/* Wait for the record of that rank; but it may be computing, or dead. */
static void mismatch_listen(struct dtensor_ctx *ctx, int rank,
                            uint64_t fingerprint, int other, int64_t start)
{
    while (rank != ctx->world.rank && dtn_now_ns() - start < MISMATCH_RECORD_NS
           && !dtn_boot_call_record(ctx->boot, rank, fingerprint, other)
           && !mismatch_judged(ctx))
        mismatch_turn(ctx);
}

/* --------------------------------------------------------- whom to name --- */

/* The number of the differing call among those over the same ranks; 0: the two
 * called over different ranks, or sent to each other.  The signals of a call
 * that waits for no peer may be received in a later call, so the smaller number
 * counts.
 */
static uint32_t mismatch_call(const struct dtensor_ctx *ctx,
                              const struct dtn_mismatch *found,
                              const struct dtn_call_record **saidp)
{
    const struct sides sides = mismatch_sides(ctx, found);
    const struct dtn_call_record *a = sides.called, *b = sides.expected;

    if (!a || !b || a->group != b->group || a->group == 0
        || a->kind >= DTN_RECORD_SENT || b->kind >= DTN_RECORD_SENT)
        return 0;
    *saidp = a->number < b->number ? a : b;
    return (*saidp)->number;
}

/* Send this rank's call of that number. */
static void mismatch_join(struct dtensor_ctx *ctx,
                          const struct dtn_mismatch *found)
{
    const struct dtn_call_record *call;
    struct dtn_call_record mine;
    uint32_t number = mismatch_call(ctx, found, &call);

    if (number > 0 && ctx->describer->numbered(ctx, call->group, number, &mine))
        dtn_boot_report_call(ctx->boot, ctx->world.rank, &mine);
}

/* A rank's record of its call of that number; NULL: none. */
static const struct dtn_call_record *mismatch_vote(
    const struct dtensor_ctx *ctx, int rank, uint64_t group, uint32_t number)
{
    const struct dtn_peer_call_report *report;

    for (uint32_t i = 0; (report = dtn_boot_call_report(ctx->boot, i)); i++)
        if (report->rank == rank && report->record.group == group
            && report->record.number == number
            && report->record.kind < DTN_RECORD_SENT)
            return &report->record;
    return NULL;
}

static uint32_t mismatch_votes(const struct dtensor_ctx *ctx, uint64_t group,
                               uint32_t number, const uint64_t *fingerprint)
{
    uint32_t votes = 0;

    for (int r = 0; r < ctx->world.size; r++) {
        const struct dtn_call_record *record = mismatch_vote(ctx, r, group,
                                                             number);

        votes += record
                 && (!fingerprint || record->fingerprint == *fingerprint);
    }
    return votes;
}

/* The first rank that made the call of most, and the first that made another.
 */
static void mismatch_count(const struct dtensor_ctx *ctx, uint64_t group,
                           uint32_t number, struct dtn_mismatch *found)
{
    const struct dtn_call_record *most = NULL, *record;
    struct dtn_mismatch odd = { .rank = -1 };
    uint32_t best = 0;

    for (int r = 0; r < ctx->world.size; r++) {
        record = mismatch_vote(ctx, r, group, number);
        if (record && mismatch_votes(ctx, group, number, &record->fingerprint)
                    > best) {
            best = mismatch_votes(ctx, group, number, &record->fingerprint);
            most = record;
            odd.witness = r;
        }
    }
    for (int r = 0; most && odd.rank < 0 && r < ctx->world.size; r++) {
        record = mismatch_vote(ctx, r, group, number);
        if (record && record->fingerprint != most->fingerprint) {
            odd.rank = r;
            odd.called = record->fingerprint;
        }
    }
    if (odd.rank < 0)
        return;                  /* they called the same, one once more often */
    odd.expected = most->fingerprint;
    *found = odd;
}

/* Rank 0: decide when the records of all ranks of the call have arrived, or
 * after a timeout.
 */
static void mismatch_judge(struct dtensor_ctx *ctx, struct dtn_mismatch *found)
{
    const int64_t start = dtn_now_ns();
    const struct dtn_call_record *call;
    uint32_t number = mismatch_call(ctx, found, &call), n;
    uint64_t group;

    if (number == 0)
        return;
    n = call->n;
    group = call->group;
    while (dtn_now_ns() - start < MISMATCH_OTHERS_NS
           && mismatch_votes(ctx, group, number, NULL) < n)
        mismatch_turn(ctx);
    mismatch_count(ctx, group, number, found);
}

/* The others: take the decision of rank 0, unless it is dead or computing; then
 * that of the first rank that found a mismatch.
 */
static void mismatch_obey(struct dtensor_ctx *ctx, struct dtn_mismatch *found,
                          int64_t start)
{
    const struct dtn_peer_failure *judge = dtn_boot_peer_failure(ctx->boot,
                                                                 JUDGE);
    const struct dtn_call_record *record;

    while (!(record = mismatch_judged(ctx))
           && (judge->order == 0 || judge->code == DTENSOR_EMISMATCH)
           && dtn_now_ns() - start < MISMATCH_JUDGE_NS)
        mismatch_turn(ctx);
    if (record)
        *found = (struct dtn_mismatch){
            .rank = (int32_t)record->number, .called = record->fingerprint,
            .witness = record->other, .expected = record->group };
    for (int r = 0; !record && r < ctx->world.size; r++) {
        const struct dtn_peer_failure *failure = dtn_boot_peer_failure(
            ctx->boot, r);

        if (failure->order > 0
            && failure->mismatch.rank != failure->mismatch.witness) {
            *found = failure->mismatch;
            return;
        }
    }
}

/* ----------------------------------------------------------------- text --- */

/* "rank 1 on n0 called allreduce of 3 f32 sum": one side. */
static void mismatch_side(const struct dtensor_ctx *ctx, int rank,
                          const struct dtn_call_record *record,
                          uint64_t fingerprint, bool numbered, char *buf,
                          size_t size)
{
    const struct dtn_call_record unknown = { .fingerprint = fingerprint };
    char name[160], what[DTN_RECORD_TEXT], number[48] = "";

    if (numbered)
        snprintf(number, sizeof number, " as %s %u %s", record->group == 0
                 ? "message" : "call", (unsigned)record->number,
                 record->group == 0 ? "between them" : "over these ranks");
    snprintf(
        buf, size, "%s called %s%s",
        dtn_world_rank_name(&ctx->world, rank, name, sizeof name),
        ctx->describer->describe(record ? record : &unknown, what, sizeof what),
        number);
}

/* Did they make the same calls over the same ranks, but not equally many? */
static bool sides_counted(struct sides sides)
{
    const struct dtn_call_record *a = sides.called, *b = sides.expected;

    return a && b && a->group == b->group && a->number > 0 && b->number > 0
        && a->number != b->number;
}

/* Are they a send and a recv of each other, or both sides of a block? */
static bool sides_meet(struct sides sides)
{
    const struct dtn_call_record *a = sides.called, *b = sides.expected;

    return a && b && a->group == b->group
        && ((a->kind == DTN_RECORD_SENT && b->kind == DTN_RECORD_RECEIVED)
            || (a->kind == DTN_RECORD_RECEIVED && b->kind == DTN_RECORD_SENT));
}

/* If both have the sizes of two blocks, one in each direction: the sides of the
 * block that differs, as records in `block`.
 */
static struct sides sides_narrow(struct sides sides,
                                 struct dtn_call_record block[2])
{
    const struct dtn_call_record *a = sides.called, *b = sides.expected;
    bool sent;

    if (!a || !b || a->kind != DTN_RECORD_BLOCKS
        || b->kind != DTN_RECORD_BLOCKS || sides_counted(sides))
        return sides;
    sent = a->count != b->back || a->back == b->count;
    block[0] = *a;
    block[1] = *b;
    block[0].kind = sent ? DTN_RECORD_SENT : DTN_RECORD_RECEIVED;
    block[1].kind = sent ? DTN_RECORD_RECEIVED : DTN_RECORD_SENT;
    block[0].count = sent ? a->count : a->back;
    block[1].count = sent ? b->back : b->count;
    return (struct sides){ &block[0], &block[1] };
}

static const char *mismatch_remedy(struct sides sides, bool counted)
{
    return counted || !sides_meet(sides)
         ? "all ranks must make the same calls in the same order"
         : sides.called->group == 0
         ? "a send and its recv need the same number and type of elements"
         : "a block needs the same number and type of elements in the counts "
           "of both ranks";
}

/* All ranks that learn of a mismatch agree on the two ranks to name. */
static void mismatch_agree(struct dtensor_ctx *ctx, struct dtn_mismatch *found)
{
    const int64_t start = dtn_now_ns();
    const bool judge = ctx->world.rank == JUDGE;

    ctx->failure.mismatch = *found;
    mismatch_own(ctx, found->rank, found->witness, found->called);
    mismatch_own(ctx, found->witness, found->rank, found->expected);
    mismatch_tell(ctx, found);
    dtn_poison_tell(ctx, DTENSOR_EMISMATCH, found->rank);
    mismatch_listen(ctx, found->rank, found->called, found->witness, start);
    mismatch_listen(ctx, found->witness, found->expected, found->rank, start);
    mismatch_join(ctx, found);
    if (!judge) {
        mismatch_obey(ctx, found, start);
        return;
    }
    mismatch_judge(ctx, found);
    dtn_boot_report_call(ctx->boot, JUDGE, &(struct dtn_call_record){
        .kind = DTN_RECORD_JUDGED, .number = (uint32_t)found->rank,
        .fingerprint = found->called, .other = found->witness,
        .group = found->expected });
}

static int mismatch_record(struct dtensor_ctx *ctx,
                           const struct dtn_mismatch *mismatch)
{
    struct dtn_mismatch found = *mismatch;
    char what[2 * DTN_RECORD_TEXT + 512], side[2][DTN_RECORD_TEXT + 200];
    struct dtn_call_record block[2];
    struct sides sides;
    bool counted;

    mismatch_agree(ctx, &found);
    sides = sides_narrow(mismatch_sides(ctx, &found), block);
    counted = sides_counted(sides);
    mismatch_side(ctx, found.rank, sides.called, found.called, counted,
                  side[0], sizeof side[0]);
    mismatch_side(ctx, found.witness, sides.expected, found.expected, counted,
                  side[1], sizeof side[1]);
    snprintf(what, sizeof what, "%s, %s (%s)", side[0], side[1],
             mismatch_remedy(sides, counted));
    dtn_poison_record(ctx, DTENSOR_EMISMATCH, found.rank, what);
    dtn_suspects_write(&ctx->world, ctx->boot, DTN_LOSS_NONE,
                       &ctx->failure.err);
    return DTENSOR_EMISMATCH;
}

int dtn_poison_mismatch(struct dtensor_ctx *ctx,
                        const struct dtn_mismatch *mismatch)
{
    int rc;

    if (ctx->failure.err.code != 0)
        return ctx->failure.err.code;
    dtn_boot_hold(ctx->boot);
    rc = mismatch_record(ctx, mismatch);
    dtn_boot_release(ctx->boot);
    return rc;
}

bool dtn_mismatch_wait(struct dtensor_ctx *ctx, int peer,
                       struct dtn_mismatch *mismatch)
{
    int culprit, code;

    if (dtn_boot_peer_failure(ctx->boot, peer)->order == 0)
        dtn_peer_failure_wait(ctx, peer, &culprit, &code);
    return dtn_mismatch_known(ctx, mismatch);
}

bool dtn_mismatch_known(const struct dtensor_ctx *ctx,
                        struct dtn_mismatch *mismatch)
{
    for (int r = 0; r < ctx->world.size; r++) {
        const struct dtn_peer_failure *failure = dtn_boot_peer_failure(
            ctx->boot, r);

        if (failure->order == 0)
            continue;
        *mismatch = failure->mismatch;
        if (mismatch->rank != mismatch->witness)
            return true;
    }
    return false;
}
